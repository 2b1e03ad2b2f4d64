"""What the command line says over what the configuration file says."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Literal

import attrs

from orchestrator.cli.exitcodes import RequestError
from orchestrator.commandline import split_command
from orchestrator.configuration import (
    PYTEST,
    BudgetSection,
    Configuration,
    EvaluatorSection,
    GeneratorSection,
    load_configuration,
)
from orchestrator.generators.entry_points import GROUP
from orchestrator.quantities import parse_count, parse_duration, parse_money

__all__ = ["Limits", "Overrides", "budget_section", "configured"]


@attrs.frozen(kw_only=True)
class Limits:
    """Limits as they were written; None for those that were not."""

    attempts: str | None = None
    time: str | None = None
    tokens: str | None = None
    input_tokens: str | None = None
    output_tokens: str | None = None
    money: str | None = None
    repeats: str | None = None


@attrs.frozen(kw_only=True)
class Overrides:
    """Everything else; None for what was not given."""

    generator: str | None = None
    evaluator: str | None = None
    suite: Path | None = None
    candidate_file: str | None = None
    report: Literal["junit", "ctrf", "json"] | None = None
    language: str | None = None
    limits: Limits = Limits()


def configured(path: Path | None, over: Overrides) -> Configuration:
    """The configuration of the file, if there is one, with everything that was given in its place."""
    configuration = Configuration() if path is None else load_configuration(path)
    return attrs.evolve(
        configuration,
        language=over.language or configuration.language,
        generator=generator_section(configuration.generator, over.generator),
        evaluator=evaluator_section(configuration.evaluator, over),
        budget=budget_section(configuration.budget, over.limits),
    )


def generator_section(section: GeneratorSection, given: str | None) -> GeneratorSection:
    """An entry point if one is called like this, else a program; parameters and the like stay."""
    if given is None:
        return section
    words = words_of(given, "--generator")
    if len(words) == 1 and is_entry_point(words[0]):
        return attrs.evolve(section, command=(), entry_point=words[0], name="")
    return attrs.evolve(section, command=words, entry_point="", name="", directory=None)


def evaluator_section(section: EvaluatorSection, over: Overrides) -> EvaluatorSection:
    """The runner, where `pytest` alone stands for the usual call of it, and the suite."""
    changes: dict[str, Any] = {
        "suite": over.suite,
        "candidate_file": over.candidate_file,
        "report": over.report,
    }
    if over.evaluator is not None:
        words = words_of(over.evaluator, "--evaluator")
        changes |= {"command": PYTEST if words == ("pytest",) else words, "name": ""}
    return attrs.evolve(section, **{name: value for name, value in changes.items() if value is not None})


def budget_section(section: BudgetSection, limits: Limits) -> BudgetSection:
    """The limits, those that were given in the place of the configured ones."""
    given = {name: text for name, text in attrs.asdict(limits).items() if text is not None}
    readers: dict[str, Callable[[str], object]] = {"time": parse_duration, "money": parse_money}
    for name, text in given.items():
        try:
            readers.get(name, parse_count)(text)
        except ValueError as error:
            raise RequestError(f"--{name.replace('_', '-')}: {error}") from None
    return attrs.evolve(section, **given)


def words_of(command: str, option: str) -> tuple[str, ...]:
    """Program and arguments; RequestError for a text that a POSIX shell could not split either."""
    try:
        return split_command(command)
    except ValueError as error:
        raise RequestError(f"{option}: {error}") from None


def is_entry_point(name: str) -> bool:
    """Whether an installed distribution offers a generator of this name."""
    return bool(entry_points(group=GROUP, name=name))
