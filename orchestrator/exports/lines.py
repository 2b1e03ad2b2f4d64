"""A recorded run as JSON lines: the same as the document, one record a line, the runs inside it after it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.exports.document import is_inside
from orchestrator.exports.links import children_of, link_of, opening_of, texts_of
from orchestrator.history import UnknownRunError
from orchestrator_events.journal import Journal

__all__ = ["export_lines"]


async def export_lines(journal: Journal, run_id: str) -> AsyncIterator[str]:
    """A run as JSON lines with their newlines, then those of each run inside it, one batch in memory at a time.

    Raises as `export_json` does.
    """
    is_known = False
    async for line in lines_of(journal, run_id, ()):
        is_known = True
        yield line
    if not is_known:
        raise UnknownRunError(run_id)


async def lines_of(journal: Journal, run_id: str, above: tuple[str, ...]) -> AsyncIterator[str]:
    """The lines of one run and of those inside it; none for an id without records."""
    seen: set[str] = set()
    opening: dict[str, Any] = {}
    started: dict[str, None] = {}
    async for entry in journal.read(run_id):
        first = {} if opening else opening_of(entry.record)
        opening = opening or first
        blobs = {digest: text for digest, text in texts_of(entry.record) if digest not in seen}
        seen.update(blobs)
        started.update(dict.fromkeys(children_of(entry.record)))
        told = {**first, **link_of(entry), "blobs": blobs}
        yield json.dumps(told, sort_keys=True, separators=(",", ":")) + "\n"
    path = (*above, run_id)
    for child_id in started if opening else ():
        if is_inside(child_id, path):
            async for line in lines_of(journal, child_id, path):
                yield line
