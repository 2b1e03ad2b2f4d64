"""The one budget of a plan: what all its steps spend and hold, whoever of them runs at the same time."""

from __future__ import annotations

import asyncio

import attrs

from orchestrator.charges import spent
from orchestrator.nesting import Allotment
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.steprun import StepRun
from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.clock import Clock
from orchestrator_events.ledger import Ledger, Refusal
from orchestrator_events.plan import WorkStarted

__all__ = ["Account", "BudgetReachedError"]

TURNS_HELD = 8
"""An agent reads its conversation again with each turn: where input is limited, so many prompts are held for it."""


class BudgetReachedError(Exception):
    """A limit of the plan's budget forbids another run; the plan is left open."""

    def __init__(self, limit: str, detail: str) -> None:
        self.limit = limit
        self.detail = detail
        super().__init__(f"the limit {limit!r} is reached: {detail}")


@attrs.define(eq=False)
class Account:
    """Reserves for each run inside the plan before it starts, and settles after it; a run counts as an attempt."""

    ledger: Ledger
    changed: asyncio.Condition = attrs.Factory(asyncio.Condition)
    is_closed: bool = False
    """Whether nothing more is given out, since the plan is about to be left open."""

    @classmethod
    def of(cls, run: PlanRun, steps: list[StepRun], budget: Budget, clock: Clock) -> Account:
        """The account as the records of a plan and its steps leave it."""
        ledger = Ledger(budget, clock)
        ledger.carried_us, ledger.started_us = run.ledger.carried_us, run.ledger.started_us
        for each in (run, *steps):
            ledger.add(spent(each.ledger))
            ledger.attempts += sum(isinstance(record.event, WorkStarted) for record in each.records)
            for key, held in each.ledger.holds.items():
                ledger.holds[key] = held
        return cls(ledger)

    async def reserve(self, key: str, prompt: str, max_tokens: int | None, turns: int = 1) -> Reservation:
        """What is set aside for a run; waits while others hold what it needs.

        Raises BudgetReachedError when nothing that could be given back would help.
        """
        text = prompt * turns if self.ledger.budget.input_tokens is not None else prompt
        async with self.changed:
            while True:
                held = self.ledger.reserve(key, self.ledger.attempts + 1, text + " " * 400, max_tokens)
                if isinstance(held, Reservation):
                    self.ledger.attempts += 1
                    return held
                if self.is_closed or not self.ledger.holds or self.is_final(held):
                    raise BudgetReachedError(held.limit, held.detail)
                await self.changed.wait()

    async def close(self) -> None:
        """Give nothing more out; whoever waits is told that the limit is reached."""
        self.is_closed = True
        async with self.changed:
            self.changed.notify_all()

    def is_final(self, refusal: Refusal) -> bool:
        """Whether the limit is reached by what is spent already."""
        return self.ledger.refusal(self.ledger.attempts + 1, self.ledger.elapsed_us()) is not None or (
            refusal.limit in ("attempts", "seconds")
        )

    async def settle(self, key: str, charge: Charge) -> tuple[str, ...]:
        """Replace what was held by what it cost; the limits that this passes."""
        over = self.ledger.overrun(key, charge)
        self.ledger.settle(key, charge)
        self.ledger.overruns += over
        async with self.changed:
            self.changed.notify_all()
        return over

    def allotment(self, held: Reservation) -> Allotment:
        """What a run with this reservation may use: no more, whatever else the plan has left."""
        budget, limit_us = self.ledger.budget, self.ledger.limit_us
        writes = held.output_tokens
        both = None if writes is None else held.input_tokens + writes
        return Allotment(
            seconds=None if limit_us is None else (limit_us - self.ledger.elapsed_us()) / 1_000_000,
            tokens=None if budget.tokens is None else both,
            input_tokens=None if budget.input_tokens is None else held.input_tokens,
            output_tokens=None if budget.output_tokens is None else writes,
            money_micro=held.money_micro,
        )
