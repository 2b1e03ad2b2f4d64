"""From an agent run, live or read back, to the report of what it came to."""

from __future__ import annotations

from typing import Any

from orchestrator.agent.outcome import AgentCompleted, AgentIncomplete, AgentRunReport
from orchestrator.agent.run import AgentRun
from orchestrator.recordedresult import UsageTotals
from orchestrator_states.agent import AgentState

__all__ = ["report_on"]


def report_on(run: AgentRun, name: str) -> AgentRunReport:
    """AgentCompleted or AgentIncomplete for a run that has an answer, a plain report for one that has none (yet)."""
    fields = measures(run, name)
    if run.state == AgentState.COMPLETED:
        return AgentCompleted(**fields)
    if run.state == AgentState.INCOMPLETE and run.exhausted is not None:
        return AgentIncomplete(**fields, limit=run.exhausted.limit, detail=run.exhausted.detail)
    return AgentRunReport(**fields)


def measures(run: AgentRun, name: str) -> dict[str, Any]:
    """What the fold of the records says."""
    ledger = run.ledger
    return {
        "run_id": run.run_id,
        "state": run.state,
        "name": name,
        "answer": run.text if run.final is None else run.final,
        "turns": run.answered,
        "tool_calls": run.tool_calls,
        "usage": UsageTotals.of(ledger),
        "messages": tuple(run.messages),
        "actions": tuple(run.past),
        "last_verification": run.progress.last,
        "best_verification": run.progress.best,
        "isolation": run.isolation,
        "records": tuple(run.records),
    }
