"""Records, which subscribers receive, and entries, which a journal stores: records in a hash chain."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import NamedTuple

import attrs

from orchestrator_events.event import Event

__all__ = ["GENESIS", "Entry", "Record", "chain_digest"]

GENESIS = "0" * 64
"""`previous` of a run's first entry."""

DOMAIN = b"orchestrator.record.v1\0"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Record(NamedTuple):
    """One event of one run, where it happened and when.

    A named tuple and no attrs class: one is made for every event, and this costs a third of a frozen one.
    """

    run_id: str
    sequence: int
    """Position in the run's stream, gapless from 1."""
    at: int
    """Microseconds since the Unix epoch, UTC."""
    lifecycle: str
    source: str
    """State before the event."""
    target: str
    """State after it; equal to `source` for a note."""
    event: Event

    @property
    def time(self) -> datetime:
        """`at` as an aware datetime in UTC."""
        return EPOCH + timedelta(microseconds=self.at)


@attrs.frozen
class Entry:
    """A record as it is stored: its bytes, and its link to the entry before it."""

    record: Record
    body: bytes
    """The record as compact JSON with sorted keys, UTF-8 (equal to RFC 8785)."""
    previous: str
    digest: str


def chain_digest(previous: str, body: bytes) -> str:
    """SHA-256 over domain, previous digest, length and body; changing any earlier byte changes it."""
    return sha256(b"%b%b%d\0%b" % (DOMAIN, previous.encode(), len(body), body)).hexdigest()
