"""The tool calls of one turn: admitted one by one, run side by side, told in the order they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from orchestrator.agent.answers import Call
from orchestrator.agent.injecting import take_injections
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.outcomes import ended, finished, flown, tool_error
from orchestrator.agent.plainjson import clean, read_object, written
from orchestrator.agent.ports import Tool
from orchestrator.agent.run import CALL_LIMIT
from orchestrator.agent.transcript import tell_answer, tell_results
from orchestrator.agent.waiting import next_landed
from orchestrator.harness.actions import ActionRecord
from orchestrator.harness.decisions import Denial
from orchestrator.jsondata import JSON
from orchestrator_events.agent import ActionDenied, ActionsSettled, ActionStarted, HarnessWarned, ToolPre
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken

__all__ = ["Admission", "act", "admitted"]

UNKNOWN = "Outcome unknown: the run was cut off while the tool was running, and it is not run again on its own."


async def act(it: Invocation) -> None:
    """Run the calls of the turn that have no result yet, and add every result to the conversation."""
    run = it.run
    assert run.answer is not None
    await tell_answer(it)
    for group in grouped(it, [call for call in run.answer.calls if call.id not in run.results]):
        await it.refuse_stop()
        await run_group(it, group)
    await tell_results(it)
    it.fire(ActionsSettled(turn=run.turn))


def grouped(it: Invocation, calls: Sequence[Call]) -> Iterator[list[Call]]:
    """The calls in order, those that may run side by side together: a write or a verification stands alone."""
    roles, group = it.parts.harness.roles, list[Call]()
    for call in calls:
        if roles.is_barrier(call.tool):
            if group:
                yield group
            yield [call]
            group = []
        else:
            group.append(call)
    if group:
        yield group


async def run_group(it: Invocation, group: list[Call]) -> None:
    """Admit the calls in order, commit the intents together, run them, and take each result as it comes."""
    run = it.run
    ahead: list[ActionRecord] = []
    for call in group:
        if call.id in run.intents:
            lost(it, call)
        else:
            await begin(it, call, ahead)
    await it.commit()
    await it.refuse_stop()
    ready = [run.intents[call.id] for call in group if call.id in run.intents and call.id not in run.results]
    flights = [flown(it, intent) for intent in ready]
    while flights:
        await ended(it, await next_landed(it, flights))
        await it.commit()


def lost(it: Invocation, call: Call) -> None:
    """The call was under way when an earlier invocation was cut off: it is run again only where that does no harm."""
    if not it.run.intents[call.id].is_idempotent:
        finished(it, call.id, call.tool, "outcome unknown", UNKNOWN)


async def begin(it: Invocation, call: Call, ahead: list[ActionRecord]) -> None:
    """Fire the intent to run a call, or what became of one that is not run."""
    tool, limit = it.parts.tools.get(call.tool), it.parts.limits.tool_calls
    if call.fault:
        return finished(it, call.id, call.tool, "failed", f"Error: {call.fault}")
    if tool is None:
        known = ", ".join(it.parts.tools) or "none"
        it.fire(tool_error(it, call.id, call.tool, "UnknownTool", f"there is no tool {call.tool!r}"))
        return finished(it, call.id, call.tool, "unknown tool", f"Error: Tool '{call.tool}' not found. Tools: {known}")
    if limit is not None and it.run.tool_calls >= limit:
        return refuse(it, call, Denial(CALL_LIMIT, f"the limit of {limit} tool calls is reached"), ())
    admission = await admitted(it, call)
    arguments, taken, denial = admission.arguments, admission.taken, admission.denial
    if denial is not None:
        return refuse(it, call, denial, taken)
    denial = judged(it, call, arguments, ahead)
    if denial is not None:
        return refuse(it, attrs.evolve(call, arguments=arguments), denial, taken)
    return intend(it, call, tool, admission)


@attrs.frozen(kw_only=True)
class Admission:
    """What the gate's subscribers said of a call."""

    arguments: Mapping[str, JSON]
    """As they changed them."""
    text: str
    """The same as JSON text."""
    taken: tuple[DecisionTaken, ...]
    denial: Denial | None = None


async def admitted(it: Invocation, call: Call) -> Admission:
    """Put a call to the gate."""
    gate = ToolPre(turn=it.run.turn, call_id=call.id, tool_name=call.tool, tool_input=written(call.arguments))
    ruling = await it.asked(gate)
    take_injections(it, gate, ruling)
    if ruling.deny is not None:
        source = next((each.subscriber for each in ruling.taken if each.action == "deny"), "approval")
        denial = Denial(clean(source), clean(ruling.deny.reason))
        return Admission(arguments=call.arguments, text=gate.tool_input, taken=ruling.taken, denial=denial)
    changed = ruling.changes.get("tool_input")
    if changed is None:
        return Admission(arguments=call.arguments, text=gate.tool_input, taken=ruling.taken)
    try:
        arguments = read_object(str(changed))
    except ValueError as error:
        denial = Denial("tool:pre", f"a subscriber changed the input into what is no object: {error}")
        return Admission(arguments={}, text="{}", taken=ruling.taken, denial=denial)
    return Admission(arguments=arguments, text=written(arguments), taken=ruling.taken)


def judged(it: Invocation, call: Call, arguments: Mapping[str, JSON], ahead: list[ActionRecord]) -> Denial | None:
    """What the harness says of a call; those of its group that are about to run count as if they had."""
    run, harness = it.run, it.parts.harness
    if not harness.rules:
        return None
    action = harness.roles.action(call.id, call.tool, arguments, run.turn)
    verdict = harness.check(action, [*run.past, *ahead], run.progress)
    if isinstance(verdict, Denial):
        return verdict
    if verdict.warnings:
        it.fire(HarnessWarned(turn=run.turn, call_id=call.id, warnings=clean(verdict.warnings)))
    ahead.append(ActionRecord(action, is_success=True))
    return None


def refuse(it: Invocation, call: Call, denial: Denial, taken: tuple[DecisionTaken, ...]) -> None:
    """A refused call is no action; the model reads why, and what to do instead."""
    it.fire(
        ActionDenied(
            turn=it.run.turn,
            call_id=call.id,
            tool=call.tool,
            input=Blob(written(call.arguments)),
            rule=denial.rule,
            reason=clean(denial.reason),
            suggestion=clean(denial.suggestion),
            decisions=taken,
        )
    )


def intend(it: Invocation, call: Call, tool: Tool, admission: Admission) -> None:
    """Fire the intent to run a tool for the model."""
    it.fire(
        ActionStarted(
            turn=it.run.turn,
            call_id=call.id,
            tool=call.tool,
            input=Blob(admission.text),
            is_idempotent=bool(getattr(tool, "is_idempotent", False)),
            decisions=admission.taken,
        )
    )
