"""From a first record to the run that it begins, of whichever lifecycle, for its records to be folded into."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.execution import Execution, changes_of
from orchestrator.jsondata import JSON
from orchestrator.run import Run
from orchestrator.spec import MergedSpec
from orchestrator.spec.loading import read_spec
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_events.record import Record
from orchestrator_states.agent import AGENT
from orchestrator_states.catalogue import UnknownLifecycleError, lifecycle
from orchestrator_states.run import RUN

if TYPE_CHECKING:
    from orchestrator.harness.harness import Harness

__all__ = ["Begin", "RecordedExecution", "begin_execution", "start_of", "tables_in"]

FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "orchestrator.folding:begun",
        "agent": "orchestrator.folding:begun_agent",
        "workflow": "orchestrator.workflow.folding:begun_workflow",
        "plan": "orchestrator.plan.resuming:begun_plan",
        "step": "orchestrator.plan.resuming:begun_step",
    }
)
"""What begins the fold of each lifecycle; of one that is not here, only what all lifecycles share is folded."""

Begin = Callable[[Record, Clock, Journal], Execution]
"""From a first record to the run that it begins."""


def begin_execution(record: Record, clock: Clock, journal: Journal) -> Execution:
    """The run that a first record begins, of whichever lifecycle, to fold its records into.

    Raises JournalError when it begins none, or is of a lifecycle that this release does not have.
    """
    place = FOLDS.get(record.lifecycle)
    if place is None:
        return begun_elsewhere(record, clock, journal)
    module, _, function = place.partition(":")
    begin: Begin = getattr(import_module(module), function)
    return begin(record, clock, journal)


def begun(record: Record, clock: Clock, journal: Journal) -> Run:
    """The run that a first record begins."""
    start = start_of(record)
    return Run.blank(record.run_id, RUN, start.budget, clock, journal, spec=spec_of(record, start))


def start_of(record: Record) -> ExecutionStart:
    """The event of a first record; JournalError when it is another than `execution:start`."""
    if not isinstance(record.event, ExecutionStart):
        message = f"run {record.run_id} begins with {record.event.name}, not {ExecutionStart.name}: no run of ours"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence)
    return record.event


def spec_of(record: Record, start: ExecutionStart) -> MergedSpec:
    """The spec that a run was started with; its text is stored beside the first record."""
    source = f"the spec of run {record.run_id}"
    text = start.prompt.data.decode()
    try:
        spec = read_spec(parse_document(text, ".json", source), source)
    except DocumentError as error:
        message = f"{error}: the run is of another release, or of another lifecycle"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence) from error
    if spec.canonical != text:
        message = f"{source} is not read back as it was stored: the run is of another release"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence)
    return spec


def begun_agent(record: Record, clock: Clock, journal: Journal) -> Execution:
    """The agent run that a first record begins; its tools have the roles that its identity says."""
    from orchestrator.agent.run import AgentRun

    start = start_of(record)
    if start.prompt.text is None:
        raise JournalError("its prompt is not there", run_id=record.run_id, sequence=record.sequence)
    harness = recorded_harness(start)
    own = {"prompt": start.prompt.text, "harness": harness}
    return AgentRun.blank(record.run_id, AGENT, start.budget, clock, journal, **own)


def recorded_harness(start: ExecutionStart) -> Harness:
    """As much of a harness as a record tells: the roles of tools, and whether green ends the run; no rules."""
    from orchestrator.harness.actions import ToolRole, ToolRoles
    from orchestrator.harness.harness import Harness

    told = fields_of(start.identity).get("harness")
    told = told if isinstance(told, dict) else {}
    given = told.get("roles")
    known = set(ToolRole)
    roles = {tool: ToolRole(role) for tool, role in given.items() if role in known} if isinstance(given, dict) else {}
    return Harness(
        rules=(),
        roles=ToolRoles(roles=roles),
        auto_verify=told.get("auto_verify") is True,
        finish_when_green=told.get("finish_when_green") is True,
    )


def fields_of(identity: str) -> Mapping[str, Any]:
    """The fields of an identity; none for what is no JSON object."""
    try:
        found = json.loads(identity)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


class RecordedExecution(Execution):
    """A run of which only what all lifecycles share is folded; records of a second lifecycle do not move it."""

    changes = changes_of({})

    def apply(self, record: Record) -> None:
        """Fold one record into the run."""
        state = self.state
        super().apply(record)
        if record.lifecycle != self.lifecycle:
            self.state = state


def begun_elsewhere(record: Record, clock: Clock, journal: Journal) -> RecordedExecution:
    """A run of a lifecycle that has no fold of its own."""
    start = start_of(record)
    try:
        table = lifecycle(record.lifecycle)
    except UnknownLifecycleError as error:
        message = f"run {record.run_id} is of another release: {error}"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence) from error
    return RecordedExecution.blank(record.run_id, table, start.budget, clock, journal)


def tables_in(start: ExecutionStart) -> dict[str, JSON]:
    """Tables of generated lifecycles that share the run's stream, by name: `tables` of its identity."""
    tables = fields_of(start.identity).get("tables")
    listed = tables if isinstance(tables, list) else []
    return {str(table["name"]): table for table in listed if isinstance(table, dict) and "name" in table}
