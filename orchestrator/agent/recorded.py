"""Recorded agent runs, read back: the fold of a journal's records is the run as it was."""

from __future__ import annotations

from orchestrator.agent.run import AgentRun
from orchestrator.faults import closest_name
from orchestrator.harness.harness import Harness
from orchestrator.history import RecordedClock, UnknownRunError, measured, start_of
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_states.agent import AGENT
from orchestrator_states.machine import machine_of

__all__ = ["blank_run", "load_agent_run"]


async def load_agent_run(journal: Journal, run_id: str, harness: Harness) -> AgentRun:
    """The agent run that its records fold into; the harness says which tool has which role.

    Its clock stands at its last record; of an invocation without an end, the time that its records measured counts.
    Raises UnknownRunError for an id without records, JournalError for damaged ones and those of another lifecycle.
    """
    clock = RecordedClock()
    run: AgentRun | None = None
    async for entry in journal.read(run_id):
        record = entry.record
        clock.at = record.at
        if run is None:
            start = start_of(record)
            if record.lifecycle != AGENT.name:
                message = f"run {run_id} is a {record.lifecycle}, not an agent run: resume it with what made it"
                raise JournalError(message, run_id=run_id, sequence=record.sequence)
            run = blank_run(run_id, start.prompt.text or "", start.budget, clock, journal, harness)
        run.apply(record)
        run.records.append(record)
    if run is None:
        raise UnknownRunError(run_id, closest_name(run_id, await journal.run_ids()))
    if run.ledger.started_us is not None:  # the last invocation has no end
        run.ledger.started_us = None
        run.ledger.carried_us += measured(run)
    return run


def blank_run(run_id: str, prompt: str, budget: Budget, clock: Clock, journal: Journal, harness: Harness) -> AgentRun:
    """An agent run in its first state."""
    machine = machine_of(AGENT)
    return AgentRun(
        run_id=run_id,
        machine=machine,
        ledger=Ledger(budget, clock),
        clock=clock,
        journal=journal,
        state=machine.table.initial,
        lifecycle=machine.table.name,
        harness=harness,
        prompt=prompt,
    )
