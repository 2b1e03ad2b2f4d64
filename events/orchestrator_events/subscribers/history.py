"""The recorder: every batch goes into the run's journal before anyone else sees it."""

from __future__ import annotations

from collections.abc import Awaitable

from orchestrator_events.journal import Batch, Journal

__all__ = ["record_history"]


def record_history(batch: Batch, journal: Journal) -> Awaitable[None]:
    """Append the batch; whatever the journal raises stops the run (contract 1, record-full-history)."""
    return journal.append(batch)
