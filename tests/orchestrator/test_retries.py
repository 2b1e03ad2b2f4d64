"""What the retry policy promises."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.retries import RetryPolicy

DAYS = 3 * 86_400.0


def test_waits_grow_up_to_the_longest() -> None:
    """Each is `factor` times the one before; after the last retry there is none."""
    policy = RetryPolicy(retries=5, first_wait=2, factor=3, longest_wait=20)
    assert [policy.wait(done, None, None) for done in range(7)] == [2, 6, 18, 20, 20, None, None]


@pytest.mark.parametrize(
    ("done", "retry_after", "left", "wait", "reason"),
    [
        (0, None, None, 1.0, ""),
        (0, 5.0, 60.0, 5.0, ""),
        (0, 0.1, 60.0, 1.0, ""),
        (0, -5.0, 60.0, 1.0, ""),
        (0, math.nan, 60.0, 1.0, ""),
        (0, 60.0, 60.0, None, "the next try would have to wait 60 s, the run has 60.0 s left"),
        (0, None, 0.5, None, "the next try would have to wait 1 s, the run has 0.5 s left"),
        (0, None, -1.0, None, "the next try would have to wait 1 s, the run has 0.0 s left"),
        (0, DAYS, None, None, "the server asks to wait 259200 s, at most 600 s are waited"),
        (0, DAYS, 10 * DAYS, None, "the server asks to wait 259200 s, at most 600 s are waited"),
        (0, math.inf, None, None, "the server asks to wait inf s, at most 600 s are waited"),
        (2, None, None, None, "tried 3 times"),
    ],
)
def test_what_a_server_asks_for_holds_within_the_budget(
    done: int, retry_after: float | None, left: float | None, wait: float | None, reason: str
) -> None:
    """Never less than it asks, never more than the run has left, never for days; and why not, in words."""
    policy = RetryPolicy()
    assert (policy.wait(done, retry_after, left), policy.refusal(done, retry_after, left)) == (wait, reason)


def test_retries_can_be_off() -> None:
    """A call is then made once."""
    policy = RetryPolicy(retries=0)
    assert (policy.wait(0, None, None), policy.refusal(0, None, None)) == (None, "retries are off")


@pytest.mark.parametrize(
    "wrong",
    [
        {"retries": -1},
        {"retries": 1.5},
        {"retries": True},
        {"first_wait": -0.1},
        {"factor": math.nan},
        {"longest_wait": math.inf},
        {"longest_retry_after": "9"},
    ],
)
def test_absurd_policies_are_refused(wrong: dict[str, Any]) -> None:
    """The message names the field."""
    with pytest.raises(ValueError, match=next(iter(wrong))):
        RetryPolicy(**wrong)


@given(
    st.integers(0, 10**6),
    st.none() | st.floats(),
    st.none() | st.floats(allow_nan=False),
    st.floats(0, 1e9),
    st.floats(0, 1e9),
)
def test_a_wait_is_always_a_time_that_is_there(
    done: int, retry_after: float | None, left: float | None, first: float, factor: float
) -> None:
    """Whatever a server and a configuration say, it is finite, from 0, and shorter than what is left."""
    policy = RetryPolicy(retries=10**6 + 1, first_wait=first, factor=factor)
    wait = policy.wait(done, retry_after, left)
    assert (wait is None) == bool(policy.refusal(done, retry_after, left))
    assert wait is None or 0 <= wait <= 600
    assert wait is None or left is None or wait < left
