"""The words of plans: risk levels, kinds of task, executors, lifecycle states."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Final, Literal, TypeAlias, TypeVar

__all__ = [
    "ARTIFACT",
    "ARTIFACT_PATTERN",
    "IDENTIFIER",
    "IDENTIFIER_PATTERN",
    "LONGEST_ARTIFACT",
    "Executor",
    "PlanState",
    "Risk",
    "TaskType",
    "as_executor",
    "as_risk",
    "as_task_type",
    "is_artifact_name",
    "is_identifier",
    "output_name",
]

PlanState: TypeAlias = Literal["draft", "reviewed", "locked", "executing", "amended", "completed"]
"""Where a plan is in its lifecycle (contract 5)."""

IDENTIFIER: Final = "at most 100 of the letters A-Z and a-z, digits, '.', '_' and '-', beginning with a letter or digit"
"""What an id may be, in words."""
ARTIFACT: Final = "a relative path such as docs/design.md, of letters, digits, '.', '_' and '-'"
"""What the name of an artifact may be, in words."""

LONGEST_ARTIFACT: Final = 200
"""Longest name of an artifact, characters."""
IDENTIFIER_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
"""What an id may be, as a schema says it; names of devices are for the reader to refuse."""
PART = r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?"
ARTIFACT_PATTERN: Final = rf"^{PART}(?:/{PART})*$"
"""What the name of an artifact may be, as a schema says it, and likewise."""
WORD = re.compile(IDENTIFIER_PATTERN)
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


class Risk(StrEnum):
    """How much a step can damage; `a.rank < b.rank` when `a` is the smaller risk."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """Its place in the order, from 0."""
        return tuple(Risk).index(self)

    @property
    def needs_security(self) -> bool:
        """Whether work of this risk passes no review without the security checklist."""
        return self in (Risk.HIGH, Risk.CRITICAL)


class TaskType(StrEnum):
    """What kind of work a step is."""

    PLANNING = "planning"
    ARCHITECTURE = "architecture"
    IMPLEMENTATION = "implementation"
    REVIEW = "review"
    TEST = "test"
    UX = "ux"
    SECURITY = "security"


class Executor(StrEnum):
    """What does the work of a step: one generation, an agent loop, or a conformance run."""

    GENERATOR = "generator"
    AGENT = "agent"
    CONFORMANCE = "conformance"


def as_risk(word: Risk | str) -> Risk:
    """The risk that a word names; anything else as it is, for the plan to complain of."""
    return member(Risk, word)


def as_task_type(word: TaskType | str) -> TaskType:
    """The kind of task that a word names; anything else as it is, for the plan to complain of."""
    return member(TaskType, word)


def as_executor(word: Executor | str) -> Executor:
    """The executor that a word names; anything else as it is, for the plan to complain of."""
    return member(Executor, word)


def is_identifier(text: object) -> bool:
    """Whether a text can be an id: it becomes part of file names and is shown in terminals."""
    return isinstance(text, str) and WORD.fullmatch(text) is not None and DEVICE.fullmatch(text) is None


def is_artifact_name(text: object, longest: int = LONGEST_ARTIFACT) -> bool:
    """Whether a text can name an artifact: a relative path that every file system takes as it is."""
    if not isinstance(text, str) or not 0 < len(text) <= longest:
        return False
    return all(NAME.fullmatch(part) and part[-1] != "." and not DEVICE.fullmatch(part) for part in text.split("/"))


_Word = TypeVar("_Word", bound=StrEnum)


def member(kind: type[_Word], word: _Word | str) -> _Word:
    """The member of this value, if there is one."""
    return next((each for each in kind if each == word), word)  # type: ignore[return-value]


def output_name(step_id: str) -> str:
    """What the whole output of a step is called on the context bus, where the step names no artifacts (contract 5)."""
    return f"step_{step_id}_output.md"
