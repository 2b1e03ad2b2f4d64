"""The port that a workflow's driver gives the components of a phase, and what it has to do for them.

All that a component does is an event of the workflow's run, committed before anything that costs. A component keeps
no state of its own: what it knows is the fold of `history`, so that a phase that is executed again after a crash finds
its attempts counted, its learnings kept, and the answers of its subagents paid for.

One execution of a phase lasts until `phase:finished` or `phase:failed`; a `phase:started` that follows neither is the
same execution, begun again. The hold of a subagent's call in the ledger is `call_key(run_id, subagent_id)`: the fold
of `subagent:finished` settles it, so the sum in `phase:finished` is told and not charged once more. Runs inside a phase
are children of the run (see children.py), whose sums are told and settled in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from orchestrator.nesting import Parent
from orchestrator.ports import Approver, Generator
from orchestrator_events.bus import Bus
from orchestrator_events.clock import Clock
from orchestrator_events.decision import Ruling
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event, Gate
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["BudgetReachedError", "CallDeniedError", "ComponentHost", "PhaseClosedError", "call_key"]


class BudgetReachedError(OrchestratorError):
    """The budget allows no further call: `limit` names the limit, `detail` the sums. The driver exhausts the run."""

    def __init__(self, limit: str, detail: str) -> None:
        self.limit = limit
        self.detail = detail
        super().__init__(f"the budget's limit {limit} is reached ({detail}): raise it and resume")


class CallDeniedError(OrchestratorError):
    """Somebody who answers a gate denied a call; `reason` says why."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the call was denied: {reason}")


class PhaseClosedError(OrchestratorError):
    """The workflow has gone on without this execution of a phase; nothing is recorded for it any more."""

    def __init__(self, phase: str) -> None:
        self.phase = phase
        super().__init__(f"the workflow no longer waits for this execution of phase {phase}")


class ComponentHost(Protocol):
    """What the components of one phase work on. The driver makes one for each execution of a phase."""

    @property
    def run_id(self) -> str:
        """The workflow's run."""
        ...

    @property
    def phase(self) -> str:
        """The phase that is being executed."""
        ...

    @property
    def history(self) -> Sequence[Event]:
        """The run's events so far, oldest first, what was just recorded included.

        Of all kinds, or at least `phase:started`, `phase:finished`, `phase:failed` and those of the components.
        """
        ...

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        ...

    @property
    def ledger(self) -> Ledger:
        """The run's ledger: components reserve in it, the driver's fold settles."""
        ...

    @property
    def generators(self) -> Mapping[str, Generator]:
        """Generators by name."""
        ...

    @property
    def journal(self) -> Journal:
        """Where children of the run are recorded; it takes nothing more once the phase is over."""
        ...

    @property
    def bus(self) -> Bus:
        """The run's bus."""
        ...

    @property
    def approver(self) -> Approver | None:
        """Who is asked where a subscriber asks for a person."""
        ...

    @property
    def secrets(self) -> Secrets | None:
        """Values that no record may show."""
        ...

    def driving(self) -> AbstractContextManager[None]:
        """Entered while the current task drives a child, which is cancelled where the phase leaves it behind."""
        ...

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Fire and commit events of the run in one transaction; the events as recorded, secrets taken out.

        May be called from tasks side by side. Raises JournalError; a phase that the driver no longer waits for gets
        an error too, and nothing is recorded.
        """
        ...

    async def asked(self, gate: Gate) -> Ruling:
        """Put a gate to those who answer it, a person where they ask for one, the budget last."""
        ...

    async def begin(self, child_id: str, lifecycle: str, *events: Event) -> Parent:
        """Announce a child of the run, unless it was announced, with these events; committed when this returns."""
        ...

    def remaining_seconds(self) -> float | None:
        """Time that is left to the phase or to the run, the shorter; None without a limit."""
        ...


def call_key(run_id: str, subagent_id: str) -> str:
    """Key of a subagent's call, in the ledger and for the generator."""
    return f"{run_id}:{subagent_id}"
