"""The call of the model: made again where that may help, charged whatever comes of it, and put to a gate."""

from __future__ import annotations

import asyncio
from functools import partial
from itertools import count

import attrs

from orchestrator.agent.answers import WITHHELD, Answer, answer_of, changed_answer
from orchestrator.agent.injecting import take_injections
from orchestrator.agent.invocation import Invocation, StoppedError
from orchestrator.agent.plainjson import clean, read_object, written
from orchestrator.agent.ports import ProviderCallError, Reply, TurnRequest
from orchestrator.agent.streaming import LiveAnswer
from orchestrator.agent.transcript import tell_answer
from orchestrator.agent.waiting import landed, launched
from orchestrator.wording import describe
from orchestrator_events.agent import (
    ProviderError,
    ProviderResponse,
    ProviderRetry,
    TurnAbandoned,
    TurnAnswered,
    TurnStarted,
)
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Usage
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.run import BudgetExhausted, BudgetOverrun

__all__ = ["abandon_call", "generate"]


class OutOfTimeError(Exception):
    """The run's time ended during the call."""


async def generate(it: Invocation) -> None:
    """Make the call that was intended, put its answer to the gate, and take it."""
    run = it.run
    live, begun = LiveAnswer.of(it), run.clock.monotonic()
    request = request_of(it, live)
    try:
        reply = await replied(it, request, live)
        answer = usable(reply, request.turn)
    except OutOfTimeError:
        live.end_try(is_whole=False)
        abandon_call(it, "the run's time was up before the answer came")
        return it.fire(BudgetExhausted(limit="seconds", detail="the time was up during a call of the model"))
    except ProviderCallError as error:
        live.end_try(is_whole=False)
        failed(it, error)
        raise StoppedError(error.__cause__ or error) from error
    duration_us = run.clock.monotonic() - begun
    live.end_try(is_whole=True)
    return await taken(it, reply, answer, live, duration_us)


def request_of(it: Invocation, live: LiveAnswer) -> TurnRequest:
    """What the provider is asked: what is recorded, and nothing else."""
    call, tools = it.run.started, it.parts.tools
    assert call is not None
    return TurnRequest(
        run_id=it.run.run_id,
        turn=call.turn,
        messages=it.writing.sendable(call.messages),
        tools=tuple(tools[name] for name in call.tools),
        model=call.model,
        parameters=read_object(call.parameters),
        max_tokens=call.reservation.output_tokens,
        seconds=it.seconds_for(it.parts.limits.provider_seconds),
        idempotency_key=call.reservation.key,
        delta=live.begin_try(),
    )


async def replied(it: Invocation, request: TurnRequest, live: LiveAnswer) -> Reply:
    """The provider's reply to the call, made as often as the retry policy and the budget allow.

    Raises ProviderCallError when they allow no more; each retry is committed before it is waited for.
    """
    run, retries = it.run, it.parts.retries
    for retry in count(1):
        try:
            return await tried(it, request)
        except ProviderCallError as error:
            left = it.remaining_seconds()
            charge = Charge() if error.usage is None else run.ledger.charge(request.idempotency_key, error.usage, "")
            wait = retries.wait(retry - 1, error.retry_after, left) if error.is_retryable else None
            if wait is None or run.ledger.overrun(request.idempotency_key, charge):
                raise
            reason = describe(error)
        live.end_try(is_whole=False)
        it.fire(retry_of(request, it.provider_name, retry, reason, wait, charge))
        await it.commit()
        await waited(it, wait)
        seconds = it.seconds_for(it.parts.limits.provider_seconds)
        request = attrs.evolve(request, seconds=seconds, delta=live.begin_try())
    raise AssertionError("unreachable")


def retry_of(
    request: TurnRequest, provider: str, retry: int, reason: str, wait: float, charge: Charge
) -> ProviderRetry:
    """The record of another try."""
    return ProviderRetry(
        turn=request.turn,
        provider=provider,
        key=request.idempotency_key,
        retry=retry,
        reason=reason,
        wait_us=round(wait * 1_000_000),
        charge=charge,
    )


async def waited(it: Invocation, seconds: float) -> None:
    """Wait before the next try, unless the host stops the run meanwhile."""
    await landed(it, launched(it, "wait", "wait", partial(asyncio.sleep, seconds), seconds + 60))
    await it.refuse_stop()


async def tried(it: Invocation, request: TurnRequest) -> Reply:
    """One try. Whatever goes wrong is a ProviderCallError, with what was raised as its cause."""

    async def called() -> object:
        return await it.provider.complete(request)

    seconds = request.seconds or 0.0
    flight = await landed(it, launched(it, "provider", it.provider_name, called, seconds))
    if flight.is_late:
        if (left := it.remaining_seconds()) is not None and left <= 0:
            raise OutOfTimeError
        raise ProviderCallError(f"no answer within {seconds:g} s", is_retryable=True)
    error = flight.error
    if isinstance(error, ProviderCallError):
        raise error
    if error is not None:
        raise ProviderCallError(describe(error)) from error
    reply = flight.task.result()
    if not isinstance(reply, Reply):
        raise ProviderCallError(f"provider {it.provider_name!r} answered a {type(reply).__name__}, not a Reply")
    return reply


def usable(reply: Reply, turn: int) -> Answer:
    """The reply as an answer; ProviderCallError where its parts are not what the port says."""
    try:
        return answer_of(reply, turn)
    except Exception as error:
        raise ProviderCallError(f"the provider's answer cannot be used: {describe(error)}") from error


def failed(it: Invocation, error: ProviderCallError) -> None:
    """The call failed for good: it is told, charged, and the turn may begin anew."""
    run = it.run
    assert run.started is not None
    cause = error.__cause__ or error
    it.fire(
        ProviderError(
            turn=run.started.turn,
            provider=it.provider_name,
            error_type=type(cause).__name__,
            message=describe(cause).partition(": ")[2],
            is_retryable=bool(error.is_retryable),
            status_code=error.status_code if type(error.status_code) is int else None,
        )
    )
    key = run.started.reservation.key
    abandon_call(it, describe(cause), run.ledger.charge(key, usage_of(error.usage), ""))


def abandon_call(it: Invocation, reason: str, charge: Charge | None = None) -> None:
    """Charge a call in flight whose answer will not be used: the worst case, where nothing is known."""
    run = it.run
    if run.is_in_flight and run.started is not None:
        key = run.started.reservation.key
        charge = charge or run.ledger.worst_case(key)
        it.fire(TurnAbandoned(turn=run.started.turn, key=key, charge=charge, reason=reason))


async def taken(it: Invocation, reply: Reply, answer: Answer, live: LiveAnswer, duration_us: int) -> None:
    """Put an answer to the gate, record it charged, and add it to the conversation."""
    run = it.run
    assert run.started is not None
    call, key = run.started, run.started.reservation.key
    usage, given, content = usage_of(reply.usage), answer, answer.content
    charge = run.ledger.charge(key, usage, content)
    gate = ProviderResponse(turn=call.turn, provider=call.provider, reply=shown(content, usage))
    ruling = await it.asked(gate)
    answer, deny = ruled(answer, ruling, call)
    if answer is not given:
        content = answer.content
    over = run.ledger.overrun(key, charge)
    it.fire(
        TurnAnswered(
            turn=call.turn,
            key=key,
            reply=Blob(WITHHELD if deny else content),
            wants_tools=bool(answer.calls) and deny is None,
            charge=charge,
            duration_us=duration_us,
            decisions=ruling.taken,
        )
    )
    if over:
        it.fire(BudgetOverrun(attempt=call.turn, limits=over))
    if deny is not None:
        return it.fire(ExecutionCancelled(reason=clean(deny.reason), is_denial=True))
    live.tell_whole(answer)
    take_injections(it, gate, ruling)
    return await tell_answer(it)


def shown(content: str, usage: Usage | None) -> str:
    """The answer as a gate's subscribers see it: its text, which is written once, and the usage in it."""
    told = "null" if usage is None else written(attrs.asdict(usage))
    return f'{content.removesuffix("}")},"usage":{told}}}'


def ruled(answer: Answer, ruling: Ruling, call: TurnStarted) -> tuple[Answer, Deny | None]:
    """The answer as the subscribers changed it, or the denial that withholds it; a closing one has no calls."""
    changed, deny = ruling.changes.get("reply"), ruling.deny
    if deny is None and changed is not None:
        try:
            answer = changed_answer(str(changed), call.turn)
        except ValueError as error:
            deny = Deny(f"a subscriber changed the answer into what is none: {error}")
    return answer.without_calls() if call.is_closing else answer, deny


def usage_of(usage: object) -> Usage | None:
    """What a provider reports, if it is a report."""
    return usage if isinstance(usage, Usage) else None
