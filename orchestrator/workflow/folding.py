"""A recorded workflow, read back: what its first record begins, for records to be folded into."""

from __future__ import annotations

import json

from orchestrator.history import start_of, tables_in
from orchestrator.workflow.running import WorkflowRun
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Journal
from orchestrator_events.record import Record
from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.machine import machine_of
from orchestrator_states.workflow import WORKFLOW

__all__ = ["begun_workflow", "blank_workflow"]


def begun_workflow(record: Record, clock: Clock, journal: Journal) -> WorkflowRun:
    """The workflow that a first record begins; its domain's table is in the record's identity.

    Raises JournalError where that is missing or no table.
    """
    start = start_of(record)
    try:
        identity = json.loads(start.identity)
    except ValueError:
        identity = {}
    table = tables_in(start).get(str(identity.get("domain", "")), {})
    try:
        phases = Lifecycle.from_json(table)
        parameters = json.loads(start.prompt.text or "{}")
    except (LifecycleError, ValueError) as error:
        message = f"run {record.run_id} is no workflow that can be read: {error}"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence) from error
    return blank_workflow(record.run_id, phases, start.budget, clock, journal, parameters)


def blank_workflow(
    run_id: str, phases: Lifecycle, budget: Budget, clock: Clock, journal: Journal, parameters: dict[str, object]
) -> WorkflowRun:
    """A workflow in its first state."""
    own = {"phases": machine_of(phases), "phase": phases.initial, "parameters": parameters}
    return WorkflowRun.blank(run_id, WORKFLOW, budget, clock, journal, **own)
