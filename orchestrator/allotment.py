"""What a call may use of its run's budget, and as the budget of a run that it starts."""

from __future__ import annotations

import attrs

from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.ledger import Ledger

__all__ = ["Allotment"]


@attrs.frozen(kw_only=True)
class Allotment:
    """What one call may use: no more than the parent has reserved for it, or has left where it reserves nothing."""

    seconds: float | None = None
    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    money_micro: int | None = None

    @classmethod
    def of(cls, ledger: Ledger, reservation: Reservation) -> Allotment:
        """What a reservation sets aside, less what earlier tries of the call were charged.

        Input is reserved as one prompt, while an agent reads its conversation again each turn: where the budget
        limits it by itself, all that is left of it may be used, since a run makes one call at a time.
        """
        left = {limit: cap - spent for limit, spent, cap in ledger.sums() if cap is not None}
        writes = reservation.output_tokens
        limit_us = ledger.limit_us
        return cls(
            seconds=None if limit_us is None else (limit_us - ledger.elapsed_us()) / 1_000_000,
            tokens=left.get("tokens"),
            input_tokens=left.get("input_tokens"),
            output_tokens=smaller(writes, left.get("output_tokens")),
            money_micro=smaller(reservation.money_micro, left.get("money_micro")),
        )

    def after(self, used: Charge, seconds_used: float) -> Allotment:
        """The allotment of a run that used so much before and goes on: its limits count from its beginning."""
        return Allotment(
            seconds=None if self.seconds is None else self.seconds + seconds_used,
            tokens=more(self.tokens, used.input_tokens + used.output_tokens),
            input_tokens=more(self.input_tokens, used.input_tokens),
            output_tokens=more(self.output_tokens, used.output_tokens),
            money_micro=more(self.money_micro, used.money_micro),
        )

    def budget(self, attempts: int) -> Budget:
        """As a budget with so many attempts; at least one unit of each, which no call fits into."""
        return Budget(
            attempts=attempts,
            repeats=None,
            seconds=None if self.seconds is None else max(self.seconds, 0.001),
            tokens=at_least_one(self.tokens),
            input_tokens=at_least_one(self.input_tokens),
            output_tokens=at_least_one(self.output_tokens),
            money_micro=at_least_one(self.money_micro),
        )


def smaller(one: int | None, other: int | None) -> int | None:
    """The smaller of two limits, where None is none."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


def more(limit: int | None, used: int) -> int | None:
    """A limit that counts from an earlier beginning."""
    return None if limit is None else limit + used


def at_least_one(limit: int | None) -> int | None:
    """A limit as a budget takes it."""
    return None if limit is None else max(1, limit)
