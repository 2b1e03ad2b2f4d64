"""The port that a workflow's driver gives the components of a phase, and what it has to do for them.

All that a component does is an event of the workflow's run, committed before anything that costs. A component keeps
no state of its own: what it knows is the fold of `history`, so that a phase that is executed again after a crash finds
its attempts counted, its learnings kept, and the answers of its subagents paid for.

One execution of a phase lasts until `phase:finished` or `phase:failed`; a `phase:started` that follows neither is the
same execution, begun again. The hold of a subagent's call in the ledger is `call_key(run_id, subagent_id)`: the fold
of `subagent:finished` settles it, so the sum in `phase:finished` is told and not charged once more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.ports import Generator
from orchestrator_events.clock import Clock
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.ledger import Ledger

__all__ = ["BudgetReachedError", "ComponentHost", "call_key"]


class BudgetReachedError(OrchestratorError):
    """The budget allows no further call: `limit` names the limit, `detail` the sums. The driver exhausts the run."""

    def __init__(self, limit: str, detail: str) -> None:
        self.limit = limit
        self.detail = detail
        super().__init__(f"the budget's limit {limit} is reached ({detail}): raise it and resume")


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

    async def record(self, *events: Event) -> tuple[Event, ...]:
        """Fire and commit events of the run in one transaction; the events as recorded, secrets taken out.

        May be called from tasks side by side. Raises JournalError; a phase that the driver no longer waits for gets
        an error too, and nothing is recorded.
        """
        ...

    def remaining_seconds(self) -> float | None:
        """Time that is left to the phase or to the run, the shorter; None without a limit."""
        ...


def call_key(run_id: str, subagent_id: str) -> str:
    """Key of a subagent's call, in the ledger and for the generator."""
    return f"{run_id}:{subagent_id}"
