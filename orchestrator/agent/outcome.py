"""How an agent run ended: `AgentCompleted | AgentIncomplete`, or an error that carries the same report."""

from __future__ import annotations

from typing import ClassVar

import attrs

from orchestrator.agent.ports import Message
from orchestrator.harness.actions import ActionRecord
from orchestrator.harness.verification import Verification
from orchestrator.jsondata import JSON
from orchestrator.recordedresult import RecordedResult
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import IsolationEstablished

__all__ = [
    "AgentCancelledError",
    "AgentCompleted",
    "AgentEndedError",
    "AgentFailedError",
    "AgentIncomplete",
    "AgentInterruptedError",
    "AgentReport",
    "AgentRunReport",
]


@attrs.frozen(kw_only=True, eq=False)
class AgentRunReport(RecordedResult):
    """What every ending carries."""

    state: str
    """State the run is in."""
    name: str
    """Name of the agent."""
    answer: str
    """The final text; of a run without one, the last text that the model gave."""
    turns: int
    """Calls of the model that answered."""
    tool_calls: int
    """Tools run for the model, automatic verifications not counted."""
    messages: tuple[Message, ...] = attrs.field(repr=False)
    """What the run added to the conversation, in order."""
    actions: tuple[ActionRecord, ...] = attrs.field(repr=False)
    """Every action that was executed, in order."""
    last_verification: Verification | None
    best_verification: Verification | None
    isolation: IsolationEstablished | None
    """What held the tools in, this invocation; None when that was never found out."""

    def as_json(self) -> dict[str, JSON]:
        """The report as plain data."""
        return {
            "status": self.status,
            "run": self.run_id,
            "state": self.state,
            "agent": self.name,
            "answer": self.answer,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "usage": attrs.asdict(self.usage),
            "messages": [dict(message) for message in self.messages],
            "actions": [record.line for record in self.actions],
            "verification": {"last": counts(self.last_verification), "best": counts(self.best_verification)},
            "journal_head": self.head_json(),
        }


@attrs.frozen(kw_only=True, eq=False)
class AgentCompleted(AgentRunReport):
    """The agent answered."""

    status: ClassVar[str] = "completed"


@attrs.frozen(kw_only=True, eq=False)
class AgentIncomplete(AgentRunReport):
    """A limit ended the run; the answer is the closing one, or the text so far."""

    status: ClassVar[str] = "incomplete"
    limit: str
    """The limit that ended the run: iterations, tool_calls, or as the budget names it."""
    detail: str
    """The sums, in words."""

    def as_json(self) -> dict[str, JSON]:
        """The report with the limit."""
        return {**super().as_json(), "limit": self.limit, "detail": self.detail}


AgentReport = AgentCompleted | AgentIncomplete
"""The result of a run."""


class AgentEndedError(OrchestratorError):
    """An agent run ended without an answer; `report` says what there is."""

    outcome: ClassVar[str]
    """One word for how it ended."""

    def __init__(self, reason: str, report: AgentRunReport, *, is_denial: bool = False) -> None:
        self.reason = reason
        self.report = report
        self.is_denial = is_denial
        super().__init__(f"agent run {report.run_id} {self.outcome} in state {report.state}: {reason}")


class AgentInterruptedError(AgentEndedError):
    """The run is left open and can be resumed; `__cause__` says what broke."""

    outcome: ClassVar[str] = "interrupted"


class AgentCancelledError(AgentEndedError):
    """The host stopped the run, or a gate denied it (`is_denial`)."""

    outcome: ClassVar[str] = "cancelled"


class AgentFailedError(AgentEndedError):
    """The engine, or another part of the host's configuration, failed."""

    outcome: ClassVar[str] = "failed"


def counts(verification: Verification | None) -> JSON:
    """A verification as plain data."""
    if verification is None:
        return None
    return {
        "passed": verification.passed,
        "total": verification.total,
        "failing": [case.id for case in verification.failing],
        "turn": verification.turn,
    }
