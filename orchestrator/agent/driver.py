"""The agent loop: prompt, generate, act, verify, until there is an answer or a limit concludes the run.

One short function per open state; each does that state's one effect and fires its event. Before every effect the
gate is asked, the budget reserves, and intent and decisions are committed.
"""

from __future__ import annotations

import asyncio

from orchestrator.agent.acting import act
from orchestrator.agent.answering import conclude
from orchestrator.agent.calling import generate
from orchestrator.agent.cancelling import StopRequestedError, state_of
from orchestrator.agent.ending import cancel, close, is_closed, run_out_of_time, wind_down
from orchestrator.agent.invocation import Invocation, StoppedError
from orchestrator.agent.opening import open_invocation
from orchestrator.agent.prompting import begin_turn, submit
from orchestrator.agent.run import CALL_LIMIT
from orchestrator.agent.verifying import verify
from orchestrator.supervision import Supervisor
from orchestrator.wording import describe
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionFailed
from orchestrator_events.run import BudgetExhausted
from orchestrator_states.agent import AgentState

__all__ = ["drive"]

PROMPTING, GENERATING, ACTING = AgentState.PROMPTING.value, AgentState.GENERATING.value, AgentState.ACTING.value
VERIFYING, CONCLUDING = AgentState.VERIFYING.value, AgentState.CONCLUDING.value
TASK_CANCELLED = "the task that awaited the run was cancelled"
STOP_ASKED = "the host asked the run to stop"


async def drive(it: Invocation, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: FBT001 -- the supervisor's callback
    """Go on from the run's state until it rests; close the invocation exactly once, on every way out."""
    it.supervisor = supervisor
    try:
        await driven(it, is_overdue=is_overdue)
    except asyncio.CancelledError:  # also in the midst of another ending
        if not is_closed(it):
            state = state_of(it.cancellation)
            it.is_abandoned = True
            reason = STOP_ASKED if it.is_cut_short or state == "immediate" else TASK_CANCELLED
            await cancel(it, reason, is_immediate=not it.is_cut_short or state == "immediate")
            await close(it, reason)


async def driven(it: Invocation, *, is_overdue: bool) -> None:
    """Go on until the run rests, then close the invocation; a cancellation is the caller's to end in order."""
    try:
        if is_overdue:
            await give_up_effect(it)
        await open_invocation(it)
        while not it.run.is_over:
            await advance(it)
        await wind_down(it)
    except StopRequestedError:
        await cancel(it, STOP_ASKED, is_immediate=False)
        await close(it, STOP_ASKED)
    except (StoppedError, JournalError) as error:
        await wind_down(it)
        await close(it, describe(getattr(error, "error", error)), is_broken=True)
        raise
    except Exception as error:
        await wind_down(it)
        if not it.run.is_over:
            it.fire(ExecutionFailed(reason=describe(error)))
        await close(it, describe(error), is_broken=True)
        raise
    else:
        await close(it)


async def advance(it: Invocation) -> None:
    """Do the one effect of the run's state and fire its event."""
    state = it.run.state
    if state == PROMPTING:
        await prompt(it)
    elif state == GENERATING:
        await generate(it)
    elif state == ACTING:
        await act(it)
    elif state == VERIFYING:
        await verify(it)
    elif state == CONCLUDING:
        await conclude(it)
    else:
        raise RuntimeError(f"an agent run in state {state} has no effect to do")


async def prompt(it: Invocation) -> None:
    """Have the prompt admitted, then begin a turn, unless a limit is reached."""
    run, limits = it.run, it.parts.limits
    await it.refuse_stop()
    if not run.is_prompted:
        return await submit(it)
    if run.is_call_limit_reached:
        detail = f"{run.tool_calls} of {limits.tool_calls} tool calls made, and more were asked for"
        return it.fire(BudgetExhausted(limit=CALL_LIMIT, detail=detail))
    if run.turn >= limits.iterations:
        return it.fire(BudgetExhausted(limit="iterations", detail=f"{run.turn} of {limits.iterations} turns taken"))
    return await begin_turn(it)


async def give_up_effect(it: Invocation) -> None:
    """The effect under way did not give way when it was cancelled: go on as if it had."""
    if it.supervisor.is_cancelled:
        raise asyncio.CancelledError
    await run_out_of_time(it)
