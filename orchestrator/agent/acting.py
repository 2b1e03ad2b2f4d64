"""The tool calls of one turn: admitted one by one, run side by side, told in the order they were asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from orchestrator.agent.admission import Admission, admitted
from orchestrator.agent.answers import Call
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.outcomes import ended, finished, flown, tool_error
from orchestrator.agent.plainjson import clean, written
from orchestrator.agent.ports import Tool
from orchestrator.agent.run import CALL_LIMIT
from orchestrator.agent.transcript import tell_answer, tell_results
from orchestrator.agent.verification import verify_now, wants_verification
from orchestrator.agent.waiting import next_landed
from orchestrator.harness.actions import ActionRecord, ToolRole
from orchestrator.harness.decisions import Denial
from orchestrator.jsondata import JSON
from orchestrator_events.agent import ActionDenied, ActionsSettled, ActionStarted, HarnessWarned
from orchestrator_events.blob import Blob
from orchestrator_events.decision import DecisionTaken

__all__ = ["act"]

UNKNOWN = "Outcome unknown: the run was cut off while the tool was running, and it is not run again on its own."


async def act(it: Invocation) -> None:
    """Run the calls of the turn that have no result yet, and add every result to the conversation.

    What a call wrote is verified before the next one runs (contract 3, strategy 1): several writes in one answer
    are as good as one in each. After the last call it is the turn's end that verifies.
    """
    run = it.run
    assert run.answer is not None
    await tell_answer(it)
    for group in grouped(it, [call for call in run.answer.calls if call.id not in run.results]):
        await it.refuse_stop()
        if wants_verification(it) and it.parts.harness.roles.role_of(group[0].tool) is not ToolRole.VERIFY:
            await verify_now(it)
            await it.commit()
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
