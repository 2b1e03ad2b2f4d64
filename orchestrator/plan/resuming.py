"""Plans and steps, read back: the fold of their records, and what opens another invocation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.execution import Execution
from orchestrator.faults import closest_name
from orchestrator.folding import start_of
from orchestrator.history import UnknownRunError, load_execution
from orchestrator.plan.measuring import carry_over
from orchestrator.plan.planrun import PlanRun, read_step
from orchestrator.plan.recorded import step_run_id
from orchestrator.plan.steprun import StepRun
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_table
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.clock import Clock
from orchestrator_events.errors import JournalError
from orchestrator_events.journal import Journal
from orchestrator_events.record import Record
from orchestrator_states.plan import PLAN, STEP

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["begun_plan", "begun_step", "find_plan", "load_plan_run", "load_recorded_plan", "load_step_run", "reopen"]


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

    Raises ResumeRefusedError for a run of another lifecycle, and otherwise as `load_execution` does.
    """
    run = await load_execution(journal, run_id)
    if not isinstance(run, PlanRun):
        raise ResumeRefusedError(run_id, f"it is a {run.lifecycle}, not a plan")
    return run


async def load_step_run(journal: Journal, run_id: str) -> StepRun:
    """The step that its records fold into; errors as of `load_plan_run`."""
    run = await load_execution(journal, run_id)
    if not isinstance(run, StepRun):
        raise ResumeRefusedError(run_id, f"it is a {run.lifecycle}, not a step")
    return run


async def load_recorded_plan(
    journal: Journal, run_id: str, secrets: Secrets | None = None
) -> tuple[PlanRun, dict[str, StepRun]]:
    """The plan and the steps that ever began, by id, as their records tell them; errors as of `load_plan_run`."""
    run = await load_plan_run(journal, run_id)
    run.secrets = secrets
    found: dict[str, StepRun] = {}
    for step in run.effective.steps:
        step_run = step_run_id(run_id, step.id)
        if step_run in run.children and (await journal.head(step_run)).count:
            found[step.id] = await load_step_run(journal, step_run)
            found[step.id].secrets = secrets
    carry_over(run, found)
    return run, found


def begun_plan(record: Record, clock: Clock, journal: Journal) -> PlanRun:
    """The plan that a first record begins."""
    return PlanRun.blank(record.run_id, PLAN, start_of(record).budget, clock, journal)


def begun_step(record: Record, clock: Clock, journal: Journal) -> StepRun:
    """The step that a first record begins; JournalError where it holds no step."""
    start = start_of(record)
    try:
        step = read_step(start.prompt)
    except ValueError as error:
        raise JournalError(f"{error}", run_id=record.run_id, sequence=record.sequence) from error
    return StepRun.blank(record.run_id, STEP, start.budget, clock, journal, step=step)


def reopen(run: Execution, clock: Clock, budget: Budget, into: str, prompt: Blob | None = None) -> None:
    """Open another invocation of a plan or of a step; ResumeRefusedError where another table decided its moves."""
    refuse_other_table(run)
    begin_again(run, clock, budget, into, prompt=prompt)
