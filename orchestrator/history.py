"""Recorded runs, read back: the fold of a journal's records is the run as it was."""

from __future__ import annotations

import json
from typing import Final

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import closest_name
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
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, AttemptPassed, CandidateGenerated
from orchestrator_states.machine import machine_of
from orchestrator_states.run import RUN

__all__ = ["LAST", "RecordedClock", "UnknownRunError", "blank_run", "find_run", "load_run", "report_of"]

LAST: Final = "last"
"""What `find_run` takes for the newest run."""


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
        return ids[-1]
    fitting = tuple(run_id for run_id in ids if text and run_id.startswith(text))
    if len(fitting) == 1:
        return fitting[0]
    raise UnknownRunError(text, closest_name(text, ids), fitting)


async def load_run(journal: Journal, run_id: str) -> Run:
    """The run that its records fold into, with the spec it was started with.

    Its clock stands at its last record; of an invocation without an end, the time that its records measured counts.
    Raises UnknownRunError for an id without records, JournalError and
    EventError for records that are damaged or of another release.
    """
    clock = RecordedClock()
    run: Run | None = None
    try:
        async for entry in journal.read(run_id):
            record = entry.record
            clock.at = record.at
            if run is None:
                run = begun(record, clock, journal)
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


def recoverable(run: Run | None) -> str:
    """What can still be had of a run whose next record is damaged."""
    if run is None:
        return "no record can be read"
    return f"records 1 to {run.sequence} can be read: export the run as JSON lines to keep them"


def measured(run: Run) -> int:
    """What the records of the last invocation measured of its active time, microseconds."""
    total = 0
    for record in reversed(run.records):
        event = record.event
        if isinstance(event, ExecutionStart | ExecutionEnd):
            break
        if isinstance(event, CandidateGenerated | AttemptFailed | AttemptPassed):
            total += event.duration_us
    return total


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
