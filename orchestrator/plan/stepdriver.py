"""The life of a step: execute, verify, review, and fix until it is approved or has failed (contract 5).

One short function per state; each does that state's one effect and fires its event. Whatever is about to be done is
committed before it is, so that a step killed anywhere goes on where it was.
"""

from __future__ import annotations

import asyncio

from orchestrator.closing import conclude
from orchestrator.generating import InterruptionError
from orchestrator.plan.account import BudgetReachedError
from orchestrator.plan.contextbus import MissingArtifactsError
from orchestrator.plan.correcting import correct, routed, started
from orchestrator.plan.executing import execute
from orchestrator.plan.executors import WorkDeniedError
from orchestrator.plan.outputs import told
from orchestrator.plan.reviewing import review
from orchestrator.plan.routing import situation_of
from orchestrator.plan.verifying import verify
from orchestrator.plan.workshop import Workshop
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionFailed, OrchestratorComplete
from orchestrator_events.plan import StepBlocked, StepRequested
from orchestrator_states.plan import StepState

__all__ = ["drive_step"]

S = StepState
ENDINGS = {S.COMPLETED.value: "success", S.BLOCKED.value: "incomplete", S.FAILED.value: "incomplete"}


async def drive_step(it: Workshop, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: ARG001, FBT001 -- the supervisor's callback
    """Go on from the step's state until it rests; close the invocation exactly once, on every way out."""
    it.supervisor = supervisor
    run = it.run
    try:
        await it.commit()
        while not run.is_over:
            await advance(it)
            if not run.is_over:  # else the end markers are committed with it
                await it.commit()
    except asyncio.CancelledError:
        await close(it, "cancelled", "the task that awaited the plan was cancelled")
    except (InterruptionError, BudgetReachedError, JournalError) as error:
        await close(it, "error", str(error))
        raise
    except Exception as error:
        run.fire(ExecutionFailed(reason=describe(error)))
        await close(it, "error", describe(error))
        raise
    else:
        await close(it)


async def advance(it: Workshop) -> None:
    """Do the one effect of the step's state."""
    try:
        match S(it.run.state):
            case S.PENDING:
                await begin(it)
            case S.EXECUTING | S.FIXING if not it.run.is_executed:
                await execute(it)
            case S.FIXING:
                await correct(it)
            case S.VERIFYING:
                await verify(it)
            case S.REVIEWING:
                await review(it)
            case state:
                raise RuntimeError(f"a step in state {state} has no effect to do")
    except WorkDeniedError as denial:
        it.fire(StepBlocked(step=it.run.step.id, reason=f"denied: {denial}"))
    except MissingArtifactsError as error:
        it.fire(StepBlocked(step=it.run.step.id, reason=str(error)))


async def begin(it: Workshop) -> None:
    """Choose who does the step, build its prompt, ask the gate, and commit the intent."""
    step = it.run.step
    inputs = it.inputs()
    route = it.parts.policy.route(situation_of(step), step.model)
    prompt = it.parts.prompter.first(it.plan, told(step), inputs)
    ruling = await it.asked(StepRequested(step=step.id, prompt=prompt))
    if ruling.deny is not None:
        return it.fire(StepBlocked(step=step.id, reason=f"denied: {ruling.deny.reason}"))
    it.fire(routed(it, route))
    return it.fire(started(it, route, prompt))


async def close(it: Workshop, status: str = "", reason: str = "") -> None:
    """Fire and commit the end markers of the step's invocation."""
    run = it.run
    completion = ENDINGS.get(run.state, "incomplete")
    ending = "completed" if run.is_over else "error"
    if status == "cancelled":
        completion, ending = "cancelled", "cancelled"
    elif status == "error":
        completion, ending = "incomplete", "error"
    response = run.executed.output.digest if run.state == S.COMPLETED and run.executed is not None else ""
    complete = OrchestratorComplete(
        orchestrator="step", turn_count=sum(work.finished is not None for work in run.works.values()), status=completion
    )
    async with it.lock:
        before = len(run.records)
        await conclude(
            it.parts.room.bus, run, complete, response, ending, reason or run.reason, is_broken=status == "error"
        )
        if status != "error":
            it.studio.take(run, run.records[before:])
