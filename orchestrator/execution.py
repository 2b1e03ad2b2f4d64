"""What every lifecycle's run is: the fold of its records, and the outbox of those not yet committed.

An execution changes only in `apply`, one record at a time and in constant time, so that the live one, a resumed
one and an audited one are the same value by construction. What a lifecycle adds is fields, and a table of what
each event changes in them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import attrs

from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.event import Event
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionEnd,
    ExecutionInterrupted,
    ExecutionStart,
    IsolationEstablished,
    SubscriberFailed,
)
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.record import Record
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.machine import TableEvent, TableMachine, machine_of

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["Changes", "Execution", "changes_of"]

Changes = Mapping[type[Event], Callable[[Any, Any], None]]
"""What each event changes in an execution."""

new_record = tuple.__new__


@attrs.define(eq=False, kw_only=True)
class Execution:
    """Everything about one run that outlives an effect, whichever lifecycle it has."""

    changes: ClassVar[Changes] = {}

    run_id: str
    machine: TableMachine
    ledger: Ledger
    clock: Clock
    journal: Journal
    state: str
    lifecycle: str
    sequence: int = 0
    invocation: int = 0
    outbox: list[Record] = attrs.Factory(list[Record])
    """Records that are not yet committed."""
    records: list[Record] = attrs.Factory(list[Record])
    """Records that are."""
    isolation: IsolationEstablished | None = None
    """What holds in what the run starts, this invocation."""
    failed_subscribers: set[str] = attrs.Factory(set[str])
    secrets: Secrets | None = None
    """What no record may hold; None where nothing is registered."""
    triggers: Mapping[str, TableEvent] = attrs.field(init=False)
    """The machine's own, at hand: transitions' Machine answers attributes through `__getattr__`, which is slow."""

    def __attrs_post_init__(self) -> None:
        self.triggers = self.machine.triggers

    @classmethod
    def blank(cls, run_id: str, table: Lifecycle, budget: Budget, clock: Clock, journal: Journal, **own: Any) -> Self:
        """One in its table's first state, to fold records into; `own` is what its lifecycle adds."""
        machine = machine_of(table)
        return cls(
            run_id=run_id,
            machine=machine,
            ledger=Ledger(budget, clock),
            clock=clock,
            journal=journal,
            state=machine.table.initial,
            lifecycle=machine.table.name,
            **own,
        )

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
        if self.secrets is not None:
            event = self.secrets.cleansed(event)
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
        change = self.changes.get(type(event))
        if change is not None:
            change(self, event)


def changes_of(own: Changes) -> Changes:
    """What the shared events change, and what a lifecycle's own do."""
    return {**SHARED, **own}


def started(run: Execution, event: ExecutionStart) -> None:
    """A new invocation: its clock starts."""
    run.invocation = event.invocation
    run.ledger.started_us = run.clock.monotonic()


def ended(run: Execution, event: ExecutionEnd) -> None:
    """The invocation's active time joins that of the earlier ones."""
    run.ledger.carried_us = event.active_us
    run.ledger.started_us = None


def cut_off(run: Execution, event: ExecutionInterrupted) -> None:
    """An earlier invocation has no end: what its records measured of its time is carried over."""
    run.ledger.carried_us = event.active_us


def isolated(run: Execution, event: IsolationEstablished) -> None:
    """What holds in what the run starts is known."""
    run.isolation = event


def raised(run: Execution, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()


def noted_failure(run: Execution, event: SubscriberFailed) -> None:
    """A subscriber's failure is noted once."""
    run.failed_subscribers.add(event.subscriber)


SHARED: Changes = {
    ExecutionStart: started,
    ExecutionEnd: ended,
    ExecutionInterrupted: cut_off,
    IsolationEstablished: isolated,
    BudgetRaised: raised,
    SubscriberFailed: noted_failure,
}
