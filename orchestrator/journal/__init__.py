"""Journal stores: in memory, and in one SQLite file (`orchestrator.journal.sqlite`, which loads sqlite3)."""

from __future__ import annotations

from orchestrator.journal.memory import MemoryJournal

__all__ = ["MemoryJournal"]
