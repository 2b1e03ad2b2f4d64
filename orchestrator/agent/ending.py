"""Every way out: nothing is left running, the conversation is whole, and the end markers come once and last."""

from __future__ import annotations

from contextlib import suppress

from orchestrator.agent.calling import abandon_call
from orchestrator.agent.invocation import Invocation, StoppedError
from orchestrator.agent.outcomes import finished, outcome_of
from orchestrator.agent.transcript import close_conversation, tell_answer, tell_results
from orchestrator.agent.waiting import grounded
from orchestrator.closing import conclude
from orchestrator_events.agent import ActionsSettled, CancelCompleted, CancelRequested, PromptComplete
from orchestrator_events.execution import ExecutionCancelled, ExecutionEnd, OrchestratorComplete
from orchestrator_events.run import BudgetExhausted
from orchestrator_states.agent import AgentState

__all__ = ["cancel", "close", "is_closed", "run_out_of_time", "wind_down"]

CANCELLED = "The run was cancelled before it was finished."
STOPPED = "The run was stopped before it was finished."
NOT_RUN = "Interrupted: the run was stopped before the tool was run."
PREVIEW = 200
ACTING = AgentState.ACTING.value
ENDINGS = {
    AgentState.COMPLETED.value: ("success", "completed"),
    AgentState.INCOMPLETE.value: ("incomplete", "completed"),
    AgentState.CANCELLED.value: ("cancelled", "cancelled"),
}
"""Status of `orchestrator:complete` and of `execution:end`, by the state the run rests in."""


async def cancel(it: Invocation, reason: str, *, is_immediate: bool) -> None:
    """End the run for the host's sake: what ran is settled, told once, and the conversation is closed.

    Cancelled a second time in the midst of that, it goes on where it was.
    """
    run = it.run
    it.is_ending = True
    if run.is_over and (run.cancel is None or run.state != AgentState.CANCELLED):
        return await wind_down(it)
    if run.cancel is None:
        running = tuple(flight.name for flight in it.flights)
        it.fire(CancelRequested(is_immediate=is_immediate, running=running))
    was_immediate = is_immediate or (run.cancel is not None and run.cancel.is_immediate)
    if not run.is_over:
        await settle(it)
        it.fire(ExecutionCancelled(reason=reason))
    with suppress(StoppedError):
        await close_conversation(it, CANCELLED)
    return it.fire(CancelCompleted(was_immediate=was_immediate))


async def wind_down(it: Invocation) -> None:
    """Leave the conversation whole where the invocation cannot go on, or was denied."""
    it.is_ending = True
    if not it.run.is_over or it.run.is_denied:
        await settle(it)
        with suppress(StoppedError):
            await close_conversation(it, STOPPED)


async def run_out_of_time(it: Invocation) -> None:
    """What ran did not give way when the time was up: go on without it, to the conclusion."""
    run, state = it.run, it.run.state
    await settle(it)
    if run.state == ACTING:
        it.fire(ActionsSettled(turn=run.turn))
    it.fire(BudgetExhausted(limit="seconds", detail=f"the time was up in state {state}"))


async def settle(it: Invocation) -> None:
    """Stop what runs; every call of the turn has a result then, its own or a synthetic one, in the conversation."""
    run = it.run
    flights = {flight.key: flight for flight in it.flights}
    await grounded(it.flights)
    it.flights.clear()
    abandon_call(it, "the run was stopped while the call was in flight")
    asked = {call.id: call.tool for call in run.answer.calls} if run.answer and run.state == ACTING else {}
    begun = {call_id: intent.tool for call_id, intent in run.intents.items()}
    for call_id, tool in {**asked, **begun}.items():
        if call_id in run.results:
            continue
        if call_id in flights:
            outcome, result = outcome_of(it, flights[call_id])
            finished(it, call_id, tool, outcome, result.output, is_success=result.is_success)
        else:
            finished(it, call_id, tool, "interrupted", NOT_RUN)
    with suppress(StoppedError):
        if run.state == ACTING:
            await tell_answer(it)
        await tell_results(it)


async def close(it: Invocation, reason: str = "", *, is_broken: bool = False) -> None:
    """Fire and commit the end markers of the invocation."""
    run = it.run
    it.is_ending = True
    completion, ending = ENDINGS.get(run.state, ("incomplete", "error"))
    if run.is_denied:
        completion, ending, reason = "incomplete", "error", run.given_up
    response = run.final or "" if ending == "completed" else ""
    if ending == "completed":
        it.fire(PromptComplete(response_preview=response[:PREVIEW], length=len(response)))
    complete = OrchestratorComplete(orchestrator=it.parts.name, turn_count=run.answered, status=completion)
    await it.concluded(conclude(it.parts.bus, run, complete, response, ending, reason, is_broken=is_broken))


def is_closed(it: Invocation) -> bool:
    """Whether the end markers of this invocation are recorded."""
    records = it.run.records
    return not it.run.outbox and bool(records) and isinstance(records[-1].event, ExecutionEnd)
