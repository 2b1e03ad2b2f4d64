"""Keeping registered secrets from those who are asked or told: the approver, the budget's guard, the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from orchestrator_events.budget import Reservation
from orchestrator_events.bus import Bus
from orchestrator_events.decision import Deny
from orchestrator_events.event import Gate
from orchestrator_events.ledger import Ledger
from orchestrator_events.question import Guard
from orchestrator_events.subscribers.guard import guard_budget
from orchestrator_events.subscribers.history import record_history

if TYPE_CHECKING:
    from orchestrator.ports import Approver
    from orchestrator.redaction import Secrets

__all__ = ["DiscreetApprover", "DiscreetGuard", "discreet", "wire"]


@attrs.define(eq=False)
class DiscreetApprover:
    """Asks a person without showing any secret."""

    approver: Approver
    secrets: Secrets

    async def approve(self, run_id: str, prompt: str) -> bool:
        """Whether the person said yes to the question as it is recorded."""
        return await self.approver.approve(run_id, self.secrets.redact(prompt))


def discreet(approver: Approver | None, secrets: Secrets | None) -> Approver | None:
    """The approver, who is shown no secret."""
    return approver if approver is None or secrets is None else DiscreetApprover(approver, secrets)


def wire(bus: Bus, secrets: Secrets | None, *, is_sent_clean: bool = False) -> None:
    """Give a bus what an engine needs of it and a host left out: the recorder and the budget's guard.

    The guard reserves for what is sent, a request without secrets; `is_sent_clean` says that gates hold none. What a
    subscriber's error says is logged without them, too.
    """
    bus.recorder = bus.recorder or record_history
    bus.guard = bus.guard or guard_budget
    if secrets is not None:
        bus.redact = secrets.redact_pieces
        is_discreet = isinstance(bus.guard, DiscreetGuard) and bus.guard.secrets is secrets
        if not is_sent_clean and not is_discreet:  # engines may share a bus: one coat is enough
            bus.guard = DiscreetGuard(bus.guard, secrets)


@attrs.define(eq=False)
class DiscreetGuard:
    """Asks the guard about the request as it is sent: without secrets."""

    guard: Guard
    secrets: Secrets

    def __call__(self, gate: Gate, ledger: Ledger) -> Reservation | Deny | None:
        """What the guard says."""
        return self.guard(self.secrets.cleansed(gate), ledger)
