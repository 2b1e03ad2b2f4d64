"""Budgets: which limits are limits."""

from __future__ import annotations

import pytest

from orchestrator_events import Budget

HARD = ("attempts", "seconds", "tokens", "input_tokens", "output_tokens")


def test_the_default_is_five_attempts_and_three_repeats() -> None:
    """A budget that says nothing is bounded all the same."""
    assert Budget() == Budget(attempts=5, repeats=3)


def test_a_budget_without_a_hard_limit_is_refused() -> None:
    """No run is unbounded: repeats alone bound nothing, since every candidate may differ."""
    with pytest.raises(ValueError, match="at least one of attempts, seconds, tokens"):
        Budget(attempts=None, repeats=3)


def test_money_alone_is_no_bound() -> None:
    """A generator that reports a cost of 0 would be called for ever."""
    with pytest.raises(ValueError, match="calls that cost nothing"):
        Budget(attempts=None, money_micro=1_000)


@pytest.mark.parametrize("limit", HARD)
def test_any_one_hard_limit_suffices(limit: str) -> None:
    """Each of the five bounds a run by itself."""
    limits: dict[str, int | None] = {"attempts": None, "repeats": None, limit: 1}
    budget = Budget(**limits)
    assert [name for name in HARD if getattr(budget, name) is not None] == [limit]


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "5", float("nan")])
@pytest.mark.parametrize("limit", ["attempts", "tokens", "repeats"])
def test_a_count_is_a_whole_number_above_zero(limit: str, value: object) -> None:
    """Fractions, booleans and texts are refused with the name of the limit and the value."""
    with pytest.raises(ValueError, match=rf"budget\.{limit} must be a whole number above 0 or None"):
        Budget(**{limit: value})  # type: ignore[arg-type]  # what is refused here


@pytest.mark.parametrize("value", [0, -1.0, True, "5", float("nan"), float("inf"), 1e-9])
def test_seconds_are_finite_and_above_zero(value: object) -> None:
    """An infinite time limit is none, and below a microsecond nothing can be stored."""
    with pytest.raises(ValueError, match=r"budget\.seconds must be a number above 0 or None"):
        Budget(seconds=value)  # type: ignore[arg-type]  # what is refused here
