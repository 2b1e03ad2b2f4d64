"""One tool call from its start to its recorded result, whatever the tool does."""

from __future__ import annotations

import json

import attrs

from orchestrator.agent.cancelling import tell_tool
from orchestrator.agent.injecting import take_injections
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.plainjson import bounded, clean, plain, written
from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.agent.verdicts import reported
from orchestrator.agent.waiting import Flight, launched
from orchestrator.harness.actions import ToolRole
from orchestrator.wording import describe
from orchestrator_events.agent import ActionFinished, ActionStarted, ToolError, ToolPost
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken, Ruling

__all__ = ["ended", "finished", "flown", "outcome_of", "tool_error"]

LATE = "Interrupted: the tool ran past its limit of {:g} s. Whether it took effect is unknown."
INTERRUPTED = "Interrupted: the run was stopped while the tool was running. Whether it took effect is unknown."


def flown(it: Invocation, intent: ActionStarted) -> Flight:
    """Start a tool with what is recorded of its call."""
    tool = it.parts.tools[intent.tool]
    seconds = it.seconds_for(it.parts.limits.seconds_of(intent.tool))
    request = CallRequest(
        run_id=it.run.run_id,
        call_id=intent.call_id,
        arguments=json.loads(intent.input.text or "{}"),
        seconds=seconds,
    )

    async def called() -> object:
        return await tool.call(request)

    tell_tool(it.cancellation, "tool_started", intent.call_id, intent.tool)
    return launched(it, intent.call_id, intent.tool, called, seconds)


async def ended(it: Invocation, flight: Flight) -> ToolOutcome:
    """Take what came of a call: put it to the gate, record it, and see whether it verified anything."""
    tell_tool(it.cancellation, "tool_ended", flight.key)
    duration_us = it.run.clock.monotonic() - flight.began_us
    outcome, result = outcome_of(it, flight)
    ruling = Ruling()
    if outcome in {"done", "failed"}:
        outcome, result, ruling = await passed_on(it, flight, outcome, result)
    finished(
        it,
        flight.key,
        flight.name,
        outcome,
        result.output,
        is_success=result.is_success,
        duration_us=duration_us,
        decisions=ruling.taken,
    )
    is_own = not it.run.intents[flight.key].is_automatic
    if is_own and it.parts.harness.roles.role_of(flight.name) is ToolRole.VERIFY:
        it.fire(reported(it.run.turn, result.data, duration_us, is_automatic=False))
    return result


def outcome_of(it: Invocation, flight: Flight) -> tuple[str, ToolOutcome]:
    """What came of a call, in one word and as the model reads it."""
    if flight.is_late:
        return "interrupted", ToolOutcome(is_success=False, output=LATE.format(flight.seconds))
    if flight.is_interrupted:
        return "interrupted", ToolOutcome(is_success=False, output=INTERRUPTED)
    error = flight.error
    given = None if error is not None else flight.task.result()
    if error is None and not isinstance(given, ToolOutcome):
        error = TypeError(f"the tool returned a {type(given).__name__}, not a ToolOutcome")
    if error is not None:
        it.fire(tool_error(it, flight.key, flight.name, type(error).__name__, describe(error)))
        return "failed", ToolOutcome(is_success=False, output=f"Error: {describe(error)}")
    assert isinstance(given, ToolOutcome)
    return ("done" if given.is_success is True else "failed"), readable(it, given)


def readable(it: Invocation, given: ToolOutcome) -> ToolOutcome:
    """The outcome with a text that any record and any model can take."""
    output: object = given.output
    text = output if isinstance(output, str) else written(output)
    return ToolOutcome(
        is_success=given.is_success is True,
        output=bounded(text, it.parts.limits.output_characters),
        data=plain(given.data),
    )


async def passed_on(
    it: Invocation, flight: Flight, outcome: str, result: ToolOutcome
) -> tuple[str, ToolOutcome, Ruling]:
    """The outcome as the subscribers at tool:post changed it, or that it was withheld."""
    gate = ToolPost(
        turn=it.run.turn,
        call_id=flight.key,
        tool_name=flight.name,
        tool_input=it.run.intents[flight.key].input.text or "{}",
        is_success=result.is_success,
        output=result.output,
    )
    ruling = await it.asked(gate)
    take_injections(it, gate, ruling)
    if ruling.deny is not None:
        withheld = ToolOutcome(is_success=False, output=f"Withheld: {clean(ruling.deny.reason)}")
        return "withheld", withheld, ruling
    changes = ruling.changes
    output = bounded(str(changes.get("output", result.output)), it.parts.limits.output_characters)
    is_success = bool(changes.get("is_success", result.is_success))
    if is_success is not result.is_success:
        outcome = "done" if is_success else "failed"
    return outcome, attrs.evolve(result, output=output, is_success=is_success), ruling


def finished(
    it: Invocation,
    call_id: str,
    tool: str,
    outcome: str,
    output: str,
    *,
    is_success: bool = False,
    duration_us: int = 0,
    decisions: tuple[DecisionTaken, ...] = (),
) -> None:
    """Fire what came of a call."""
    it.fire(
        ActionFinished(
            turn=it.run.turn,
            call_id=call_id,
            tool=tool,
            is_success=is_success,
            output=Blob(clean(output)),
            outcome=outcome,
            duration_us=duration_us,
            decisions=decisions,
        )
    )


def tool_error(it: Invocation, call_id: str, tool: str, kind: str, message: str) -> ToolError:
    """A call that raised, or that nobody can answer."""
    return ToolError(turn=it.run.turn, call_id=call_id, tool_name=tool, error_type=kind, message=message)
