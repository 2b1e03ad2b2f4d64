"""Recorded runs, read back: the fold of a journal's records is the run as it was."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Final

import attrs

from orchestrator.execution import Execution
from orchestrator.faults import closest_name
from orchestrator.folding import Begin, RecordedExecution, begin_execution, start_of, tables_in
from orchestrator.outcome import RunReport
from orchestrator.reporting import report_on
from orchestrator.run import Run
from orchestrator_events.errors import JournalError, OrchestratorError
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.journal import Journal
from orchestrator_events.record import Entry

__all__ = [
    "LAST",
    "ForeignLifecycleError",
    "RecordedClock",
    "RecordedExecution",
    "UnknownRunError",
    "begin_execution",
    "find_run",
    "lifecycle_of",
    "load_execution",
    "load_run",
    "report_of",
    "start_of",
    "tables_in",
]

LAST: Final = "last"
"""What `find_run` takes for the newest run."""
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
        "work:finished",
    }
)
"""Events that say how long an effect took."""


class UnknownRunError(OrchestratorError):
    """A journal holds no run of this id; `near` is the one that was probably meant, or empty."""

    def __init__(
        self,
        run_id: str,
        near: str = "",
        fitting: tuple[str, ...] = (),
        *,
        place: str = "the journal",
        listing: str = "list the runs to see their ids",
    ) -> None:
        self.run_id = run_id
        self.near = near
        self.fitting = fitting
        if fitting:
            message = f"{run_id!r} begins the ids of several runs: {', '.join(fitting)}"
        else:
            message = f"no run {run_id!r} in {place}: {f'did you mean {near!r}?' if near else listing}"
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


async def lifecycle_of(journal: Journal, run_id: str) -> str:
    """The lifecycle of a run, from its first record alone; UnknownRunError for an id without records."""
    async for entry in first_of(journal, run_id):
        return entry.record.lifecycle
    raise UnknownRunError(run_id, closest_name(run_id, await journal.run_ids()))


async def load_run(journal: Journal, run_id: str) -> Run:
    """The conformance run that its records fold into, with the spec it was started with.

    Raises ForeignLifecycleError for a run of another lifecycle, and otherwise as `load_execution` does.
    """
    run = await load_execution(journal, run_id)
    if not isinstance(run, Run):
        raise ForeignLifecycleError(run_id, run.lifecycle)
    return run


async def load_execution(journal: Journal, run_id: str, begin: Begin = begin_execution) -> Execution:
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
                run = begin(record, clock, journal)
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


def report_of(run: Run) -> RunReport:
    """What a loaded run came to: Passed, Exhausted, or a plain report of a run without a result.

    What was configured comes from the first record.
    """
    return report_on(run, json.loads(start_of(run.records[0]).identity))
