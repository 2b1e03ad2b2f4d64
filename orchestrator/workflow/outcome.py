"""How an invocation of a workflow ended: `WorkflowDone | WorkflowPaused | WorkflowAborted`, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import attrs

from orchestrator.jsondata import JSON
from orchestrator.outcome import DISCLAIMER
from orchestrator.recordedresult import RecordedResult
from orchestrator.workflow.decisions import Decision
from orchestrator.workflow.messages import grounds_in
from orchestrator.workflow.todos import TodoView
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "WorkflowAborted",
    "WorkflowDone",
    "WorkflowEndedError",
    "WorkflowFailedError",
    "WorkflowInterruptedError",
    "WorkflowPaused",
    "WorkflowReport",
    "WorkflowResult",
]


@attrs.frozen(kw_only=True, eq=False)
class WorkflowReport(RecordedResult):
    """What every ending carries."""

    workflow_id: str | None
    domain: str
    phase: str
    """The phase it is in."""
    state: Mapping[str, JSON]
    """The workflow's state (contract 4)."""
    todos: TodoView | None
    """What is done, under way and to come; None before the first state."""
    executions: Mapping[str, int]
    """How often each phase was executed."""
    lines: tuple[str, ...]
    """What people are told of this invocation, line by line."""

    @property
    def name(self) -> str:
        """What `resume` takes: the workflow's id, or the run's as long as there is none."""
        return self.workflow_id or self.run_id

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "kind": DISCLAIMER,
            "status": self.status,
            "run": self.run_id,
            "workflow": self.workflow_id,
            "domain": self.domain,
            "phase": self.phase,
            "state": dict(self.state),
            "todos": None if self.todos is None else attrs.asdict(self.todos),
            "executions": dict(self.executions),
            "usage": attrs.asdict(self.usage),
            "journal_head": self.head_json(),
        }


@attrs.frozen(kw_only=True, eq=False)
class WorkflowDone(WorkflowReport):
    """It reached its terminal phase."""

    status: ClassVar[str] = "done"


@attrs.frozen(kw_only=True, eq=False)
class WorkflowPaused(WorkflowReport):
    """It waits for somebody to decide; `resume` takes the choice."""

    status: ClassVar[str] = "paused"
    decision: Decision

    def as_json(self) -> dict[str, Any]:
        """The report with what has to be decided."""
        decision = self.decision
        waiting = {
            "about": decision.about,
            "message": decision.message,
            "options": list(decision.options),
            "details": [line.text for line in grounds_in(self.records)],
        }
        return {**super().as_json(), "decision": waiting}


@attrs.frozen(kw_only=True, eq=False)
class WorkflowAborted(WorkflowReport):
    """It was given up: by a decision, or because a gate denied it."""

    status: ClassVar[str] = "aborted"
    reason: str

    def as_json(self) -> dict[str, Any]:
        """The report with the reason."""
        return {**super().as_json(), "reason": self.reason}


WorkflowResult: TypeAlias = WorkflowDone | WorkflowPaused | WorkflowAborted


class WorkflowEndedError(OrchestratorError):
    """An invocation ended without a result; `report` says what there is."""

    outcome: ClassVar[str]
    """One word for how it ended."""

    def __init__(self, reason: str, report: WorkflowReport) -> None:
        self.reason = reason
        self.report = report
        super().__init__(f"workflow {report.name} {self.outcome} in phase {report.phase}: {reason}")


class WorkflowInterruptedError(WorkflowEndedError):
    """The workflow is left open and can be resumed; `__cause__` says what broke."""

    outcome: ClassVar[str] = "interrupted"


class WorkflowFailedError(WorkflowEndedError):
    """The engine failed; the workflow can be resumed at its last state."""

    outcome: ClassVar[str] = "failed"
