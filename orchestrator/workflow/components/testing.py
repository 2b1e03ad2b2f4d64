"""A host of components without a workflow around it, to test phases that are callables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

import attrs

from orchestrator.journal.memory import MemoryJournal
from orchestrator.nesting import Parent
from orchestrator.ports import Approver, Generator
from orchestrator.testing.clock import ManualClock
from orchestrator.workflow.components.bundle import Components, components_for
from orchestrator.workflow.components.port import call_key
from orchestrator.workflow.components.retry import Operation
from orchestrator.workflow.components.settings import ComponentSettings
from orchestrator_events.budget import Budget
from orchestrator_events.bus import Bus, Question
from orchestrator_events.canonical import writer
from orchestrator_events.decision import Ruling
from orchestrator_events.errors import JournalError
from orchestrator_events.event import Event, Gate
from orchestrator_events.execution import ChildStarted
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.subscribers.guard import guard_budget
from orchestrator_events.workflow import SubagentFinished, SubagentSpawned

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["RecordingHost"]


@attrs.define(eq=False, kw_only=True)
class RecordingHost:
    """Keeps what components record in `history`, and settles its ledger as a workflow's fold does.

    >>> import asyncio
    >>> async def phase(host):
    ...     await host.components().metrics.count("files_modified", 2)
    >>> host = RecordingHost(phase="03-implement")
    >>> asyncio.run(phase(host))
    >>> host.history[0].metric, host.history[0].value, host.history[0].scope
    ('files_modified', 2, '03-implement')
    """

    run_id: str = "workflow"
    phase: str = "01-work"
    history: list[Event] = attrs.field(factory=list)
    """Give the events of an earlier beginning to see what a phase makes of them."""
    clock: ManualClock = attrs.field(factory=ManualClock)
    generators: Mapping[str, Generator] = attrs.field(factory=dict)
    budget: Budget = attrs.field(factory=Budget)
    settings: ComponentSettings = attrs.field(factory=ComponentSettings)
    operations: dict[str, Operation] = attrs.field(factory=dict)
    seconds: float | None = None
    """Time left; it does not pass."""
    journal: Journal = attrs.field(factory=MemoryJournal)
    """Where children are recorded."""
    bus: Bus = attrs.field(factory=lambda: Bus(guard=guard_budget))
    approver: Approver | None = None
    secrets: Secrets | None = None
    breaks_after: int | None = None
    """How many commits succeed before the journal breaks; None: all."""
    commits: list[tuple[Event, ...]] = attrs.field(factory=list, init=False)
    """What was committed together, in order."""
    ledger: Ledger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.ledger = Ledger(self.budget, self.clock)
        self.fold(self.history)

    def components(self) -> Components:
        """The components of one execution of the phase; called in the loop that runs it."""
        return components_for(self.settings, self, self.operations)

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Keep them, each as the journal's codec could store it."""
        if self.breaks_after is not None and len(self.commits) >= self.breaks_after:
            raise JournalError("the disk is full", run_id=self.run_id)
        for event in events:
            write = writer(type(event))  # type: ignore[arg-type]  # mypy takes the hash of its instances for the class's
            write(event).encode()
        self.history += events
        self.commits.append(events)
        self.fold(events)
        return events

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to the bus."""
        ruling = await self.bus.ask(Question(self.run_id, "workflow", "executing", gate, self.ledger))
        if ruling.deny is not None and ruling.reservation is not None:
            self.ledger.release(ruling.reservation.key)
        return ruling

    async def begin(self, child_id: str, lifecycle: str, *events: Event) -> Parent:
        """Announce a child, unless it was; its sequence is its place in the history."""
        announced = ChildStarted(child_id=child_id, lifecycle=lifecycle)
        told = () if announced in self.history else (announced,)
        if told or events:
            await self.record(*told, *events)
        return Parent(root_id=self.run_id, run_id=self.run_id, sequence=self.history.index(announced) + 1)

    def driving(self) -> AbstractContextManager[None]:
        """Nothing is cancelled here."""
        return nullcontext()

    def remaining_seconds(self) -> float | None:
        """The time that is left."""
        return self.seconds

    def fold(self, events: Iterable[Event]) -> None:
        """What events change in the ledger."""
        for event in events:
            if isinstance(event, SubagentSpawned) and event.reservation is not None:
                self.ledger.holds.setdefault(event.reservation.key, event.reservation)
            elif isinstance(event, SubagentFinished):
                self.ledger.settle(call_key(self.run_id, event.subagent_id), event.charge)
