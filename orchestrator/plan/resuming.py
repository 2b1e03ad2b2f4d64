"""Plans and steps, read back: the fold of their records, and what opens another invocation."""

from __future__ import annotations

from orchestrator.execution import Execution
from orchestrator.faults import closest_name
from orchestrator.folding import start_of
from orchestrator.history import RecordedClock, UnknownRunError, measured
from orchestrator.plan.planrun import PlanRun, blank_plan_run, read_step
from orchestrator.plan.steprun import StepRun, blank_step_run
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_table
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Journal
from orchestrator_events.record import Record
from orchestrator_states.plan import PLAN, STEP

__all__ = ["begun_plan", "begun_step", "find_plan", "load_plan_run", "load_step_run", "reopen"]


async def find_plan(journal: Journal, plan_id: str) -> str:
    """The newest run of a plan, by the plan's id or the run's own; UnknownRunError without one."""
    ids = await journal.run_ids()
    known: list[str] = []
    for run_id in reversed(ids):
        async for entry in journal.read(run_id):
            record = entry.record
            if record.lifecycle == PLAN.name:
                run = await load_plan_run(journal, run_id)
                known.append(run.current.plan_id)
                if plan_id in (run.current.plan_id, run_id):
                    return run_id
            break
    raise UnknownRunError(plan_id, closest_name(plan_id, known))


async def load_plan_run(journal: Journal, run_id: str) -> PlanRun:
    """The plan that its records fold into.

    Raises UnknownRunError for an id without records, ResumeRefusedError for a run of another lifecycle.
    """
    run = await folded(journal, run_id, PLAN.name)
    assert isinstance(run, PlanRun)
    return run


async def load_step_run(journal: Journal, run_id: str) -> StepRun:
    """The step that its records fold into; errors as of `load_plan_run`."""
    run = await folded(journal, run_id, STEP.name)
    assert isinstance(run, StepRun)
    return run


async def folded(journal: Journal, run_id: str, lifecycle: str) -> Execution:
    """A run of this lifecycle; its clock stands at its last record."""
    clock = RecordedClock()
    run: Execution | None = None
    async for entry in journal.read(run_id):
        record = entry.record
        clock.at = record.at
        if run is None:
            if record.lifecycle != lifecycle:
                raise ResumeRefusedError(run_id, f"it is a {record.lifecycle}, not a {lifecycle}")
            run = (begun_plan if lifecycle == PLAN.name else begun_step)(record, clock, journal)
        run.apply(record)
        run.records.append(record)
    if run is None:
        raise UnknownRunError(run_id, closest_name(run_id, await journal.run_ids()))
    if run.ledger.started_us is not None:  # the last invocation has no end
        run.ledger.started_us = None
        run.ledger.carried_us += measured(run)
    return run


def begun_plan(record: Record, clock: Clock, journal: Journal) -> PlanRun:
    """The plan that a first record begins."""
    return blank_plan_run(record.run_id, start_of(record).budget, clock, journal)


def begun_step(record: Record, clock: Clock, journal: Journal) -> StepRun:
    """The step that a first record begins; JournalError where it holds no step."""
    start = start_of(record)
    try:
        step = read_step(start.prompt)
    except ValueError as error:
        raise JournalError(f"{error}", run_id=record.run_id, sequence=record.sequence) from error
    return blank_step_run(record.run_id, step, start.budget, clock, journal)


def reopen(run: Execution, clock: Clock, budget: Budget, into: str, prompt: Blob | None = None) -> None:
    """Open another invocation of a plan or of a step; ResumeRefusedError where another table decided its moves."""
    refuse_other_table(run)
    begin_again(run, clock, budget, into, prompt=prompt)
