"""The journal that lives as long as its process: for runs whose history is read from their result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from threading import Lock

import attrs

from orchestrator.journal.holding import Holds
from orchestrator.journal.order import check_order
from orchestrator_events.codec import encode
from orchestrator_events.journal import Batch, Head
from orchestrator_events.record import GENESIS, Entry, Record, chain_digest

__all__ = ["MemoryJournal"]


@attrs.define(eq=False)
class Stream:
    """One run's records, and their chain as far as anyone has asked for it."""

    records: list[Record] = attrs.Factory(list[Record])
    entries: list[Entry] = attrs.Factory(list[Entry])
    epoch: int = 0


class MemoryJournal:
    """Keeps the records of any number of runs; survives no crash. Usable from several threads and loops.

    An append costs under a microsecond: records are encoded and chained when `read` or `head` first asks,
    which is also when a text that no journal could store raises EventError.
    """

    def __init__(self) -> None:
        self.streams: dict[str, Stream] = {}
        self.lock = Lock()
        self.holds = Holds(None)

    async def append(self, batch: Batch) -> None:
        """Keep a batch; JournalConflictError, with nothing kept, when it does not follow the last."""
        with self.lock:
            stream = self.streams.get(batch.run_id) or Stream()
            check_order(batch, len(stream.records), stream.epoch)
            self.streams[batch.run_id] = stream
            stream.records += batch.records
            stream.epoch = batch.epoch

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Keep every other orchestrator from writing this run while the block is entered."""
        return self.holds.hold(run_id)

    async def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry of a run with a sequence above `after`, in order; none for an unknown run."""
        position = after
        while entries := self.chained(run_id)[position:]:
            for entry in entries:
                yield entry
            position += len(entries)

    async def head(self, run_id: str) -> Head:
        """Digest and number of a run's entries."""
        entries = self.chained(run_id)
        return Head(entries[-1].digest, len(entries)) if entries else Head(GENESIS, 0)

    async def run_ids(self) -> tuple[str, ...]:
        """Every run in the journal, oldest first."""
        return tuple(self.streams)

    def chained(self, run_id: str) -> list[Entry]:
        """A run's entries, those appended since the last time encoded and linked."""
        with self.lock:
            stream = self.streams.get(run_id)
            if stream is None:
                return []
            previous = stream.entries[-1].digest if stream.entries else GENESIS
            for record in stream.records[len(stream.entries) :]:
                body = encode(record)
                digest = chain_digest(previous, body)
                stream.entries.append(Entry(record, body, previous, digest))
                previous = digest
            return stream.entries
