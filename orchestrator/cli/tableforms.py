"""A lifecycle table in one of the forms that `graph` takes, with the way of a run over it."""

from __future__ import annotations

import sys

from orchestrator.cli.appearance import ASCII, marks_for
from orchestrator.cli.choices import GraphFormat
from orchestrator_states.dot import to_dot
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg import to_svg
from orchestrator_states.table_json import to_json
from orchestrator_states.terminal import to_text

__all__ = ["drawn"]


def drawn(table: Lifecycle, form: GraphFormat, path: PathOverlay | None = None) -> str:
    """The table in this form; JSON is the table alone."""
    match form:
        case GraphFormat.TEXT:
            return to_text(table, ascii_only=marks_for(sys.stdout) is ASCII, path=path)
        case GraphFormat.MERMAID:
            return to_mermaid(table, path=path)
        case GraphFormat.DOT:
            return to_dot(table, path=path)
        case GraphFormat.SVG:
            return to_svg(table, path=path)
        case GraphFormat.JSON:
            return to_json(table)
