"""How a batch becomes two byte strings, and back.

Bodies are joined by newlines: canonical JSON escapes every control character, so a row reads as JSON lines.
Blobs are frames of digest (32 bytes), holder (8) and length (4, both big-endian). The holder is the first
sequence of the batch that stores the bytes; where that is the row itself they follow, else the length is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from struct import Struct

import attrs

from orchestrator_events.codec import blobs_of, encode
from orchestrator_events.journal import Batch

__all__ = ["BlobFrame", "EncodedBatch", "encode_batch", "pack_blobs", "unpack_blobs"]

HEADER = Struct(">32sQI")


@attrs.define(eq=False)
class EncodedBatch:
    """A batch as bytes, not yet linked to what is before it."""

    batch: Batch
    bodies: list[bytes]
    blobs: list[tuple[str, bytes]]
    """Digest and bytes of each blob the batch names, in order."""


@attrs.frozen
class BlobFrame:
    """A blob that a batch names: the bytes, or the first sequence of the batch that holds them."""

    digest: str
    holder: int
    data: bytes


def encode_batch(batch: Batch) -> EncodedBatch:
    """Encode the records; raises EventError for one that cannot be, or for a blob without text."""
    bodies = []
    blobs = []
    for record in batch.records:
        bodies.append(encode(record))
        blobs += [(blob.digest, blob.data) for blob in blobs_of(record.event)]
    return EncodedBatch(batch, bodies, blobs)


def pack_blobs(
    blobs: Iterable[tuple[str, bytes]], holders: Mapping[str, int], first: int
) -> tuple[bytes | None, dict[str, int]]:
    """One frame a blob for the row at `first`, with its bytes unless an earlier batch holds them (`holders`).

    Returns the frames (None without any) and who holds each blob now.
    """
    parts: list[bytes] = []
    named: dict[str, int] = {}
    for digest, data in blobs:
        if digest in named:
            continue
        holder = holders.get(digest)
        stored = data if holder is None else b""
        named[digest] = first if holder is None else holder
        parts += (HEADER.pack(bytes.fromhex(digest), named[digest], len(stored)), stored)
    return (b"".join(parts) if parts else None), named


def unpack_blobs(packed: bytes | None) -> list[BlobFrame]:
    """The frames that `pack_blobs` wrote; raises ValueError when the bytes end within one."""
    frames = []
    position, end = 0, len(packed or b"")
    while packed is not None and position < end:
        if position + HEADER.size > end:
            raise ValueError("the blobs end within a header")
        digest, holder, length = HEADER.unpack_from(packed, position)
        position += HEADER.size
        if position + length > end:
            raise ValueError("the blobs end within a text")
        frames.append(BlobFrame(digest.hex(), holder, packed[position : position + length]))
        position += length
    return frames
