"""A recorded run as one JSON document or as JSON lines, with everything an auditor needs and nothing else.

The document (`orchestrator.export/1`) holds

    format    "orchestrator.export/1"
    run       the run's id
    head      {"digest", "count"} of the last record
    table     the lifecycle table that decided every move, as `Lifecycle.as_json` gives it
    records   [{"sequence", "previous", "digest", "body"}, …] in order
    blobs     {"<sha256>": text} of every text that a record names

and the lines are one record each, in order: `{"sequence", "previous", "digest", "body", "blobs"}`, where
`blobs` are the texts that no earlier line held; the first line also has `format`, `run` and `table`.

`body` is the record as JSON data. Its RFC 8785 form (keys sorted, no white space, UTF-8) is the stored bytes,
and `digest` is the SHA-256 of `orchestrator.record.v1`, a zero byte, `previous`, the length of those bytes in
decimal, a zero byte, and those bytes; `previous` of the first record is 64 zeros. So nothing is lost: an
import has the same bytes, and another export of it is the same text.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, Final

from orchestrator.history import UnknownRunError
from orchestrator_events.codec import blobs_of
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_events.record import Entry, Record
from orchestrator_states.catalogue import LIFECYCLES, lifecycle

__all__ = ["EXPORT_FORMAT", "export_json", "export_lines"]

EXPORT_FORMAT: Final = "orchestrator.export/1"
"""Name and version of the form."""


async def export_json(journal: Journal, run_id: str) -> str:
    """A run as one indented JSON document with a final newline.

    Raises UnknownRunError for an id without records, JournalError when what is stored is damaged or of a
    lifecycle that this release does not have.
    """
    opening: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    blobs: dict[str, str] = {}
    async for entry in journal.read(run_id):
        opening = opening or opening_of(entry.record)
        records.append(link_of(entry))
        blobs.update(texts_of(entry.record))
    if not records:
        raise UnknownRunError(run_id)
    head = {"digest": records[-1]["digest"], "count": len(records)}
    document = {**opening, "head": head, "records": records, "blobs": blobs}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


async def export_lines(journal: Journal, run_id: str) -> AsyncIterator[str]:
    """A run as JSON lines with their newlines, one batch in memory at a time.

    Raises as `export_json` does.
    """
    seen: set[str] = set()
    opening: dict[str, Any] = {}
    async for entry in journal.read(run_id):
        first = {} if opening else opening_of(entry.record)
        opening = opening or first
        blobs = {digest: text for digest, text in texts_of(entry.record) if digest not in seen}
        seen.update(blobs)
        line = {**first, **link_of(entry), "blobs": blobs}
        yield json.dumps(line, sort_keys=True, separators=(",", ":")) + "\n"
    if not opening:
        raise UnknownRunError(run_id)


def opening_of(record: Record) -> dict[str, Any]:
    """What an export begins with: its form, the run and the table."""
    table = lifecycle(record.lifecycle) if record.lifecycle in LIFECYCLES else None
    digest = record.event.table_digest if isinstance(record.event, ExecutionStart) else ""
    if table is None or table.digest != digest:
        raise JournalError(
            f"run {record.run_id} was decided by a table {record.lifecycle!r} that is not in this release: "
            "export it with the release that made it",
            run_id=record.run_id,
            sequence=record.sequence,
        )
    return {"format": EXPORT_FORMAT, "run": record.run_id, "table": table.as_json()}


def link_of(entry: Entry) -> dict[str, Any]:
    """One record with its place in the chain."""
    return {
        "sequence": entry.record.sequence,
        "previous": entry.previous,
        "digest": entry.digest,
        "body": json.loads(entry.body),
    }


def texts_of(record: Record) -> Iterator[tuple[str, str]]:
    """Digest and text of each blob that a record names."""
    for blob in blobs_of(record.event):
        yield blob.digest, blob.data.decode()
