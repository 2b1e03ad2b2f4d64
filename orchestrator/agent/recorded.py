"""Recorded agent runs, read back: the fold of a journal's records is the run as it was."""

from __future__ import annotations

from orchestrator.agent.run import AgentRun
from orchestrator.execution import Execution
from orchestrator.folding import begin_execution
from orchestrator.harness.harness import Harness
from orchestrator.history import load_execution, start_of
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Journal
from orchestrator_events.record import Record
from orchestrator_states.agent import AGENT

__all__ = ["load_agent_run"]


async def load_agent_run(journal: Journal, run_id: str, harness: Harness) -> AgentRun:
    """The agent run that its records fold into; the harness says which tool has which role.

    Raises JournalError for a run of another lifecycle, and otherwise as `load_execution` does.
    """

    def begun(record: Record, clock: Clock, journal: Journal) -> Execution:
        if record.lifecycle != AGENT.name:
            return begin_execution(record, clock, journal)
        start = start_of(record)
        own = {"prompt": start.prompt.text or "", "harness": harness}
        return AgentRun.blank(run_id, AGENT, start.budget, clock, journal, **own)

    run = await load_execution(journal, run_id, begun)
    if not isinstance(run, AgentRun):
        message = f"run {run_id} is a {run.lifecycle}, not an agent run: resume it with what made it"
        raise JournalError(message, run_id=run_id, sequence=1)
    return run
