"""One invocation of a workflow: the run, what is configured, and what lives no longer than the invocation."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import attrs

from orchestrator.asking import ask
from orchestrator.closing import commit
from orchestrator.nesting import Parent
from orchestrator.ports import Approver, Generator
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator.workflow.components.port import PhaseClosedError
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator.workflow.decisions import Decide, Policy
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.gating import asked_inside
from orchestrator.workflow.phasejournal import PhaseJournal
from orchestrator.workflow.phases import PhaseCall
from orchestrator.workflow.running import WorkflowRun
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock
from orchestrator_events.decision import Ruling
from orchestrator_events.event import Event, Gate
from orchestrator_events.execution import ChildStarted, ExecutionStart
from orchestrator_events.ledger import Ledger

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets
    from orchestrator.workflow.components.learningstore import LearningStore
    from orchestrator.workflow.components.retry import Operation

__all__ = ["Invocation", "Parts", "PhaseHost"]


GRACE_S: Final = 0.2
"""Between cancelling what a phase left behind and going on without it, seconds."""


@attrs.define(eq=False, kw_only=True)
class Parts:
    """What is configured, for any number of runs."""

    domain: Domain
    calls: Mapping[str, PhaseCall]
    """Callables that execute phases, by the phase's id."""
    generators: Mapping[str, Generator]
    generator: str
    """Name of the one that executes phase files; empty where there is none."""
    components: ComponentSettings
    operations: Mapping[str, Operation]
    bus: Bus
    approver: Approver | None
    retries: RetryPolicy
    decide: Decide | None
    policy: Policy
    learnings: LearningStore | None
    """Records that a run takes in."""
    answer_limit: int
    """Longest answer of a generator, bytes."""


@attrs.define(eq=False, kw_only=True)
class Invocation:
    """A workflow while it is driven."""

    run: WorkflowRun
    parts: Parts
    supervisor: Supervisor = attrs.field(init=False)
    host: PhaseHost | None = None
    """What the components of the phase under way work on."""
    lock: asyncio.Lock = attrs.Factory(asyncio.Lock)
    """One commit at a time: a phase may record from several tasks."""

    def fire(self, event: Event) -> None:
        """Fire an event of the loop's own machine."""
        self.run.fire(event)

    async def commit(self) -> None:
        """Record and publish what happened since the last effect."""
        async with self.lock:
            await commit(self.parts.bus, self.run)

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to those who answer it, the budget last."""
        parts, run = self.parts, self.run
        return parts.bus.unopposed(gate, run.ledger) or await ask(parts.bus, parts.approver, run, self.supervisor, gate)

    def remaining_seconds(self) -> float | None:
        """Active time left, seconds; None without a time limit."""
        return self.run.remaining_seconds(self.run.clock.monotonic())

    async def close_host(self) -> None:
        """Take nothing more from the phase that was under way."""
        host, self.host = self.host, None
        if host is not None:
            await host.settled()


@attrs.define(eq=False, kw_only=True)
class PhaseHost:
    """What the driver gives the components of one execution of a phase (see components/port.py)."""

    it: Invocation
    phase: str
    ends_us: int | None
    """Reading of the monotonic clock at which the phase's own time is over; None without a limit."""
    is_closed: bool = False
    journal: PhaseJournal = attrs.field(init=False)
    """The run's, as long as the phase lasts."""
    drivers: set[asyncio.Task[Any]] = attrs.Factory(set[asyncio.Task[Any]])
    """Tasks that drive children."""

    def __attrs_post_init__(self) -> None:
        self.journal = PhaseJournal(self.it.run.journal)

    @property
    def run_id(self) -> str:
        """The workflow's run."""
        return self.it.run.run_id

    @property
    def history(self) -> Sequence[Event]:
        """The run's events so far, oldest first."""
        run = self.it.run
        return [record.event for records in (run.records, run.outbox) for record in records]

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return self.it.run.clock

    @property
    def ledger(self) -> Ledger:
        """The run's ledger."""
        return self.it.run.ledger

    @property
    def generators(self) -> Mapping[str, Generator]:
        """Generators by name."""
        return self.it.parts.generators

    @property
    def bus(self) -> Bus:
        """The run's bus."""
        return self.it.parts.bus

    @property
    def approver(self) -> Approver | None:
        """Who is asked where a subscriber asks for a person."""
        return self.it.parts.approver

    @property
    def secrets(self) -> Secrets | None:
        """Values that no record may show."""
        return self.it.run.secrets

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to those who answer it, the budget last."""
        return await asked_inside(self, gate)

    async def begin(self, child_id: str, lifecycle: str, *events: Event) -> Parent:
        """Announce a child, unless it was, with these events."""
        told = () if self.announced(child_id) else (ChildStarted(child_id=child_id, lifecycle=lifecycle),)
        if told or events:
            await self.record(*told, *events)
        start = self.it.run.records[0].event
        root = start.root_id if isinstance(start, ExecutionStart) else ""
        return Parent(root_id=root or self.run_id, run_id=self.run_id, sequence=self.announced(child_id))

    def announced(self, child_id: str) -> int:
        """The record that announced a child; 0 when none did."""
        events = (record for record in self.it.run.records if isinstance(record.event, ChildStarted))
        return next((each.sequence for each in events if getattr(each.event, "child_id", "") == child_id), 0)

    @contextmanager
    def driving(self) -> Iterator[None]:
        """The current task drives a child."""
        task = asyncio.current_task()
        assert task is not None
        self.drivers.add(task)
        try:
            yield
        finally:
            self.drivers.discard(task)

    async def settled(self) -> None:
        """Take nothing more from the phase: runs that it left end in order, as far as they give way in a moment."""
        left = self.drivers - {asyncio.current_task()}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE_S)
        self.is_closed = True
        async with self.it.lock:
            pass
        await self.journal.settled()

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Fire and commit events in one transaction; PhaseClosedError once the workflow has gone on."""
        it = self.it
        async with it.lock:
            if self.is_closed:
                raise PhaseClosedError(self.phase)
            first = len(it.run.outbox)
            for event in events:
                it.run.fire(event)
            recorded = tuple(record.event for record in it.run.outbox[first:])
            await commit(it.parts.bus, it.run)
            return recorded

    def remaining_seconds(self) -> float | None:
        """Time left to the phase or to the run, the shorter; None without a limit."""
        now = self.clock.monotonic()
        own = None if self.ends_us is None else max(0, self.ends_us - now) / 1_000_000
        left = [each for each in (own, self.it.run.remaining_seconds(now)) if each is not None]
        return min(left, default=None)
