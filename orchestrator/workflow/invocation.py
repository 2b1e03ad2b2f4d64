"""One invocation of a workflow: the run, what is configured, and what lives no longer than the invocation."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from orchestrator.asking import ask
from orchestrator.closing import commit
from orchestrator.ports import Approver, Generator
from orchestrator.retries import RetryPolicy
from orchestrator.supervision import Supervisor
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator.workflow.decisions import Decide, Policy
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.phases import PhaseCall
from orchestrator.workflow.running import WorkflowRun
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock
from orchestrator_events.decision import Ruling
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event, Gate
from orchestrator_events.ledger import Ledger

if TYPE_CHECKING:
    from orchestrator.workflow.components.retry import Operation

__all__ = ["Invocation", "Parts", "PhaseClosedError", "PhaseHost"]


class PhaseClosedError(OrchestratorError):
    """The workflow has gone on without this execution of a phase; nothing is recorded for it any more."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        super().__init__(f"the workflow no longer waits for this execution of phase {phase}")


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

    def close_host(self) -> None:
        """Take nothing more from the phase that was under way."""
        if self.host is not None:
            self.host.is_closed = True
            self.host = None


@attrs.define(eq=False, kw_only=True)
class PhaseHost:
    """What the driver gives the components of one execution of a phase (see components/port.py)."""

    it: Invocation
    phase: str
    ends_us: int | None
    """Reading of the monotonic clock at which the phase's own time is over; None without a limit."""
    is_closed: bool = False

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
