"""`[budget]` and `[retries]`: what a run may use, and when a call is made again."""

from __future__ import annotations

from typing import Any

import attrs

from orchestrator.quantities import parse_count, parse_duration, parse_money
from orchestrator.retries import RetryPolicy
from orchestrator.sections.checking import read_by
from orchestrator_events.budget import Budget

__all__ = ["BudgetSection", "RetriesSection"]

USUAL = Budget()


@attrs.frozen(kw_only=True)
class BudgetSection:
    """`[budget]`: limits in any mix; "unlimited" lifts one, and what is left out has its default."""

    attempts: str | int | None = attrs.field(default=None, validator=read_by(parse_count))
    time: str | float | None = attrs.field(default=None, validator=read_by(parse_duration))
    """Active time: a number of seconds, or a text such as `10m`."""
    tokens: str | int | None = attrs.field(default=None, validator=read_by(parse_count))
    input_tokens: str | int | None = attrs.field(default=None, validator=read_by(parse_count))
    output_tokens: str | int | None = attrs.field(default=None, validator=read_by(parse_count))
    money: str | float | None = attrs.field(default=None, validator=read_by(parse_money))
    """In units of the currency that the generator reports."""
    repeats: str | int | None = attrs.field(default=None, validator=read_by(parse_count))

    def budget(self, default: Budget = USUAL) -> Budget:
        """The limits as the engine takes them, those left out as in `default`.

        ValueError when none is left that could stop a run.
        """
        limits: dict[str, Any] = {
            name: parse_count(value)
            for name, value in attrs.asdict(self).items()
            if value is not None and name not in ("time", "money")
        }
        if self.time is not None:
            limits["seconds"] = parse_duration(self.time)
        if self.money is not None:
            limits["money_micro"] = parse_money(self.money)
        return attrs.evolve(default, **limits)


def _bounded(value: str | float) -> float:
    seconds = parse_duration(value)
    if seconds is None:
        raise ValueError("a wait has to end: write a duration such as 30s")
    return seconds


def _from_zero(_instance: object, _attribute: object, value: float) -> None:
    if value < 0:
        raise ValueError(f"must be 0 or more, found {value}")


def _grows(_instance: object, _attribute: object, value: float) -> None:
    if value < 1:
        raise ValueError(f"must be 1 or more, found {value}")


@attrs.frozen(kw_only=True)
class RetriesSection:
    """`[retries]`: how often a call that failed in passing is made again, and how long is waited before."""

    retries: int = attrs.field(default=2, validator=_from_zero)
    first_wait: str | float = attrs.field(default=1.0, validator=read_by(_bounded))
    factor: float = attrs.field(default=2.0, validator=_grows)
    """How much longer each wait is than the one before."""
    longest_wait: str | float = attrs.field(default=30.0, validator=read_by(_bounded))

    def policy(self) -> RetryPolicy:
        """The policy as the engine takes it."""
        return RetryPolicy(
            retries=self.retries,
            first_wait=_bounded(self.first_wait),
            factor=self.factor,
            longest_wait=_bounded(self.longest_wait),
        )
