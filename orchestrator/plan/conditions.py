"""Conditions of routing rules: comparisons of a situation's fields with literals, joined by and, or, not."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from operator import eq, ge, gt, le, lt, ne
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from orchestrator.faults import closest_name
from orchestrator.plan.vocabulary import Risk, TaskType

if TYPE_CHECKING:
    from orchestrator.plan.routing import Situation

__all__ = [
    "COMPARISONS",
    "FIELDS",
    "Condition",
    "ConditionError",
    "Every",
    "Literal",
    "Not",
    "Some",
    "Test",
    "checked",
    "field_named",
    "fields_of",
]

Literal: TypeAlias = str | int | bool

FIELDS: Final[Mapping[str, type[Literal]]] = MappingProxyType(
    {"risk_level": str, "task_type": str, "role": str, "failure_count": int, "ambiguous": bool, "doc_trigger": str}
)
"""What a condition can ask about, and of what kind it is."""
WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"risk_level": tuple(map(str, Risk)), "task_type": tuple(map(str, TaskType))}
)
ALIASES: Final = MappingProxyType({"ambiguity": "ambiguous", "failures": "failure_count", "risk": "risk_level"})
COMPARISONS: Final[Mapping[str, Callable[[object, object], bool]]] = MappingProxyType(
    {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}  # type: ignore[dict-item]  # ordered kinds alone get there
)
EQUALITY: Final = ("==", "!=", "in", "not in")


class ConditionError(ValueError):
    """A condition cannot be read; `hint` is the word that was probably meant, for the reader of files."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


@attrs.frozen
class Test:
    """A field compared with literals; `in` and `not in` have any number of them."""

    __test__ = False

    field: str
    operator: str
    values: tuple[Literal, ...]

    def holds(self, situation: Situation) -> bool:
        """Whether it is so."""
        found = situation.value_of(self.field)
        values = [alike(found, value) for value in self.values]
        if self.operator in ("in", "not in"):
            return any(left == right for left, right in values) is (self.operator == "in")
        ((left, right),) = values
        if self.field == "risk_level":
            left, right = Risk(str(left)).rank, Risk(str(right)).rank
        return COMPARISONS[self.operator](left, right)

    def __str__(self) -> str:
        if self.operator in ("in", "not in"):
            return f"{self.field} {self.operator} [{', '.join(map(repr, self.values))}]"
        if self.values == (True,) and self.operator == "==":
            return self.field
        return f"{self.field} {self.operator} {self.values[0]!r}"


@attrs.frozen
class Not:
    """The contrary of a condition."""

    inner: Condition

    def holds(self, situation: Situation) -> bool:
        """Whether it is so."""
        return not self.inner.holds(situation)

    def __str__(self) -> str:
        return f"not ({self.inner})"


@attrs.frozen
class Every:
    """All of several conditions; without any, always."""

    parts: tuple[Condition, ...] = ()

    def holds(self, situation: Situation) -> bool:
        """Whether it is so."""
        return all(part.holds(situation) for part in self.parts)

    def __str__(self) -> str:
        return " and ".join(f"({part})" if isinstance(part, Some) else str(part) for part in self.parts) or "always"


@attrs.frozen
class Some:
    """At least one of several conditions."""

    parts: tuple[Condition, ...]

    def holds(self, situation: Situation) -> bool:
        """Whether it is so."""
        return any(part.holds(situation) for part in self.parts)

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


Condition: TypeAlias = Test | Not | Every | Some


def fields_of(condition: Condition) -> frozenset[str]:
    """The fields that a condition asks about."""
    match condition:
        case Test():
            return frozenset({condition.field})
        case Not():
            return fields_of(condition.inner)
        case Every() | Some():
            return frozenset().union(*(fields_of(part) for part in condition.parts))


def checked(field: str, operator: str, values: Sequence[Literal]) -> Test:
    """A test whose literals fit its field; raises ConditionError."""
    kind = FIELDS[field]
    if operator not in EQUALITY and kind is not int and field != "risk_level":
        raise ConditionError(f"{field} has no order: compare it with == or in")
    for value in values:
        is_flag = field == "doc_trigger" and isinstance(value, bool) and operator in EQUALITY
        if type(value) is not kind and not is_flag:
            raise ConditionError(f"{field} is compared with {value!r}: expected {NAMES[kind]}")
        if field in WORDS and value not in WORDS[field]:
            choices = ", ".join(WORDS[field])
            hint = closest_name(str(value), WORDS[field])
            raise ConditionError(f"{value!r:.80} is no {field}: there are {choices}", hint)
    return Test(field, operator, tuple(values))


NAMES: Final = MappingProxyType({str: "a quoted word", int: "a whole number", bool: "true or false"})


def field_named(name: str) -> str:
    """The field of a name or of its alias; raises ConditionError for another one."""
    field = ALIASES.get(name, name)
    if field not in FIELDS:
        raise ConditionError(f"unknown field {name!r:.80}: there are {', '.join(FIELDS)}", closest_name(name, FIELDS))
    return field


def alike(found: Literal, value: Literal) -> tuple[Literal, Literal]:
    """Two values that can be compared: a word beside true or false is true when it is not empty."""
    return (bool(found), value) if isinstance(value, bool) else (found, value)
