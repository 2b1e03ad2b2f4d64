"""A run in memory: the fold of its records, and the outbox of those not yet committed.

A run changes only in `apply`, one record at a time and in constant time, so that the live run, a resumed one and
an audited one are the same value by construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import attrs

from orchestrator.attempt import Attempt
from orchestrator.spec import MergedSpec
from orchestrator_events.clock import Clock
from orchestrator_events.event import Event
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionCancelled,
    ExecutionEnd,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStart,
    SubscriberFailed,
)
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.record import Record
from orchestrator_events.run import (
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    GenerationAbandoned,
    GenerationStarted,
    PromptReady,
    PromptRefined,
)
from orchestrator_states.machine import TableEvent, TableMachine

__all__ = ["Attempt", "Run"]

new_record = tuple.__new__


@attrs.define(eq=False)
class Run:
    """Everything about one run that outlives an effect."""

    run_id: str
    spec: MergedSpec
    machine: TableMachine
    ledger: Ledger
    clock: Clock
    journal: Journal
    state: str
    lifecycle: str
    opening: str = ""
    """What every prompt of the run begins with."""
    sequence: int = 0
    invocation: int = 0
    outbox: list[Record] = attrs.Factory(list[Record])
    """Records that are not yet committed."""
    records: list[Record] = attrs.Factory(list[Record])
    """Records that are."""
    attempts: list[Attempt] = attrs.Factory(list[Attempt])
    """Judged attempts, in order."""
    closest: Attempt | None = None
    """The best attempt with a candidate and a verdict."""
    ready: PromptReady | None = None
    started: GenerationStarted | None = None
    generated: CandidateGenerated | None = None
    refined: PromptRefined | None = None
    answered: int = 0
    """Generator calls that answered with a candidate."""
    exhausted: BudgetExhausted | None = None
    given_up: str = ""
    """Why the run was cancelled."""
    verdicts: dict[tuple[str, bytes], Attempt] = attrs.Factory(dict[tuple[str, bytes], Attempt])
    """First verdict on each candidate, by form and content, so that none is judged twice."""
    failed_subscribers: set[str] = attrs.Factory(set[str])
    triggers: Mapping[str, TableEvent] = attrs.field(init=False)
    """The machine's own, at hand: transitions' Machine answers attributes through `__getattr__`, which is slow."""

    def __attrs_post_init__(self) -> None:
        self.triggers = self.machine.triggers

    @property
    def last(self) -> Attempt | None:
        """The last judged attempt."""
        return self.attempts[-1] if self.attempts else None

    @property
    def is_over(self) -> bool:
        """Whether the run rests: nothing more happens in this invocation."""
        return self.state in self.machine.table.resting

    def remaining_seconds(self, now_us: int) -> float | None:
        """Active time left at a reading of the monotonic clock, seconds; None without a time limit."""
        ledger = self.ledger
        if ledger.limit_us is None:
            return None
        left = ledger.limit_us - ledger.elapsed_us(now_us)
        return left / 1_000_000 if left > 0 else 0.0

    def fire(self, event: Event) -> None:
        """Fire an event; IllegalTransitionError, with nothing moved, when the table does not allow it."""
        trigger = self.triggers.get(event.name)
        if trigger is None:
            self.machine.refuse(self.state, event)
        target = trigger.target(self.state, event)
        # A named tuple made by its base: its own constructor is a Python function, one more call an event.
        record = new_record(
            Record, (self.run_id, self.sequence + 1, self.clock.now(), self.lifecycle, self.state, target, event)
        )
        self.outbox.append(record)
        self.apply(record)

    def apply(self, record: Record) -> None:
        """Fold one record into the run."""
        _, self.sequence, _, _, _, self.state, event = record
        change = CHANGES.get(type(event))
        if change is not None:
            change(self, event)


def started(run: Run, event: ExecutionStart) -> None:
    """A new invocation: its clock starts."""
    run.invocation = event.invocation
    run.ledger.started_us = run.clock.monotonic()


def ended(run: Run, event: ExecutionEnd) -> None:
    """The invocation's active time joins that of the earlier ones."""
    run.ledger.carried_us = event.active_us
    run.ledger.started_us = None


def cut_off(run: Run, event: ExecutionInterrupted) -> None:
    """An earlier invocation has no end: what its records measured of its time is carried over."""
    run.ledger.carried_us = event.active_us


def resumed(run: Run, _: ExecutionResumed) -> None:
    """The run goes on: whatever had ended it no longer does."""
    run.exhausted = None
    run.given_up = ""


def prompted(run: Run, event: PromptReady) -> None:
    """A new attempt."""
    run.ready, run.started, run.generated = event, None, None
    run.ledger.attempts = event.attempt


def called(run: Run, event: GenerationStarted) -> None:
    """A call is in flight; what the guard reserved is held (again, when folding a journal)."""
    run.started = event
    run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1


def generated(run: Run, event: CandidateGenerated) -> None:
    """The call answered."""
    run.generated = event
    run.answered += 1
    run.ledger.settle(event.key, event.charge)


def abandoned(run: Run, event: GenerationAbandoned) -> None:
    """The call is charged and may be made again."""
    run.started = None
    run.ledger.settle(event.key, event.charge)


def failed(run: Run, event: AttemptFailed) -> None:
    """The attempt is judged: it does not conform, or no candidate came."""
    if event.charge is not None:
        run.ledger.settle(event.key, event.charge)
    run.ledger.repeats = event.repeats
    judged(run, event)


def judged(run: Run, event: AttemptFailed | AttemptPassed) -> None:
    """Close the attempt and see whether it is the closest so far."""
    if run.ready is None:
        return
    attempt = Attempt(run.ready, run.started, run.generated, event)
    run.attempts.append(attempt)
    if run.generated is not None:
        run.verdicts.setdefault((run.generated.form, run.generated.candidate.data), attempt)
        if attempt.is_closer_than(run.closest):
            run.closest = attempt


def refined(run: Run, event: PromptRefined) -> None:
    """What changes for the next attempt is decided."""
    run.refined = event


def exhausted(run: Run, event: BudgetExhausted) -> None:
    """A limit is reached."""
    run.exhausted = event


def given_up(run: Run, event: ExecutionCancelled) -> None:
    """The run is given up."""
    run.given_up = event.reason


def overran(run: Run, event: BudgetOverrun) -> None:
    """Nothing more is bought."""
    run.ledger.overruns += event.limits


def raised(run: Run, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()
    run.exhausted = None


def noted_failure(run: Run, event: SubscriberFailed) -> None:
    """A subscriber's failure is noted once."""
    run.failed_subscribers.add(event.subscriber)


CHANGES: dict[type[Event], Callable[[Run, Any], None]] = {
    ExecutionStart: started,
    ExecutionEnd: ended,
    ExecutionInterrupted: cut_off,
    ExecutionResumed: resumed,
    PromptReady: prompted,
    GenerationStarted: called,
    CandidateGenerated: generated,
    GenerationAbandoned: abandoned,
    AttemptFailed: failed,
    AttemptPassed: judged,
    PromptRefined: refined,
    BudgetExhausted: exhausted,
    BudgetOverrun: overran,
    ExecutionCancelled: given_up,
    BudgetRaised: raised,
    SubscriberFailed: noted_failure,
}
