"""The one root that every error of ours shares.

OrchestratorError
├── EventError            a record or an event cannot be read, written or found
├── JournalError          a journal cannot append or read
│   ├── JournalConflictError   another writer got there first
│   └── RunHeldError           another orchestrator or process works on the run
├── StateError            a lifecycle is malformed or an event is illegal in a state
└── (orchestrator.errors) everything a run, a file or an adapter can raise
"""

from __future__ import annotations

__all__ = [
    "EventError",
    "JournalConflictError",
    "JournalError",
    "OrchestratorError",
    "RunHeldError",
    "StateError",
]


class OrchestratorError(Exception):
    """Root of every error this library raises on purpose."""


class EventError(OrchestratorError):
    """A record or event is unknown, malformed or of a version this release cannot read."""


class StateError(OrchestratorError):
    """A lifecycle table is malformed, or an event is illegal where it was fired."""


class JournalError(OrchestratorError):
    """The journal could not store or read; nothing more is bought after it.

    `run_id` and `sequence` say where: empty and 0 when it is about the whole journal.
    """

    def __init__(self, message: str, *, run_id: str = "", sequence: int = 0) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.sequence = sequence


class RunHeldError(JournalError):
    """Another orchestrator or process works on the run; nothing was written."""


class JournalConflictError(JournalError):
    """Another writer appended at the same sequence first; the losing batch wrote nothing."""
