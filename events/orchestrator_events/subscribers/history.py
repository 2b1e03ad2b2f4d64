"""The recorder: every batch goes into the run's journal before anyone else sees it."""

from __future__ import annotations

from orchestrator_events.journal import Batch, Journal

__all__ = ["record_history"]


async def record_history(batch: Batch, journal: Journal) -> None:
    """Append the batch; whatever the journal raises stops the run (contract 1, record-full-history)."""
    await journal.append(batch)
