"""A recorded run as one JSON document or as JSON lines, with everything an auditor needs and nothing else.

The document (`orchestrator.export/1`) holds

    format    "orchestrator.export/1"
    run       the run's id
    head      {"digest", "count"} of the last record
    table     the lifecycle table that decided every move, as `Lifecycle.as_json` gives it
    records   [{"sequence", "previous", "digest", "body"}, …] in order
    blobs     {"<sha256>": text} of every text that a record names
    tables    {name: table} of generated lifecycles that share the stream; absent where there are none
    children  [document, …] of the runs that this one started, in order; absent where there are none

and the lines are one record each, in order: `{"sequence", "previous", "digest", "body", "blobs"}`, where
`blobs` are the texts that no earlier line of the run held; the first line of a run also has `format`, `run`,
`table`, and `tables` where there are any. The lines of a run are followed by those of each child, in order.

`body` is the record as JSON data. Its RFC 8785 form (keys sorted, no white space, UTF-8) is the stored bytes,
and `digest` is the SHA-256 of `orchestrator.record.v1`, a zero byte, `previous`, the length of those bytes in
decimal, a zero byte, and those bytes; `previous` of the first record is 64 zeros. So nothing is lost: an
import has the same bytes, and another export of it is the same text.
"""

from __future__ import annotations

import json
from typing import Any

from orchestrator.exports.links import DEEPEST, children_of, link_of, opening_of, texts_of
from orchestrator.history import UnknownRunError
from orchestrator_events.journal import Journal

__all__ = ["export_json", "is_inside"]


async def export_json(journal: Journal, run_id: str) -> str:
    """A run with the runs inside it as one indented JSON document with a final newline.

    Raises UnknownRunError for an id without records, JournalError when what is stored is damaged or of a
    lifecycle that this release does not have.
    """
    document = await document_of(journal, run_id, ())
    if document is None:
        raise UnknownRunError(run_id)
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


async def document_of(journal: Journal, run_id: str, above: tuple[str, ...]) -> dict[str, Any] | None:
    """One run's document; None for an id without records, as of a child that never began."""
    opening: dict[str, Any] = {}
    records: list[dict[str, Any]] = []
    blobs: dict[str, str] = {}
    started: dict[str, None] = {}
    async for entry in journal.read(run_id):
        opening = opening or opening_of(entry.record)
        records.append(link_of(entry))
        blobs.update(texts_of(entry.record))
        started.update(dict.fromkeys(children_of(entry.record)))
    if not records:
        return None
    head = {"digest": records[-1]["digest"], "count": len(records)}
    document = {**opening, "head": head, "records": records, "blobs": blobs}
    path = (*above, run_id)
    inside = [await document_of(journal, child, path) for child in started if is_inside(child, path)]
    children = [child for child in inside if child is not None]
    return {**document, "children": children} if children else document


def is_inside(child_id: str, path: tuple[str, ...]) -> bool:
    """Whether a child can be told below these runs: it is none of them, and they are not too many."""
    return child_id not in path and len(path) < DEEPEST
