"""The commands of `workflow`: phased workflows from a terminal, with a live checklist."""

from __future__ import annotations

__all__: list[str] = []
