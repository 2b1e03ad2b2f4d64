"""Rows back to entries, each checked: framing, chain, sequence, blobs."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import attrs

from orchestrator.journal.batches import StoredBatch, damage
from orchestrator.journal.framing import BlobFrame, unpack_blobs
from orchestrator_events.codec import blobs_of, decode
from orchestrator_events.errors import EventError, JournalError
from orchestrator_events.record import Entry, Record, chain_digest

__all__ = ["BatchReader"]


@attrs.define(eq=False)
class BatchReader:
    """Reads a run's batches in order; keeps the end of the chain and nothing else.

    What it cannot see is a tail cut off as a whole: for that, compare with a published head.
    """

    path: Path
    run_id: str
    previous: str
    """Digest of the last entry before the next batch."""
    sequence: int
    """Sequence that the next batch has to start with."""
    fetch: Callable[[int], StoredBatch | None]
    """The batch that starts at a sequence or before it, for blobs stored earlier."""

    def entries(self, stored: StoredBatch) -> list[Entry]:
        """The entries of the next batch; JournalError names the record and what is wrong."""
        if stored.first != self.sequence:
            raise self.damaged(f"the next record in the file is {stored.first}")
        bodies = stored.bodies.split(b"\n")
        if len(bodies) != stored.count:
            raise self.damaged(f"the row states {stored.count} records and holds {len(bodies)}")
        digests = [self.previous]
        for body in bodies:
            digests.append(chain_digest(digests[-1], body))
        if digests[-1] != stored.digest.hex():
            raise self.damaged(f"the hash chain breaks in records {stored.first} to {stored.first + stored.count - 1}")
        texts = self.texts(stored)
        entries = [
            Entry(self.record(body, self.sequence + index, texts), body, digests[index], digests[index + 1])
            for index, body in enumerate(bodies)
        ]
        self.previous = digests[-1]
        self.sequence += len(entries)
        return entries

    def record(self, body: bytes, sequence: int, texts: dict[str, str]) -> Record:
        """One record, with the texts of its blobs."""
        try:
            record = decode(body, texts)
        except EventError as error:
            raise JournalError(
                f"{self.path}: run {self.run_id}, record {sequence}: {error}",
                run_id=self.run_id,
                sequence=sequence,
            ) from error
        if (record.run_id, record.sequence) != (self.run_id, sequence):
            raise self.damaged(f"it holds record {record.sequence} of run {record.run_id}", sequence)
        for blob in blobs_of(record.event):
            if blob.text is None:
                raise self.damaged(f"the text {blob.digest} is not stored with it", sequence)
        return record

    def texts(self, stored: StoredBatch) -> dict[str, str]:
        """The texts a batch names, by digest, each checked against it."""
        found = {}
        for frame in self.frames(stored):
            if sha256(frame.data).hexdigest() != frame.digest:
                raise self.damaged(f"the text {frame.digest} has another digest")
            found[frame.digest] = frame.data.decode()
        return found

    def frames(self, stored: StoredBatch) -> list[BlobFrame]:
        """The blobs a batch names, those of earlier batches fetched from there."""
        return [frame if frame.holder == stored.first else self.held(frame) for frame in self.unpacked(stored)]

    def held(self, frame: BlobFrame) -> BlobFrame:
        """A blob from the earlier batch that holds it."""
        holder = self.fetch(frame.holder)
        found = [] if holder is None or holder.first != frame.holder else self.unpacked(holder)
        for candidate in found:
            if candidate.digest == frame.digest and candidate.holder == frame.holder:
                return candidate
        raise self.damaged(f"the text {frame.digest} is not in the batch of record {frame.holder}")

    def unpacked(self, stored: StoredBatch) -> list[BlobFrame]:
        """The frames of a row."""
        try:
            return unpack_blobs(stored.blobs)
        except (ValueError, TypeError) as error:
            raise self.damaged(str(error)) from error

    def damaged(self, what: str, sequence: int = 0) -> JournalError:
        """The error for a record that is not what was written."""
        return damage(self.path, self.run_id, sequence or self.sequence, what)
