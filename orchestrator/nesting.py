"""Runs inside runs: a child has a stream of its own, and its parent records where it began and how it ended.

One budget covers the tree without one ledger over it. What the parent reserves for a call is set aside before the
call is made and can be reserved by nobody else until it is settled; the child gets no more than that as its own
budget, reserves for its own calls out of it, and what it was charged in the end settles the parent's reservation.
So at every moment the sum of what is spent and held in the tree is at most the root's limits, as it would be with a
ledger that all shared, and a crash needs no joint transaction: the child's journal says what the call has cost.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import attrs

from orchestrator.allotment import Allotment
from orchestrator.charges import charged_before, charged_by, less, plus
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.execution import ChildEnded, ChildStarted, ExecutionStart
from orchestrator_events.journal import Head, Journal
from orchestrator_events.record import Record

if TYPE_CHECKING:
    from orchestrator.candidate import Candidate
    from orchestrator.execution import Execution
    from orchestrator.ports import Approver, Evaluator
    from orchestrator.redaction import Secrets
    from orchestrator.run import Run
    from orchestrator.spec import MergedSpec

__all__ = [
    "Allotment",
    "Nest",
    "NestClosedError",
    "Parent",
    "charged_by",
    "child_id_of",
    "is_nesting",
    "less",
    "load_child",
    "lost_charge",
    "nest_for",
    "plus",
]

Commit = Callable[[Bus, "Run"], Awaitable[None]]

LONGEST_ID = 128
"""Longest run id, characters."""


class NestClosedError(Exception):
    """The parent has gone on without this call; nothing may begin in it any more."""


@attrs.frozen(kw_only=True)
class Parent:
    """Where a child run comes from; its `execution:start` names all three."""

    root_id: str
    """Run at the top of the tree."""
    run_id: str
    sequence: int
    """The parent's record that announced the child."""

    @property
    def named(self) -> dict[str, Any]:
        """The fields of `execution:start` that name it."""
        return {"root_id": self.root_id, "parent_id": self.run_id, "parent_sequence": self.sequence}


@attrs.define(eq=False, kw_only=True)
class Nest:
    """What a call of a generator is given to start a run inside the run that asks.

    Everything here is for the duration of that one call; afterwards, and once the parent has gone on without the
    call, `begin` raises NestClosedError and `ended` does nothing.
    """

    root_id: str
    run_id: str
    key: str
    """Idempotency key of the call."""
    reservation: Reservation
    journal: Journal
    bus: Bus
    clock: Clock
    approver: Approver | None
    secrets: Secrets | None
    evaluator: Evaluator
    spec: MergedSpec
    expected: frozenset[str] | None
    """Ids of the cases that must pass; None where nobody knows them."""
    closest: Candidate | None
    """The closest candidate so far."""
    run: Run = attrs.field(repr=False)
    commit: Commit = attrs.field(repr=False)
    """Records and publishes what happened in the parent."""
    is_closed: bool = False

    @property
    def allotment(self) -> Allotment:
        """What the call may use from now on."""
        return Allotment.of(self.run.ledger, self.reservation)

    @property
    def charged(self) -> Charge:
        """What earlier tries of this very call were charged: it is not to be reported again."""
        return charged_before(events_of(self.run), self.key)

    @property
    def is_current(self) -> bool:
        """Whether the parent still waits for this call."""
        run = self.run
        started = run.started
        return (
            not self.is_closed
            and run.generated is None
            and not run.is_over
            and (started is not None and started.reservation.key == self.key and self.key in run.ledger.holds)
        )

    async def begin(self, child_id: str, lifecycle: str) -> Parent:
        """Announce a child and commit that, unless it was announced before the parent was cut off."""
        announced = sequence_of(self.run, child_id)
        if not announced:
            await self.tell(ChildStarted(child_id=child_id, lifecycle=lifecycle))
            announced = sequence_of(self.run, child_id)
        return Parent(root_id=self.root_id, run_id=self.run_id, sequence=announced)

    async def ended(self, child_id: str, head: Head, status: str) -> None:
        """Say how a child ended and where its chain does; ignored when the parent has gone on without it."""
        if self.is_current:
            await self.tell(ChildEnded(child_id=child_id, head=head.digest, count=head.count, status=status))

    async def tell(self, event: Event) -> None:
        """Fire an event of the parent and commit it."""
        if not self.is_current:
            raise NestClosedError(f"run {self.run_id} no longer waits for the call {self.key}")
        self.run.fire(event)
        await self.commit(self.bus, self.run)


def nest_for(run: Run, *, bus: Bus, approver: Approver | None, evaluator: Evaluator, commit: Commit) -> Nest:
    """The nest of the call that was just started."""
    started = run.started
    assert started is not None
    held = started.reservation
    return Nest(
        root_id=root_of(run),
        run_id=run.run_id,
        key=held.key,
        reservation=held,
        journal=run.journal,
        bus=bus,
        clock=run.clock,
        approver=approver,
        secrets=run.secrets,
        evaluator=evaluator,
        spec=run.spec,
        expected=run.expectation.expected,
        closest=None if run.closest is None else run.closest.candidate,
        run=run,
        commit=commit,
    )


def child_id_of(key: str) -> str:
    """The run id of the child that a call starts: derived from its key, so that a resume finds it."""
    wanted = key.replace(":", ".")
    if len(wanted) <= LONGEST_ID:
        return wanted
    return f"{wanted[: LONGEST_ID - 33]}-{sha256(key.encode()).hexdigest()[:32]}"


def is_nesting(generator: object) -> bool:
    """Whether a generator starts runs of its own, so that its requests have a nest."""
    return getattr(generator, "nests", False) is True


async def lost_charge(run: Run, generator: object) -> Charge:
    """What the call in flight is charged where its outcome is lost: the whole reservation, for a plain one.

    Of a call that started a child, what the child's journal says that it cost, the child's own calls without a known
    outcome in full: the child goes on when the call is made again, and nothing is to be paid twice. One that was to
    start a child and had not announced it has bought nothing.
    """
    assert run.started is not None
    key = run.started.reservation.key
    child_id = child_id_of(key)
    if not sequence_of(run, child_id):
        return Charge() if is_nesting(generator) else run.ledger.worst_case(key)
    try:
        if (await run.journal.head(child_id)).count == 0:
            return Charge()
        return less(charged_by(await load_child(run.journal, child_id)), charged_before(events_of(run), key))
    except OrchestratorError:  # a child that cannot be read: nothing is known, so all of it
        return run.ledger.worst_case(key)


async def load_child(journal: Journal, child_id: str) -> Execution:
    """A child as its records tell it."""
    from orchestrator.history import load_execution

    return await load_execution(journal, child_id)


def events_of(run: Run) -> Iterable[Event]:
    """Every event of a run, those that are not yet committed included."""
    return (record.event for record in (*run.records, *run.outbox))


def sequence_of(run: Run, child_id: str) -> int:
    """The record that announced a child; 0 when none did."""
    records: Iterable[Record] = (*run.records, *run.outbox)
    return next(
        (
            record.sequence
            for record in records
            if isinstance(record.event, ChildStarted) and record.event.child_id == child_id
        ),
        0,
    )


def root_of(run: Run) -> str:
    """The run at the top of the tree that a run belongs to: itself, where nothing started it."""
    start = next(iter(events_of(run)), None)
    return (start.root_id if isinstance(start, ExecutionStart) else "") or run.run_id
