"""The parts that both forms of an export are made of: opening, links of the chain, texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from orchestrator_events.codec import blobs_of
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Entry, Record
from orchestrator_states.catalogue import LIFECYCLES, lifecycle

__all__ = ["EXPORT_FORMAT", "link_of", "opening_of", "texts_of"]

EXPORT_FORMAT: Final = "orchestrator.export/1"
"""Name and version of the form."""


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
