"""Structuring: nothing is coerced, and a bad file hears everything at once."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal

import attrs
import pytest

from orchestrator.errors import DocumentError
from orchestrator.structuring import structure

MEANT_GREEN = " (did you mean 'green'?)"


class _Colour(StrEnum):
    RED = "red"
    GREEN = "green"


class _Level(IntEnum):
    LOW = 1


@attrs.frozen(kw_only=True)
class _Limits:
    attempts: int = attrs.field(default=5, validator=attrs.validators.ge(1))
    seconds: float | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.gt(0)))
    pair: tuple[int, ...] = attrs.field(default=())

    @pair.validator
    def _at_most_attempts(self, _attribute: object, pair: tuple[int, ...]) -> None:
        if len(pair) > self.attempts:
            raise ValueError("more pairs than attempts")


@attrs.frozen(kw_only=True)
class _Settings:
    name: str
    limits: _Limits = _Limits()
    colour: _Colour = _Colour.RED
    level: _Level = _Level.LOW
    mode: Literal["fast", 1] = "fast"
    output: Path | None = None
    seeds: tuple[str, ...] = ()
    numbers: list[float] = attrs.Factory(list[float])
    names: frozenset[str] = frozenset()
    either: tuple[_Limits, ...] | dict[str, str] | int = ()
    threat_model: str = ""
    weights: Mapping[str, int] = attrs.Factory(dict[str, int])
    children: tuple[_Settings, ...] = ()
    anything: Any = None


def _lines_of(data: object, target: type = _Settings) -> list[str]:
    with pytest.raises(DocumentError) as caught:
        structure(data, target, "f")
    return [line.removeprefix("f: ") for line in str(caught.value).splitlines()]


def test_a_whole_table_becomes_a_value() -> None:
    """Nested classes, enums, unions, paths and collections are built; an int serves as a float."""
    data = {
        "name": "a",
        "limits": {"attempts": 2, "seconds": 7},
        "colour": "green",
        "level": 1,
        "mode": 1,
        "output": "x/y",
        "seeds": ["s"],
        "numbers": [1, 2.5],
        "names": ["n"],
        "either": {"k": "v"},
        "threat-model": "t",
        "weights": {"w": 1},
        "children": [{"name": "b", "either": [{"attempts": 1}]}],
        "anything": [{"x": None}],
    }
    expected = _Settings(
        name="a",
        limits=_Limits(attempts=2, seconds=7.0),
        colour=_Colour.GREEN,
        level=_Level.LOW,
        mode=1,
        output=Path("x/y"),
        seeds=("s",),
        numbers=[1.0, 2.5],
        names=frozenset({"n"}),
        either={"k": "v"},
        threat_model="t",
        weights={"w": 1},
        children=(_Settings(name="b", either=(_Limits(attempts=1),)),),
        anything=[{"x": None}],
    )
    assert structure(data, _Settings, "f") == expected


@pytest.mark.parametrize(
    ("key", "value", "line"),
    [
        ("name", 7, "$.name: expected a string, found an integer 7"),
        ("name", None, "$.name: expected a string, found null"),
        ("limits", "5", "$.limits: expected a table, found a string '5'"),
        ("limits", {"attempts": "7"}, "$.limits.attempts: expected an integer, found a string '7'"),
        ("limits", {"attempts": True}, "$.limits.attempts: expected an integer, found a boolean True"),
        ("limits", {"attempts": 7.0}, "$.limits.attempts: expected an integer, found a number 7.0"),
        ("limits", {"seconds": False}, "$.limits.seconds: expected a number, found a boolean False"),
        ("limits", {"seconds": 10**400}, "$.limits.seconds: integer is too large for a number"),
        ("limits", {"attempts": 0}, "$.limits.attempts: 'attempts' must be >= 1: 0"),
        ("limits", {"attempts": 1, "pair": [1, 2]}, "$.limits: more pairs than attempts"),
        ("colour", "gren", "$.colour: expected one of 'red', 'green', found a string 'gren'" + MEANT_GREEN),
        ("level", True, "$.level: expected one of 1, found a boolean True"),
        ("mode", True, "$.mode: expected one of 'fast', 1, found a boolean True"),
        ("output", 1, "$.output: expected a path, found an integer 1"),
        ("seeds", "abc", "$.seeds: expected an array, found a string 'abc'"),
        ("seeds", ["a", 1], "$.seeds[1]: expected a string, found an integer 1"),
        ("either", "x", "$.either: expected an array or a table or an integer, found a string 'x'"),
        ("weights", {"a b": "1"}, "$.weights['a b']: expected an integer, found a string '1'"),
        ("weights", [], "$.weights: expected a table, found an array"),
        ("thread-model", "", "$.thread-model: unknown key (did you mean 'threat_model'?)"),
        ("children", [{"name": "b", "limits": {"x": 1}}],
         "$.children[0].limits.x: unknown key: there are attempts, seconds, pair"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_shape_is_refused(key: str, value: object, line: str) -> None:
    """Each refusal names the path, what was expected and what stands there."""
    assert _lines_of({"name": "a", key: value}) == [line]


def test_all_faults_come_at_once() -> None:
    """Unknown, missing and malformed keys and every objecting validator are named in one error."""
    data = {
        "limits": {"attempts": 0, "seconds": -1, "atempts": 3},
        "threat_model": "a",
        "threat-model": "b",
        "seeds": [1, 2],
    }
    assert _lines_of(data) == [
        "$.limits.atempts: unknown key (did you mean 'attempts'?)",
        "$.limits.attempts: 'attempts' must be >= 1: 0",
        "$.limits.seconds: 'seconds' must be > 0: -1.0",
        "$.threat-model: means the same key as 'threat_model': keep one",
        "$.seeds[0]: expected a string, found an integer 1",
        "$.seeds[1]: expected a string, found an integer 2",
        "$.name: required key is missing",
    ]


def test_the_document_itself_may_be_of_the_wrong_kind() -> None:
    """An empty or scalar document is named as such, and plain types can be asked for directly."""
    assert _lines_of(None) == ["$: expected a table, found null"]
    assert structure([1, 2], tuple[int, ...], "f") == (1, 2)


def test_long_values_are_cut_in_messages() -> None:
    """A message stays readable whatever the file holds."""
    (line,) = _lines_of({"name": "a", "limits": "x" * 1000})
    assert line == f"$.limits: expected a table, found a string '{'x' * 59}…"
