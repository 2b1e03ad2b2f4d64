"""What an adapter of a generator or an evaluator raises; `reason` says why, in words a prompt can show.

OrchestratorError               (orchestrator_events.errors) root of all
├── GeneratorUnavailableError   the generator cannot be reached: trying again is pointless
├── GenerationError             one call gave no candidate: costs the attempt and is fed back
│   ├── TransientGenerationError  trying the same call again may help: the driver does, within the budget
│   └── CandidateRefusedError   what it gave cannot be written beside the eval suite
└── EvaluationError             the eval suite gave no verdict: the run is interrupted
"""

from __future__ import annotations

from orchestrator_events.budget import Usage
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "CandidateRefusedError",
    "EvaluationError",
    "GenerationError",
    "GeneratorUnavailableError",
    "TransientGenerationError",
]


class _AdapterError(OrchestratorError):
    """An adapter could not do its part."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class GeneratorUnavailableError(_AdapterError):
    """The generator cannot be found, started or authorised; the run is interrupted."""


class GenerationError(_AdapterError):
    """A call ended without a candidate: bad exit, time-out, oversize or malformed output.

    `answer` is the raw answer from which no candidate could be taken; `usage` what the call used, if known;
    `remedy` what the host could change, in words that no prompt ever holds.
    """

    def __init__(self, reason: str, *, answer: str = "", usage: Usage | None = None, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy
        self.answer = answer
        self.usage = usage


class TransientGenerationError(GenerationError):
    """The same call may succeed when it is made again: a busy server, a connection that was cut.

    `retry_after` is how long the server asks to wait, seconds; `status` its HTTP status. With `is_unreachable` no
    connection came about: when making it again does not help either, the run is interrupted and no attempt spent.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        status: int | None = None,
        usage: Usage | None = None,
        is_unreachable: bool = False,
    ) -> None:
        super().__init__(reason, usage=usage)
        self.is_unreachable = is_unreachable
        self.retry_after = retry_after
        self.status = status


class CandidateRefusedError(GenerationError):
    """The candidate's files have paths that cannot be written safely, or that belong to the eval suite."""


class EvaluationError(_AdapterError):
    """No verdict: the runner cannot be started, broke down, reported no case or left an unreadable report."""
