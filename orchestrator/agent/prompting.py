"""Before a turn: the prompt is admitted, the request is made, and the intent to call the model is committed."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.agent.injecting import take_injections, with_injections
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.messages import BLOB, TEXT, WrittenMessage
from orchestrator.agent.plainjson import clean, read_object
from orchestrator.agent.transcript import add, messages_for, tell_injections
from orchestrator.jsondata import JSON
from orchestrator.supervision import DeadlineError
from orchestrator_events.agent import PromptSubmit, ProviderRequest, TurnStarted
from orchestrator_events.budget import Reservation
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.run import BudgetExhausted

__all__ = ["begin_turn", "denied", "submit"]

CLOSING_REMINDER = (
    "The limit of {limit} is reached: this is your last turn, and no tool is left. "
    "Answer now with what you have, and say what is unfinished."
)


async def submit(it: Invocation) -> None:
    """Ask whether the prompt may be worked on, and add it to the conversation as it was admitted."""
    gate = PromptSubmit(prompt=clean(it.run.prompt))
    ruling = await it.asked(gate)
    if ruling.deny is not None:
        return denied(it, ruling.deny)
    take_injections(it, gate, ruling)
    await tell_injections(it)
    admitted = str(ruling.changes.get("prompt", gate.prompt))
    return await add(it, {"role": "user", "content": admitted}, "prompt")


async def begin_turn(it: Invocation, *, is_closing: bool = False) -> None:
    """Make the request, ask the gate, reserve, and commit the intent; a denial ends or concludes the run."""
    run = it.run
    try:
        messages = await request_messages(it, is_closing=is_closing)
        gate = gate_for(it, messages)
        ruling = await it.asked(gate)
        if ruling.deny is not None:
            return denied(it, ruling.deny)
        try:
            await it.refuse_stop()
            messages = await settled_messages(it, gate, ruling, messages, is_closing=is_closing)
        except ValueError as error:
            run.ledger.release(gate.key)
            return denied(it, Deny(f"a subscriber changed the messages into what is none: {error}"))
        except BaseException:
            run.ledger.release(gate.key)
            raise
    except DeadlineError:
        detail = "the time was up while the messages of a request were put together"
        return it.fire(BudgetExhausted(limit="seconds", detail=detail))
    intend(it, gate, ruling, messages, is_closing=is_closing)
    return await it.commit()


def denied(it: Invocation, deny: Deny) -> None:
    """The budget's denial concludes the run; any other ends it."""
    if deny.limit:
        it.fire(BudgetExhausted(limit=deny.limit, detail=deny.reason))
    else:
        it.fire(ExecutionCancelled(reason=clean(deny.reason), is_denial=True))


def gate_for(it: Invocation, messages: list[WrittenMessage]) -> ProviderRequest:
    """What the subscribers at provider:request are asked."""
    turn = it.run.turn + 1
    return ProviderRequest(
        turn=turn,
        provider=it.provider_name,
        model=it.model,
        messages=tuple(map(TEXT, messages)),
        max_tokens=parameters_of(it).get("max_tokens"),
        key=f"{it.run.run_id}:{turn}",
    )


def parameters_of(it: Invocation) -> Mapping[str, JSON]:
    """The base parameters of a request."""
    return read_object(it.parts.parameters)


async def settled_messages(
    it: Invocation, gate: ProviderRequest, ruling: Ruling, messages: list[WrittenMessage], *, is_closing: bool
) -> list[WrittenMessage]:
    """The messages as they are sent; ValueError where a subscriber's are none.

    Durable injections join the transcript, which is then read again; modified messages are sent in this request
    only, with what was injected at their end.
    """
    if not ruling.injections and "messages" not in ruling.changes:
        return messages
    changed = ruling.changes.get("messages")
    mine = [read_object(str(text)) for text in changed] if isinstance(changed, tuple | list) else None
    before = len(it.run.waiting)
    take_injections(it, gate, ruling)
    durable = [{"role": each.role, "content": each.text.text or ""} for each in it.run.deferred]
    await tell_injections(it)
    if mine is not None:
        return with_injections(it, map(it.writing.written, [*mine, *durable]), it.run.waiting[before:])
    return await request_messages(it, is_closing=is_closing)


async def request_messages(it: Invocation, *, is_closing: bool) -> list[WrittenMessage]:
    """The transcript, with what this request alone carries."""
    run, harness, written = it.run, it.parts.harness, it.writing.written
    made = with_injections(it, await messages_for(it), run.waiting)
    if it.parts.system:
        system = written({"role": "system", "content": it.parts.system})
        if not made or made[0].message != system.message:
            made.insert(0, system)
    notes = harness.prompt_notes(run.past, run.progress)
    if notes:
        made.append(written({"role": "system", "content": "\n".join(notes)}))
    if is_closing:
        limit = run.exhausted.limit.replace("_", " ") if run.exhausted else "turns"
        made.append(written({"role": "user", "content": CLOSING_REMINDER.format(limit=limit)}))
    return made


def intend(
    it: Invocation, gate: ProviderRequest, ruling: Ruling, messages: list[WrittenMessage], *, is_closing: bool
) -> None:
    """Fire the intent to call, as the gate's subscribers changed it."""
    sent = gate if ruling.gate is None else ruling.gate
    assert isinstance(sent, ProviderRequest)
    it.fire(
        TurnStarted(
            turn=gate.turn,
            provider=gate.provider,
            model=clean(sent.model),
            messages=tuple(map(BLOB, messages)),
            tools=() if is_closing else tuple(it.parts.tools),
            parameters=it.parts.parameters,
            reservation=ruling.reservation or Reservation(key=gate.key),
            is_closing=is_closing,
            decisions=ruling.taken,
        )
    )
