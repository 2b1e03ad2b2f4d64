"""The parts that both forms of an export are made of: opening, links of the chain, texts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from orchestrator.history import tables_in
from orchestrator_events.codec import blobs_of
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ChildStarted, ExecutionStart
from orchestrator_events.record import Entry, Record
from orchestrator_states.catalogue import LIFECYCLES, lifecycle

__all__ = ["DEEPEST", "EXPORT_FORMAT", "children_of", "link_of", "opening_of", "texts_of"]

EXPORT_FORMAT: Final = "orchestrator.export/1"
"""Name and version of the form."""

DEEPEST: Final = 8
"""How deep runs may lie inside runs in an export."""


def opening_of(record: Record) -> dict[str, Any]:
    """What an export begins with: its form, the run, the table, and those of generated lifecycles beside it."""
    table = lifecycle(record.lifecycle) if record.lifecycle in LIFECYCLES else None
    digest = record.event.table_digest if isinstance(record.event, ExecutionStart) else ""
    if table is None or table.digest != digest:
        raise JournalError(
            f"run {record.run_id} was decided by a table {record.lifecycle!r} that is not in this release: "
            "export it with the release that made it",
            run_id=record.run_id,
            sequence=record.sequence,
        )
    opening = {"format": EXPORT_FORMAT, "run": record.run_id, "table": table.as_json()}
    tables = tables_in(record.event) if isinstance(record.event, ExecutionStart) else {}
    return {**opening, "tables": tables} if tables else opening


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


def children_of(record: Record) -> Iterator[str]:
    """The run that a record announces as a child."""
    if isinstance(record.event, ChildStarted):
        yield record.event.child_id
