"""Anything as plain JSON data."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal
from typing import Any

import pytest

from orchestrator.amplifier.plainness import field_of, plain, plain_object


@dataclasses.dataclass
class Point:
    """A record of somebody else's."""

    x: int
    tags: set[str]


class Model:
    """Looks like a pydantic model."""

    def model_dump(self) -> dict[str, Any]:
        """Its fields."""
        return {"inner": Point(1, {"b", "a"}), "price": Decimal("0.10")}


class Agreeable:
    """Has every attribute, as mocks do, a model's own among them."""

    def __getattr__(self, name: str) -> object:
        return lambda *_: self


class Hostile:
    """Raises whatever is asked of it."""

    @property
    def text(self) -> str:
        """Never a text."""
        raise OSError("no")

    def __str__(self) -> str:
        raise OSError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Model(), {"inner": {"x": 1, "tags": ["a", "b"]}, "price": "0.10"}),
        ([float("inf"), b"\xff", 1.5, None, True], ["inf", "\ufffd", 1.5, None, True]),
        ({1: {"a": (1, 2)}}, {"1": {"a": [1, 2]}}),
        ("\ud800", "?"),
    ],
)
def test_values_become_what_json_has_a_word_for(value: object, expected: object) -> None:
    """Models and records by their fields, what is no data by its text."""
    assert plain(value) == expected


def test_nothing_is_refused() -> None:
    """Cycles, depth, hostile objects and mocks come to something that can be written."""
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    deep: list[Any] = []
    for _ in range(500):
        deep = [deep]
    assert json.dumps([plain(each) for each in (cycle, deep, Hostile(), [Hostile()], Agreeable(), object)])


def test_a_field_is_read_from_objects_and_mappings_alike() -> None:
    """None where there is none, or where reading it raises."""
    found = [
        field_of({"text": 1}, "text"),
        field_of(Point(2, set()), "x"),
        field_of(None, "x"),
        field_of(Hostile(), "text"),
    ]
    assert found == [1, 2, None, None]


def test_an_object_is_asked_for_where_only_an_object_will_do() -> None:
    """A list is none."""
    assert (plain_object([1]), plain_object({"a": 1})) == ({}, {"a": 1})
