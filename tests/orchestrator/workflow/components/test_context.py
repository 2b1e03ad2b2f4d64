"""The bounded context of subagents: it always fits, the short fields stay whole, and what is cut is said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workflow.components.context import ContextError, bounded_context, json_of


def test_what_fits_is_given_whole() -> None:
    """Nothing is cut that need not be."""
    context = {"story": "add", "files": ["a.py"], "depth": 2}

    bounded = bounded_context("TESTER", context, 4_096)

    assert (bounded.fields, bounded.cut) == (context, ())


def test_the_longest_field_is_cut_to_head_and_tail_and_that_is_said() -> None:
    """The short fields stay whole; the cut one says how much is missing."""
    bounded = bounded_context("TESTER", {"story": "add", "log": "begin" + "x" * 9_000 + "end"}, 4_096)

    log = str(bounded.fields["log"])
    assert bounded.fields["story"] == "add"
    assert (log[:5], log[-3:], "characters left out" in log) == ("begin", "end", True)
    assert bounded.cut == (f"log has 9010 characters, {len(json_of(log))} are shown",)


def test_fields_for_which_there_is_no_room_are_left_out_and_named() -> None:
    """A context of very many fields still fits."""
    bounded = bounded_context("TESTER", {f"field{number}": "x" * 90 for number in range(200)}, 1_000)

    assert len(json_of(dict(bounded.fields))) <= 1_000
    assert bounded.cut[0] == "136 more fields are left out"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=900),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=12,
)


@given(
    context=st.dictionaries(st.text(min_size=1, max_size=80).filter(lambda key: key.isprintable()), json_values),
    limit=st.integers(256, 2_000),
)
def test_no_context_is_longer_than_its_limit(context: dict[str, object], limit: int) -> None:
    """Whatever the context holds, its JSON text keeps to the limit, and something is said where something is cut."""
    bounded = bounded_context("TESTER", context, limit)

    assert len(json_of(dict(bounded.fields))) <= limit
    assert bool(bounded.cut) == (len(json_of(dict(bounded.fields))) < len(json_of(bounded_whole(context))))


def bounded_whole(context: dict[str, object]) -> dict[str, object]:
    """The context as it would be given without a limit."""
    return dict(bounded_context("TESTER", context, 10**9).fields)


@pytest.mark.parametrize("key", ["", "k" * 81, 7, "\ud800"])
def test_a_key_that_is_no_name_is_refused(key: object) -> None:
    """Keys are told to people and models; a context with odd ones is an error of the phase."""
    with pytest.raises(ContextError, match="use texts of 1 to 80 characters"):
        bounded_context("TESTER", {key: 1}, 4_096)  # type: ignore[dict-item]  # what is tested
