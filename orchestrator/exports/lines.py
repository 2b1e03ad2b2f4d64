"""A recorded run as JSON lines: the same as the document, one record a line."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

from orchestrator.exports.links import link_of, opening_of, texts_of
from orchestrator.history import UnknownRunError
from orchestrator_events.journal import Journal

__all__ = ["export_lines"]


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
