"""Times in words, and how often a run took moves."""

from __future__ import annotations

import pytest

from orchestrator_states.path import PathOverlay, span


@pytest.mark.parametrize(
    ("time_us", "words"),
    [
        (0, "<1ms"),
        (999, "<1ms"),
        (12_400, "12ms"),
        (99_400, "99ms"),
        (100_000, "0.1s"),
        (8_123_456, "8.1s"),
        (59_949_999, "59.9s"),
        (59_950_000, "1m 00s"),
        (125_000_000, "2m 05s"),
        (3_720_000_000, "1h 02m"),
    ],
)
def test_spans(time_us: int, words: str) -> None:
    """A time has the unit that people would choose."""
    assert span(time_us) == words


def test_what_is_not_known_is_nothing() -> None:
    """A path without a state or a move says nothing of it."""
    path = PathOverlay(visits={"a": 1}, moves={("a", "e", "b"): 2}, times_us={"a": 0})
    assert (path.time("a"), path.time("b"), path.taken([("a", "e", "b"), ("b", "e", "a")])) == ("", "", 2)
