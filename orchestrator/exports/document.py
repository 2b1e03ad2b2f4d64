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
from typing import Any

from orchestrator.exports.links import link_of, opening_of, texts_of
from orchestrator.history import UnknownRunError
from orchestrator_events.journal import Journal

__all__ = ["export_json"]


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
