"""A recorded run as one JSON document or as JSON lines: `orchestrator.exports` under its short name."""

from __future__ import annotations

from orchestrator.exports.document import export_json
from orchestrator.exports.lines import export_lines
from orchestrator.exports.links import EXPORT_FORMAT

__all__ = ["EXPORT_FORMAT", "export_json", "export_lines"]
