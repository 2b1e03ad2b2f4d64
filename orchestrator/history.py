"""Recorded runs, read back: the fold of a journal's records is the run as it was."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.execution import Execution, changes_of
from orchestrator.faults import closest_name
from orchestrator.jsondata import JSON
from orchestrator.outcome import RunReport
from orchestrator.reporting import report_on
from orchestrator.run import Run
from orchestrator.spec import MergedSpec
from orchestrator.spec.loading import read_spec
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError, OrchestratorError
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_events.ledger import Ledger
from orchestrator_events.record import Entry, Record
from orchestrator_states.catalogue import UnknownLifecycleError, lifecycle
from orchestrator_states.machine import machine_of
from orchestrator_states.run import RUN

if TYPE_CHECKING:
    from orchestrator.harness.harness import Harness

__all__ = [
    "LAST",
    "ForeignLifecycleError",
    "RecordedClock",
    "RecordedExecution",
    "UnknownRunError",
    "begin_execution",
    "blank_run",
    "find_run",
    "load_execution",
    "load_run",
    "report_of",
    "tables_in",
]

LAST: Final = "last"
"""What `find_run` takes for the newest run."""
FOLDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "run": "orchestrator.history:begun",
        "agent": "orchestrator.history:begun_agent",
        "workflow": "orchestrator.workflow.folding:begun_workflow",
    }
)
"""What begins the fold of each lifecycle; of one that is not here, only what all lifecycles share is folded."""
MEASURED: Final = frozenset(
    {
        "candidate:generated",
        "attempt:failed",
        "attempt:passed",
        "turn:answered",
        "action:finished",
        "verification:finished",
        "phase:finished",
        "phase:failed",
    }
)
"""Events that say how long an effect took."""


class UnknownRunError(OrchestratorError):
    """A journal holds no run of this id; `near` is the one that was probably meant, or empty."""

    def __init__(self, run_id: str, near: str = "", fitting: tuple[str, ...] = ()) -> None:
        self.run_id = run_id
        self.near = near
        self.fitting = fitting
        if fitting:
            message = f"{run_id!r} begins the ids of several runs: {', '.join(fitting)}"
        else:
            remedy = f"did you mean {near!r}?" if near else "list the runs to see their ids"
            message = f"no run {run_id!r} in the journal: {remedy}"
        super().__init__(message)


class ForeignLifecycleError(JournalError):
    """A run has another lifecycle than what was asked for needs; `lifecycle` is the one it has."""

    def __init__(self, run_id: str, lifecycle: str) -> None:
        self.lifecycle = lifecycle
        kind = "an agent run" if lifecycle == "agent" else f"of the lifecycle {lifecycle!r}"
        message = f"run {run_id} is {kind}, not a conformance run: `show`, `export` and `audit` take every run"
        super().__init__(message, run_id=run_id, sequence=1)


@attrs.define
class RecordedClock:
    """A clock that shows when the record being folded was made, so that a fold gives the times of the run."""

    at: int = 0

    def now(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return self.at

    def monotonic(self) -> int:
        """The same reading; differences are what counts."""
        return self.at


async def find_run(journal: Journal, text: str) -> str:
    """The id of the run that `text` names: whole, by its beginning, or as `last`.

    Raises UnknownRunError, with the id that was probably meant, when there is none or more than one.
    """
    ids = await journal.run_ids()
    if text in ids:
        return text
    if text == LAST and ids:
        return await newest_root(journal, ids)
    fitting = tuple(run_id for run_id in ids if text and run_id.startswith(text))
    if len(fitting) == 1:
        return fitting[0]
    raise UnknownRunError(text, closest_name(text, ids), fitting)


async def newest_root(journal: Journal, ids: tuple[str, ...]) -> str:
    """The newest run that no other run started; the newest of all where none can be read."""
    for run_id in reversed(ids):
        try:
            first = [entry.record async for entry in first_of(journal, run_id)]
        except OrchestratorError:
            return run_id
        if not (first and isinstance(first[0].event, ExecutionStart) and first[0].event.parent_id):
            return run_id
    return ids[-1]


async def first_of(journal: Journal, run_id: str) -> AsyncIterator[Entry]:
    """The first entry of a run."""
    async for entry in journal.read(run_id):
        yield entry
        return


async def load_run(journal: Journal, run_id: str) -> Run:
    """The conformance run that its records fold into, with the spec it was started with.

    Raises ForeignLifecycleError for a run of another lifecycle, and otherwise as `load_execution` does.
    """
    run = await load_execution(journal, run_id)
    if not isinstance(run, Run):
        raise ForeignLifecycleError(run_id, run.lifecycle)
    return run


async def load_execution(journal: Journal, run_id: str) -> Execution:
    """The run that its records fold into, whichever lifecycle it has: a Run, an AgentRun, a RecordedExecution.

    Its clock stands at its last record; of an invocation without an end, the time that its records measured counts.
    Raises UnknownRunError for an id without records, JournalError and
    EventError for records that are damaged or of another release.
    """
    clock = RecordedClock()
    run: Execution | None = None
    try:
        async for entry in journal.read(run_id):
            record = entry.record
            clock.at = record.at
            if run is None:
                run = begin_execution(record, clock, journal)
            run.apply(record)
            run.records.append(record)
    except JournalError as error:
        message = f"{error}; of run {run_id} {recoverable(run)}"
        raise JournalError(message, run_id=run_id, sequence=error.sequence) from error
    if run is None:
        raise UnknownRunError(run_id, closest_name(run_id, await journal.run_ids()))
    if run.ledger.started_us is not None:  # the last invocation has no end
        run.ledger.started_us = None
        run.ledger.carried_us += measured(run)
    return run


def begin_execution(record: Record, clock: Clock, journal: Journal) -> Execution:
    """The run that a first record begins, of whichever lifecycle, to fold its records into.

    Raises JournalError when it begins none, or is of a lifecycle that this release does not have.
    """
    place = FOLDS.get(record.lifecycle)
    if place is None:
        return begun_elsewhere(record, clock, journal)
    module, _, function = place.partition(":")
    begin: Callable[[Record, Clock, Journal], Execution] = getattr(import_module(module), function)
    return begin(record, clock, journal)


def recoverable(run: Execution | None) -> str:
    """What can still be had of a run whose next record is damaged."""
    if run is None:
        return "no record can be read"
    return f"records 1 to {run.sequence} can be read: export the run as JSON lines to keep them"


def measured(run: Execution) -> int:
    """What the records of the last invocation measured of its active time, microseconds."""
    total = 0
    for record in reversed(run.records):
        event = record.event
        if isinstance(event, ExecutionStart | ExecutionEnd):
            break
        if event.name in MEASURED:
            total += int(getattr(event, "duration_us", 0))
    return total


def begun_agent(record: Record, clock: Clock, journal: Journal) -> Execution:
    """The agent run that a first record begins; its tools have the roles that its identity says."""
    from orchestrator.agent.recorded import blank_run as blank_agent_run

    start = start_of(record)
    if start.prompt.text is None:
        raise JournalError("its prompt is not there", run_id=record.run_id, sequence=record.sequence)
    harness = recorded_harness(start)
    return blank_agent_run(record.run_id, start.prompt.text, start.budget, clock, journal, harness)


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
        machine = machine_of(lifecycle(record.lifecycle))
    except UnknownLifecycleError as error:
        message = f"run {record.run_id} is of another release: {error}"
        raise JournalError(message, run_id=record.run_id, sequence=record.sequence) from error
    return RecordedExecution(
        run_id=record.run_id,
        machine=machine,
        ledger=Ledger(start.budget, clock),
        clock=clock,
        journal=journal,
        state=machine.table.initial,
        lifecycle=machine.table.name,
    )


def tables_in(start: ExecutionStart) -> dict[str, JSON]:
    """Tables of generated lifecycles that share the run's stream, by name: `tables` of its identity."""
    tables = fields_of(start.identity).get("tables")
    listed = tables if isinstance(tables, list) else []
    return {str(table["name"]): table for table in listed if isinstance(table, dict) and "name" in table}


def blank_run(run_id: str, spec: MergedSpec, budget: Budget, clock: Clock, journal: Journal) -> Run:
    """A run in its first state, to fold records into."""
    machine = machine_of(RUN)
    return Run(
        run_id=run_id,
        spec=spec,
        machine=machine,
        ledger=Ledger(budget, clock),
        clock=clock,
        journal=journal,
        state=machine.table.initial,
        lifecycle=machine.table.name,
    )


def report_of(run: Run) -> RunReport:
    """What a loaded run came to: Passed, Exhausted, or a plain report of a run without a result.

    What was configured comes from the first record.
    """
    return report_on(run, json.loads(start_of(run.records[0]).identity))


def begun(record: Record, clock: Clock, journal: Journal) -> Run:
    """The run that a first record begins."""
    start = start_of(record)
    return blank_run(record.run_id, spec_of(record, start), start.budget, clock, journal)


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
