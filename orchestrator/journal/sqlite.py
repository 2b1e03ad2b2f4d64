"""The durable journal: one SQLite file; a batch is a row, and on disk before anyone sees its records."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Self

from orchestrator.journal.batches import BatchTable, StoredBatch
from orchestrator.journal.framing import EncodedBatch, encode_batch
from orchestrator.journal.holding import Holds
from orchestrator.journal.schema import STORAGE_FAULTS, open_database, storage_error
from orchestrator.journal.verification import BatchReader
from orchestrator.journal.writer import GroupWriter
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Batch, Head
from orchestrator_events.record import GENESIS, Entry

__all__ = ["SqliteJournal"]

LOCK_WAIT_S = 10.0


class SqliteJournal:
    """A journal in one file, for any number of runs; usable from several threads, loops and processes.

    What `append` has stored survives a power cut (WAL, `synchronous=FULL`). After an I/O error the run takes
    no more appends before the journal is opened again. Close it, or use it in a `with` block.
    """

    def __init__(self, path: str | PathLike[str], *, read_only: bool = False, lock_wait_s: float = LOCK_WAIT_S) -> None:
        """Open the file, created when it is missing and not `read_only`; raises JournalError when that fails.

        `lock_wait_s` is how long to wait, in seconds, for another process that writes.
        """
        self.path = Path(path)
        self.is_read_only = read_only
        self.is_closed = False
        self.lock = Lock()
        connection = open_database(self.path, read_only=read_only, lock_wait_s=lock_wait_s)
        self.table = BatchTable(connection, self.path)
        self.writer = GroupWriter(self.commit)
        self.holds = Holds(self.path.with_name(f"{self.path.name}-hold"))

    async def append(self, batch: Batch) -> None:
        """Store a batch with its blobs in one transaction.

        Inline while its run is the only open one, else in the group that the writer thread commits next.
        Raises JournalConflictError when another writer was first, EventError for a record that cannot be
        stored, JournalError when the storage fails; nothing of the batch is written then.
        """
        if self.is_read_only:
            raise JournalError(f"{self.path}: opened for reading: open it without read_only to append")
        encoded = encode_batch(batch)
        outcome: JournalError | None
        if self.has_only(batch.run_id) and self.lock.acquire(blocking=False):
            try:
                self.refuse_closed()
                (outcome,) = self.table.append((encoded,))
            finally:
                self.lock.release()
        else:
            outcome = await self.writer.append(encoded)
        if outcome is not None:
            raise outcome

    async def read(self, run_id: str, after: int = 0) -> AsyncIterator[Entry]:
        """Every entry of a run with a sequence above `after`, in order, one batch in memory at a time.

        Raises JournalError that names run, record and fault when bytes, chain, sequence or blobs are not as
        they were written; the chain is checked from the batch that `after` is in.
        """
        reader = self.reader(run_id, after)
        while stored := self.next_batch(run_id, reader.sequence):
            for entry in reader.entries(stored):
                if entry.record.sequence > after:
                    yield entry

    async def head(self, run_id: str) -> Head:
        """Digest and number of a run's entries, as stored; `read` is what checks them."""
        with self.access():
            return self.table.head(run_id)

    async def run_ids(self) -> tuple[str, ...]:
        """Every run in the journal, oldest first."""
        with self.access():
            return self.table.run_ids()

    def hold(self, run_id: str) -> AbstractContextManager[None]:
        """Keep every other orchestrator and process from writing this run while the block is entered."""
        return self.holds.hold(run_id)

    def is_held(self, run_id: str) -> bool:
        """Whether an orchestrator, in whichever process, works on this run now."""
        return self.holds.is_held(run_id)

    def close(self) -> None:
        """Commit what is queued and close the file; closing twice does nothing."""
        self.writer.close()
        with self.lock:
            self.is_closed = True
            self.table.connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def has_only(self, run_id: str) -> bool:
        """Whether no other run is open here."""
        streams = self.table.streams
        return not streams or (len(streams) == 1 and run_id in streams)

    def commit(self, group: Sequence[EncodedBatch]) -> list[JournalError | None]:
        """The writer thread's commit."""
        with self.lock:
            return self.table.append(group)

    def reader(self, run_id: str, after: int) -> BatchReader:
        """A reader at the start of the batch that the first wanted entry is in."""
        with self.access():
            start = self.table.at_or_before(run_id, after + 1)
            before = None if start is None else self.table.at_or_before(run_id, start.first - 1)
        previous = GENESIS if before is None else before.digest.hex()
        sequence = 1 if before is None else before.first + before.count
        return BatchReader(self.path, run_id, previous, sequence, lambda first: self.batch_at(run_id, first))

    def next_batch(self, run_id: str, sequence: int) -> StoredBatch | None:
        """The next row of a run; each is a query of its own, so that no reader holds up a checkpoint."""
        with self.access():
            return self.table.at_or_after(run_id, sequence)

    def batch_at(self, run_id: str, first: int) -> StoredBatch | None:
        """The row that an earlier blob is in."""
        with self.access():
            return self.table.at_or_before(run_id, first)

    @contextmanager
    def access(self) -> Iterator[None]:
        """The database to oneself, its errors in our words."""
        with self.lock:
            self.refuse_closed()
            try:
                yield
            except STORAGE_FAULTS as error:
                raise storage_error(self.path, error) from error

    def refuse_closed(self) -> None:
        """Raise JournalError when the journal was closed."""
        if self.is_closed:
            raise JournalError(f"{self.path}: the journal is closed: open it again")
