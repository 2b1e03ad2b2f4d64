"""The one root that every error of ours shares.

    OrchestratorError
    ├── EventError            a record or an event cannot be read, written or found
    ├── JournalError          a journal cannot append or read
    │   └── JournalConflictError   another writer got there first
    ├── StateError            a lifecycle is malformed or an event is illegal in a state
    └── (orchestrator.errors) everything a run, a file or an adapter can raise
"""

from __future__ import annotations

__all__ = ["EventError", "JournalConflictError", "JournalError", "OrchestratorError", "StateError"]


class OrchestratorError(Exception):
    """Root of every error this library raises on purpose."""


class EventError(OrchestratorError):
    """A record or event is unknown, malformed or of a version this release cannot read."""


class StateError(OrchestratorError):
    """A lifecycle table is malformed, or an event is illegal where it was fired."""


class JournalError(OrchestratorError):
    """The journal could not store or read; nothing more is bought after it."""


class JournalConflictError(JournalError):
    """Another writer appended at the same sequence first; the losing batch wrote nothing."""
