"""What can go wrong, as one tree.

OrchestratorError               (orchestrator_events.errors) root of all
├── IsolationRefusedError       less holds a generator or an eval suite than is required; nothing was run
└── DocumentError               a file cannot be read, parsed or understood; carries every fault
    └── SpecError               a spec or a module of the Commons Format is malformed
        └── UnmergedSpecError   a module still waits for its dependencies or its parent
"""

from __future__ import annotations

from orchestrator.faults import Fault
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.isolation import Isolation

__all__ = ["DocumentError", "IsolationRefusedError", "OrchestratorError", "SpecError", "UnmergedSpecError"]


class IsolationRefusedError(OrchestratorError):
    """Less holds a generator or an eval suite than `required`; the message says what to install or to change."""

    def __init__(self, reason: str, *, required: str, isolation: Isolation | None = None) -> None:
        super().__init__(reason)
        self.required = required
        self.isolation = isolation


class DocumentError(OrchestratorError):
    """A file cannot be used; `source` names it and `faults` lists everything found wrong in it."""

    def __init__(self, source: str, faults: tuple[Fault, ...]) -> None:
        super().__init__(source, faults)
        self.source = source
        self.faults = faults

    def __str__(self) -> str:
        return "\n".join(f"{self.source}: {fault}" for fault in self.faults)


class SpecError(DocumentError):
    """A spec breaks a rule of its format; nothing was run."""


class UnmergedSpecError(SpecError):
    """A module names dependencies or a parent: resolve it and pass the merged spec, or a closed module."""
