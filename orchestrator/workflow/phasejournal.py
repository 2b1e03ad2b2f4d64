"""The journal as the runs inside a phase see it: once the workflow has gone on without them, they record nothing.

What cannot be recorded is not bought, so that a run which nobody waits for any more ends before its next call.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager

import attrs

from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.record import Entry

__all__ = ["PhaseJournal"]


@attrs.define(eq=False)
class PhaseJournal:
    """A journal for as long as one execution of a phase lasts."""

    journal: Journal
    is_closed: bool = False
    appending: asyncio.Lock = attrs.Factory(asyncio.Lock)

    async def append(self, batch: Batch) -> None:
        """Store a batch; JournalError once the phase is over."""
        async with self.appending:
            if self.is_closed:
                message = f"the phase that run {batch.run_id} is inside of is over"
                raise JournalError(message, run_id=batch.run_id)
            await self.journal.append(batch)

    async def settled(self) -> None:
        """Close, and wait until what was being stored is stored."""
        self.is_closed = True
        async with self.appending:
            pass

    def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry of a run with a sequence above `after`, in order."""
        return self.journal.read(run_id, after)

    async def head(self, run_id: str) -> Head:
        """Digest and number of a run's entries."""
        return await self.journal.head(run_id)

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Keep everybody else from writing this run."""
        return self.journal.hold(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """Every run in the journal, oldest first."""
        return await self.journal.run_ids()
