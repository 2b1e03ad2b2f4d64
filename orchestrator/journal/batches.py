"""Batches in the database: what the writer knows of each open run, the appends, and the rows read back."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import attrs

from orchestrator.journal.framing import EncodedBatch, pack_blobs, unpack_blobs
from orchestrator.journal.order import check_order
from orchestrator.journal.schema import STORAGE_FAULTS, is_lock, storage_error
from orchestrator_events.errors import JournalConflictError, JournalError
from orchestrator_events.execution import ExecutionEnd
from orchestrator_events.journal import Head
from orchestrator_events.record import GENESIS, chain_digest

__all__ = ["BatchTable", "StoredBatch", "damage"]

Outcome = JournalError | None

LAST = """
    SELECT number, first + count - 1, epoch, digest FROM run JOIN batch ON batch.run = run.number
    WHERE id = ? ORDER BY first DESC LIMIT 1
"""
INSERT = "INSERT INTO batch (run, first, count, epoch, digest, bodies, blobs) VALUES (?, ?, ?, ?, ?, ?, ?)"
ROW = """
    SELECT first, count, digest, bodies, blobs FROM run JOIN batch ON batch.run = run.number WHERE id = ?
"""
AT_OR_BEFORE = ROW + "AND first <= ? ORDER BY first DESC LIMIT 1"
AT_OR_AFTER = ROW + "AND first >= ? ORDER BY first LIMIT 1"
LAST_TYPES = [int, int, int, bytes]
ROW_TYPES = [int, int, bytes, bytes]
MARGIN = 1024
"""Bytes of a row that are not bodies or blobs, at most."""


@attrs.frozen
class StoredBatch:
    """One row, as it was found."""

    first: int
    count: int
    digest: bytes
    """Digest of the batch's last entry."""
    bodies: bytes
    blobs: bytes | None


@attrs.define(eq=False)
class Stream:
    """The end of an open run, so that an append needs no query."""

    number: int | None
    """Key of the run; None before its first batch."""
    last: int = 0
    epoch: int = 0
    digest: str = GENESIS
    holders: dict[str, int] = attrs.Factory(dict[str, int])
    """Digest of each stored blob to the first sequence of the batch that holds it."""


class BatchTable:
    """The database behind a journal, one caller at a time: whoever calls holds the journal's lock."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.connection = connection
        self.path = path
        self.streams: dict[str, Stream] = {}
        """Runs appended to and not ended. A stale one does no harm: its insert meets the key and fails."""
        self.broken: set[str] = set()
        """Runs whose last append failed: what the disk holds of it is not known before it is opened again."""
        self.room = connection.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - MARGIN

    def append(self, group: Sequence[EncodedBatch]) -> list[Outcome]:
        """Store what can be stored of a group in one transaction; the outcome of each batch, in order.

        A batch that conflicts is left out, the others stay. When the storage fails, nothing of the group is
        stored and nothing is tried again (a repeated fsync may report success for data that is lost).
        """
        is_one_insert = len(group) == 1 and group[0].batch.run_id in self.streams
        try:
            if is_one_insert:  # a statement is a transaction, and takes the lock as BEGIN IMMEDIATE does
                outcomes = [self.outcome(group[0])]
            else:
                self.connection.execute("BEGIN IMMEDIATE")
                outcomes = [self.outcome(encoded) for encoded in group]
                self.connection.execute("COMMIT")
        except STORAGE_FAULTS as error:
            self.abandon(group)
            return [self.failure(encoded.batch.run_id, error) for encoded in group]
        except BaseException:
            self.abandon(group)
            raise
        for encoded, outcome in zip(group, outcomes, strict=True):
            if outcome is None and isinstance(encoded.batch.records[-1].event, ExecutionEnd):
                self.streams.pop(encoded.batch.run_id, None)
        return outcomes

    def at_or_before(self, run_id: str, sequence: int) -> StoredBatch | None:
        """The last batch that starts at a sequence or before it."""
        return self.row(AT_OR_BEFORE, run_id, sequence)

    def at_or_after(self, run_id: str, sequence: int) -> StoredBatch | None:
        """The next batch that starts at a sequence or after it."""
        return self.row(AT_OR_AFTER, run_id, sequence)

    def head(self, run_id: str) -> Head:
        """The end of a run as its last row states it."""
        last = self.last(run_id)
        return Head(GENESIS, 0) if last is None else Head(last.digest, last.last)

    def run_ids(self) -> tuple[str, ...]:
        """Every run, oldest first."""
        ids = [row[0] for row in self.connection.execute("SELECT id FROM run ORDER BY number")]
        if not all(isinstance(run_id, str) for run_id in ids):
            raise JournalError(
                f"{self.path}: damaged: the list of runs holds what is no id: restore the file from a copy"
            )
        return tuple(ids)

    def outcome(self, encoded: EncodedBatch) -> Outcome:
        """Insert a batch; None, or why it may not be."""
        run_id = encoded.batch.run_id
        try:
            self.refuse_broken(run_id)
            self.insert(self.streams.get(run_id) or self.load(run_id), encoded)
        except JournalError as error:
            self.streams.pop(run_id, None)
            return error
        return None

    def insert(self, stream: Stream, encoded: EncodedBatch) -> None:
        """Link a batch to the end of its run and store it."""
        batch = encoded.batch
        check_order(batch, stream.last, stream.epoch)
        first = stream.last + 1
        digest = stream.digest
        for body in encoded.bodies:
            digest = chain_digest(digest, body)
        bodies = b"\n".join(encoded.bodies)
        blobs, named = pack_blobs(encoded.blobs, stream.holders, first)
        self.refuse_oversize(batch.run_id, first, len(bodies) + len(blobs or b""))
        if stream.number is None:
            stream.number = self.connection.execute("INSERT INTO run (id) VALUES (?)", (batch.run_id,)).lastrowid
        row = (stream.number, first, len(batch.records), batch.epoch, bytes.fromhex(digest), bodies, blobs)
        try:
            self.connection.execute(INSERT, row)
        except sqlite3.IntegrityError as error:
            raise JournalConflictError(
                f"{self.path}: run {batch.run_id}: another writer stored record {first} first: "
                "resume the run from the journal",
                run_id=batch.run_id,
                sequence=first,
            ) from error
        stream.last += len(batch.records)
        stream.epoch, stream.digest = batch.epoch, digest
        stream.holders.update(named)
        self.streams[batch.run_id] = stream

    def load(self, run_id: str) -> Stream:
        """What the store holds of a run, its blobs' whereabouts included."""
        stream = self.last(run_id)
        if stream is None:
            return Stream(number=None)
        stored = "SELECT first, blobs FROM batch WHERE run = ? AND blobs IS NOT NULL ORDER BY first"
        for first, blobs in self.connection.execute(stored, (stream.number,)):
            try:
                stream.holders.update((frame.digest, frame.holder) for frame in unpack_blobs(blobs))
            except (TypeError, ValueError) as error:
                raise damage(self.path, run_id, first, str(error)) from error
        return stream

    def last(self, run_id: str) -> Stream | None:
        """The end of a run, without its blobs' whereabouts; None for an unknown run."""
        row = self.connection.execute(LAST, (run_id,)).fetchone()
        if row is None:
            return None
        if [type(value) for value in row] != LAST_TYPES:  # a damaged page can say anything
            raise damage(self.path, run_id, 0, "the last row holds a value of another type")
        number, last, epoch, digest = row
        return Stream(number, last, epoch, digest.hex())

    def refuse_broken(self, run_id: str) -> None:
        """Raise JournalError for a run whose storage has failed."""
        if run_id in self.broken:
            raise JournalError(
                f"{self.path}: run {run_id}: storage failed before: open the journal again and resume",
                run_id=run_id,
            )

    def refuse_oversize(self, run_id: str, first: int, size: int) -> None:
        """Raise JournalError for a batch that no row can hold (SQLite's limit is 1 GB)."""
        if size > self.room:
            raise JournalError(
                f"{self.path}: run {run_id}, record {first}: the batch has {size} bytes of {self.room}: "
                "lower the size limits of candidates and prompts",
                run_id=run_id,
                sequence=first,
            )

    def abandon(self, group: Sequence[EncodedBatch]) -> None:
        """Undo an open transaction and forget the runs in it, which the store must be asked for again."""
        for encoded in group:
            self.streams.pop(encoded.batch.run_id, None)
        try:
            self.connection.rollback()
        except sqlite3.Error:
            return  # SQLite has rolled back itself, or the next append will find out

    def failure(self, run_id: str, error: Exception) -> JournalError:
        """What a failed storage means for one run: after anything but a lock, no more appends."""
        if not is_lock(error):
            self.broken.add(run_id)
        failure = storage_error(self.path, error, run_id)
        failure.__cause__ = error
        return failure

    def row(self, query: str, run_id: str, sequence: int) -> StoredBatch | None:
        """One row of a run, or None."""
        found = self.connection.execute(query, (run_id, sequence)).fetchone()
        if found is None:
            return None
        if [type(value) for value in found[:4]] != ROW_TYPES:
            raise damage(self.path, run_id, sequence, "a column holds a value of another type")
        return StoredBatch(*found)


def damage(path: Path, run_id: str, sequence: int, what: str) -> JournalError:
    """The error for a record that is not what was written."""
    return JournalError(
        f"{path}: run {run_id}, record {sequence}: damaged: {what}; restore the file from a copy",
        run_id=run_id,
        sequence=sequence,
    )
