"""The loop of a phased workflow (contract 4): read, plan, execute, merge, write, report, check, and from the beginning.

One short function per step; each does that step's one effect and fires its event. Whatever is about to be done is
committed before it is, so that a workflow killed anywhere goes on where it was.
"""

from __future__ import annotations

import asyncio

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.closing import conclude
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator.workflow.cascade import failures_in_window, is_cascade
from orchestrator.workflow.components.learnings import Learnings
from orchestrator.workflow.deciding import decision_of, taken_by_callback_or_policy
from orchestrator.workflow.decisions import OPTIONS, About
from orchestrator.workflow.domain import DONE
from orchestrator.workflow.executing import execute, out_of_time
from orchestrator.workflow.filing import read_step, write_step
from orchestrator.workflow.invocation import Invocation, PhaseHost
from orchestrator.workflow.losing import settle_lost
from orchestrator.workflow.merging import merged, summary_of, updates_after
from orchestrator.workflow.messages import NOT_FOUND, UNWRITABLE
from orchestrator.workflow.statetext import written
from orchestrator.workflow.todos import todos_of, written_todos
from orchestrator_events.blob import Blob
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import (
    ExecutionFailed,
    OrchestratorComplete,
)
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    LearningRecorded,
    PhaseFailed,
    StateMerged,
    StateUnwritable,
    SummaryReported,
    TodosUpdated,
    WorkflowCompleted,
    WorkflowContinued,
)
from orchestrator_states.workflow import WorkflowState

__all__ = ["MOST_FAILURES", "drive"]

S = WorkflowState
MOST_FAILURES = 5
"""A phase that fails more often than this in a row halts the workflow: it goes round in circles."""
ENDINGS = {
    S.DONE.value: ("success", "completed"),
    S.PAUSED.value: ("incomplete", "completed"),
    S.ABORTED.value: ("cancelled", "cancelled"),
}
"""Status of `orchestrator:complete` and of `execution:end`, by the state the run rests in."""


async def drive(it: Invocation, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: FBT001 -- the supervisor's callback
    """Go on from the run's state until it rests; close the invocation exactly once, on every way out."""
    it.supervisor = supervisor
    run = it.run
    try:
        if is_overdue:
            await give_up_effect(it)
        await it.commit()
        while not run.is_over or await taken_by_callback_or_policy(it):
            await advance(it)
    except asyncio.CancelledError:
        await it.close_host()
        await close(it, "the task that awaited the workflow was cancelled", "cancelled")
    except JournalError as error:
        await close(it, str(error), "error")
        raise
    except GeneratorUnavailableError as error:  # the workflow is left open in its phase
        await it.close_host()
        await close(it, describe(error), "error")
        raise
    except Exception as error:
        await it.close_host()
        if run.state == S.EXECUTING:
            await settle_lost(it, None, "the engine failed")
        if not run.is_over:
            run.fire(ExecutionFailed(reason=describe(error)))
        await close(it, describe(error), "error")
        raise
    else:
        await close(it)


async def advance(it: Invocation) -> None:
    """Do the one step that the run's state asks for."""
    match S(it.run.state):
        case S.READING:
            await read_step(it)
        case S.PLANNING:
            plan(it)
        case S.EXECUTING:
            await execute_step(it)
        case S.MERGING:
            merge(it)
        case S.WRITING:
            await write_step(it)
        case S.REPORTING:
            report(it)
        case S.CHECKING:
            check(it)
        case state:
            raise RuntimeError(f"a workflow in state {state} has no step to do")


def plan(it: Invocation) -> None:
    """Step 2: map the state to the to-do list; a summary that a failed write had held back is shown first."""
    run = it.run
    if run.is_unreported:
        summarise(it)
    it.fire(TodosUpdated(todos=Blob(written_todos(todos_of(it.parts.domain, run.current)))))


async def execute_step(it: Invocation) -> None:
    """Step 3: execute the phase; the terminal one has nothing to execute."""
    if it.run.phase == DONE:
        return it.fire(WorkflowCompleted(phase=DONE))
    return await execute(it)


def merge(it: Invocation) -> None:
    """Step 4: the phase's updates into the state; success clears the error, failure says what and how often."""
    run, outcome = it.run, it.run.outcome
    assert outcome is not None
    if isinstance(outcome, PhaseFailed):
        it.fire(learned(it, outcome))
    before = run.current
    updates = updates_after(before, outcome, is_cascade=is_cascade(run.outcomes, it.parts.domain.cascade))
    after = merged(before, updates, run.clock.now())
    phase = str(updates["phase"])
    it.fire(StateMerged(phase=phase, fields_updated=after.fields_updated, state=Blob(written(after.state))))
    if not isinstance(outcome, PhaseFailed):
        run.enter(phase)


def learned(it: Invocation, failure: PhaseFailed) -> LearningRecorded:
    """The learning record of a phase's failure, which a cascade is diagnosed from and a later one compared with."""
    host = PhaseHost(it=it, phase=failure.phase, ends_us=None)
    learnings = Learnings(it.parts.components.learning_recorder, host)
    return learnings.failure_event("implementation", failure.error, retry_count=failure.retry_count)


def report(it: Invocation) -> None:
    """Step 6: show the phase's summary."""
    summarise(it)


def summarise(it: Invocation) -> None:
    """Fire the summary of the last phase."""
    outcome = it.run.outcome
    assert outcome is not None
    it.fire(SummaryReported(phase=outcome.phase, output=Blob(summary_of(outcome))))


def check(it: Invocation) -> None:
    """Step 7: done, something to decide, or on to step 1."""
    run = it.run
    state = run.current
    if run.trouble is not None:
        return need(it, *trouble_of(it))
    if run.phase == DONE:
        return it.fire(WorkflowCompleted(phase=DONE))
    is_halted = run.failures > MOST_FAILURES
    if state.get("cascade_detected"):
        alert(it)
        if not is_halted:
            return need(it, About.CASCADE, "Fix the root cause, skip, or abort.")
    if state.get("error") is not None:
        halted = f"Phase {run.phase} has failed {run.failures} times in a row: it goes round in circles."
        about = About.HALTED if is_halted else About.PHASE_ERROR
        return need(it, about, f"{halted}\nError: {state['error']}" if is_halted else f"Error: {state['error']}")
    return it.fire(WorkflowContinued(phase=run.phase))


def alert(it: Invocation) -> None:
    """A cascade: diagnose it from the learning records, and report it."""
    run, rule = it.run, it.parts.domain.cascade
    host = PhaseHost(it=it, phase=run.phase, ends_us=None)
    found = Learnings(it.parts.components.learning_recorder, host).diagnose(run.errors[-rule.window :])
    it.fire(
        CascadeDetected(
            failures_in_window=failures_in_window(run.outcomes, rule),
            threshold=rule.threshold,
            window=rule.window,
            diagnosis=found.diagnosis,
            recommendation=found.recommendation,
        )
    )


def need(it: Invocation, about: About, message: str) -> None:
    """Pause until somebody decides."""
    it.fire(DecisionNeeded(about=about.value, message=message, options=OPTIONS[about]))


def trouble_of(it: Invocation) -> tuple[About, str]:
    """What has to be decided about the state file."""
    trouble = it.run.trouble
    assert trouble is not None
    if isinstance(trouble, StateUnwritable):
        return About.WRITE_FAILED, f"{UNWRITABLE}: {trouble.message}"
    match trouble.problem:
        case "not found":
            return About.NOT_FOUND, f"{NOT_FOUND} Start fresh or provide state?"
        case "corrupt":
            return About.CORRUPT, trouble.message
        case _:
            return About.MISMATCH, f"{trouble.message}: use the file, or what the journal says?"


async def give_up_effect(it: Invocation) -> None:
    """The effect under way did not give way when it was cancelled: go on as if it had."""
    if it.supervisor.is_cancelled:
        raise asyncio.CancelledError
    if it.run.state == S.EXECUTING and it.run.is_in_flight:
        await out_of_time(it)
    elif it.run.state != S.PAUSED:
        it.fire(BudgetExhausted(limit="seconds", detail=f"the time was up in state {it.run.state}"))


async def close(it: Invocation, reason: str = "", status: str = "") -> None:
    """Fire and commit the end markers of the invocation."""
    run = it.run
    completion, ending = ENDINGS.get(run.state, ("incomplete", "error"))
    if status == "cancelled":
        completion, ending = "cancelled", "cancelled"
    elif status == "error" or run.is_denied:
        completion, ending, reason = "incomplete", "error", reason or run.given_up
    decision = decision_of(run)
    if decision is not None and not reason:
        reason = f"waits for a decision about {decision.about}"
    complete = OrchestratorComplete(orchestrator="workflow", turn_count=sum(run.executions.values()), status=completion)
    response = Blob(run.state_text).digest if run.state == S.DONE else ""
    async with it.lock:
        await conclude(it.parts.bus, run, complete, response, ending, reason, is_broken=status == "error")
