"""What is still under way when a phase ends: calls and runs that nobody waits for, settled before its outcome."""

from __future__ import annotations

from orchestrator.workflow.components.calling import lost_calls
from orchestrator.workflow.components.childrecords import open_drives
from orchestrator.workflow.components.children import lost_children
from orchestrator.workflow.invocation import Invocation, PhaseHost

__all__ = ["settle_lost"]


async def settle_lost(it: Invocation, host: PhaseHost | None, reason: str) -> None:
    """Take nothing more from the phase, and fire the end of all that it left: a call's worst case, a run's own sum."""
    host = host or PhaseHost(it=it, phase=it.run.phase, ends_us=None)
    await host.settled()
    drives = open_drives(host.history)
    for event in (*lost_calls(host.history, reason), *await lost_children(host, reason, drives)):
        it.fire(event)
