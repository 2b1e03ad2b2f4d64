"""Whatever comes from outside is plain JSON data before anything else is done with it."""

from __future__ import annotations

import json
from enum import Enum
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as any_of

from orchestrator.agent.answers import answer_of, read_answer
from orchestrator.agent.plainjson import bounded, clean, plain, written
from orchestrator.agent.ports import Reply, ToolCall

LEAVES = any_of.one_of(
    any_of.none(),
    any_of.booleans(),
    any_of.integers(),
    any_of.floats(),
    any_of.text(any_of.characters(codec=None)),
    any_of.binary(),
    any_of.builds(object),
)
ANYTHING = any_of.recursive(
    LEAVES,
    lambda inner: any_of.one_of(
        any_of.lists(inner),
        any_of.dictionaries(any_of.one_of(any_of.text(any_of.characters(codec=None)), any_of.integers()), inner),
        any_of.tuples(inner, inner),
        any_of.sets(any_of.integers()),
    ),
    max_leaves=20,
)


@given(ANYTHING)
def test_anything_becomes_strict_json_and_stays_it(value: Any) -> None:
    """It is written without an error, read back as it is, encoded as UTF-8, and not changed a second time."""
    text = written(value)
    text.encode()
    data = json.loads(text)
    assert data == plain(value)
    assert plain(data) == data


@given(any_of.text(any_of.characters(codec=None)), any_of.integers(min_value=1, max_value=200))
def test_bounded_text_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    """And it is the text itself, cleaned, where that fits."""
    cut = bounded(text, limit)
    assert len(cut) <= limit
    assert len(text) > limit or cut == clean(text)


@given(ANYTHING, ANYTHING, ANYTHING)
def test_any_reply_becomes_an_answer_whose_calls_can_be_told_apart(block: Any, call_id: Any, arguments: Any) -> None:
    """Every call has an id of its own, arguments that are an object, and survives being written and read."""
    calls = [ToolCall(id=call_id, tool="t", arguments=arguments)] * 2
    answer = answer_of(Reply(blocks=(block,), calls=tuple(calls), metadata=block), 1)
    ids = [call.id for call in answer.calls]
    assert len(set(ids)) == len(ids) == 2
    assert all(isinstance(call.arguments, dict) for call in answer.calls)
    assert read_answer(answer.content, 1) == answer


class Colour(Enum):
    """A value with a name."""

    RED = "red"


@attrs.frozen
class Shown:
    """An object with a text."""

    def __str__(self) -> str:
        return "shown"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Colour.RED, '"red"'),
        (Shown(), '"shown"'),
        ({3, 1, 2}, "[1,2,3]"),
        (float("-inf"), '"-inf"'),
        pytest.param(10**5000, None, id="huge"),
        ({1: {Shown(): 2}}, '{"1":{"shown":2}}'),
    ],
)
def test_what_json_has_no_word_for_becomes_a_text(value: Any, text: str | None) -> None:
    """Members of enums are their values; sets are sorted; numbers that no reader keeps are texts."""
    found = written(value)
    assert text is None or found == text
    json.loads(found)


def test_what_nests_too_deep_is_cut() -> None:
    """At 64 levels."""
    value: Any = "end"
    for _ in range(200):
        value = [value]
    text = written(value)
    assert (text.count("["), "nests too deep" in text) == (64, True)
