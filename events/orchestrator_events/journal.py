"""The journal as a port: an append-only store of hash-chained batches, and the only truth."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Protocol

import attrs

from orchestrator_events.record import Entry, Record

__all__ = ["Batch", "Head", "Journal"]


@attrs.define
class Batch:
    """Records of one run that are stored together or not at all, in one transaction with their blobs."""

    run_id: str
    records: tuple[Record, ...]
    epoch: int = 0
    """Fencing number of the writer; an append with an older one than the journal's is refused."""


@attrs.frozen
class Head:
    """The end of a run's chain: whoever holds it can tell truncation and rewriting."""

    digest: str
    """Digest of the last entry; 64 zeros for an empty stream."""
    count: int


class Journal(Protocol):
    """Where records become durable. Implementations hold nothing bound to an event loop."""

    async def append(self, batch: Batch) -> None:
        """Store a batch whose first sequence follows the run's last one.

        Raises JournalConflictError, having written nothing, when another writer was first or the epoch is
        stale; JournalError when the store fails, after which the caller buys nothing more.
        """
        ...

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry of a run with a sequence above `after`, in order, blobs loaded."""
        ...

    async def head(self, run_id: str) -> Head:
        """Digest and number of a run's entries."""
        ...

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Keep every other orchestrator and process from writing this run; entering raises RunHeldError.

        A process that dies holds nothing any longer.
        """
        ...

    async def run_ids(self) -> tuple[str, ...]:
        """Every run in the journal, oldest first."""
        ...
