"""A first classification of a failure by the words of its error, where nobody who knows more gives one."""

from __future__ import annotations

import re
from typing import Final

import attrs

from orchestrator.workflow.components.records import Category, Classification
from orchestrator.workflow.components.similarity import LONGEST_COMPARED, pattern_of

__all__ = ["classified"]


@attrs.frozen
class Sign:
    """Words that tell a category, and what would prevent such failures; no rule: nothing that is known."""

    words: re.Pattern[str]
    category: Category
    rule: str = ""


def sign(words: str, category: Category, rule: str = "") -> Sign:
    """A sign by its words, in any case."""
    return Sign(re.compile(words, re.IGNORECASE), category, rule)


SIGNS: Final = (
    sign(
        r"SyntaxError|IndentationError|unexpected token|parse error|invalid syntax",
        "syntax",
        "Parse every changed file before tests are run.",
    ),
    sign(
        r"ModuleNotFoundError|ImportError|cannot find module|command not found|no such file or directory",
        "environment",
        "Check that what is imported or called is installed before the work starts.",
    ),
    sign(
        r"PermissionError|permission denied|disk full|no space left|connection (?:refused|reset)|unavailable",
        "environment",
    ),
    sign(r"timed? ?out|timeout|DeadlineError|no answer within", "environment"),
    sign(
        r"NameError|AttributeError|TypeError|unexpected keyword|missing \d+ required|signature|interface|schema",
        "integration",
        "Check calls against the interface that they use before tests are run.",
    ),
    sign(r"circular|layer|coupling|architecture|duplicat", "architecture"),
)
"""Looked at in order; what fits none is a failure of logic."""


def classified(error: str) -> Classification:
    """The classification of an error: a guess, for a person or a later step to correct."""
    text = error[:LONGEST_COMPARED]
    found = next((each for each in SIGNS if each.words.search(text)), None)
    if found is None:
        return Classification(category="logic", pattern=pattern_of(error))
    return Classification(
        category=found.category,
        pattern=pattern_of(error),
        preventable=bool(found.rule),
        prevention_rule=found.rule,
    )
