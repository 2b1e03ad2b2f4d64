"""One call of a generator for a subagent: reserved, committed, made within its time, checked, settled."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Final, cast

import attrs

from orchestrator.adapter_errors import GenerationError, GeneratorUnavailableError, TransientGenerationError
from orchestrator.agent.plainjson import clean
from orchestrator.answers import checked_answer
from orchestrator.candidate import TEXT
from orchestrator.generating import counted, written
from orchestrator.ports import Generator, Request
from orchestrator.supervision import DeadlineError
from orchestrator.wording import describe
from orchestrator.workflow.components.answering import OutputError, output_of
from orchestrator.workflow.components.childrecords import open_drives
from orchestrator.workflow.components.context import json_of
from orchestrator.workflow.components.deadlines import within
from orchestrator.workflow.components.port import BudgetReachedError, CallDeniedError, ComponentHost, call_key
from orchestrator.workflow.components.prompting import prompt_of
from orchestrator.workflow.components.roles import STATUSES, Role
from orchestrator.workflow.components.subagentresult import Status, SubagentResult
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation, Usage
from orchestrator_events.decision import Ruling
from orchestrator_events.event import Event
from orchestrator_events.run import BudgetOverrun, GenerationRequested
from orchestrator_events.workflow import SubagentFinished, SubagentSpawned

__all__ = ["MALFORMED", "call_once", "lost_calls", "result_of"]

MALFORMED: Final = "the output cannot be used: "
"""How the error of an answer begins that came but is no output."""
LOST: Final = "outcome unknown: "
"""How the error of a call begins that was cut off."""
LONGEST_REASON: Final = 4_000


@attrs.frozen
class Ending:
    """How a call ended."""

    status: Status
    error: str = ""
    result: str = ""
    """The output as JSON text; where there is none, the answer as it came."""
    answer: str = ""
    """All that the generator wrote, to be counted."""
    usage: Usage | None = None
    charge: Charge | None = None
    """Where it does not follow from answer and usage."""
    in_passing: TransientGenerationError | None = None
    """Set where the same call may succeed when it is made again."""


async def call_once(
    host: ComponentHost,
    role: Role,
    generator: Generator,
    *,
    subagent_id: str,
    number: int,
    context: str,
    answer_bytes: int,
) -> tuple[SubagentResult, TransientGenerationError | None]:
    """Reserve, commit the intent, call, and commit what came of it; and the error, where trying again may help.

    BudgetReachedError when nothing can be reserved, CallDeniedError when somebody denies it; GeneratorUnavailableError
    once that is recorded.
    """
    spawned = await intend(host, role, subagent_id, context)
    begun = host.clock.monotonic()
    try:
        ending = await ending_of(host, role, generator, request_for(host, role, spawned, number), answer_bytes)
    except GeneratorUnavailableError as error:
        await finish(host, spawned, Ending("error", describe(error), charge=Charge()), begun)
        raise
    return result_of(role.name, await finish(host, spawned, ending, begun)), ending.in_passing


async def ending_of(
    host: ComponentHost, role: Role, generator: Generator, request: Request, answer_bytes: int
) -> Ending:
    """Call, and say how that ended, whatever the generator does; GeneratorUnavailableError passes."""
    try:
        return judged(role, await within(request.seconds, generator.generate(request)), answer_bytes)
    except GeneratorUnavailableError:
        raise
    except DeadlineError:
        lost = host.ledger.worst_case(request.idempotency_key)
        return Ending("timeout", f"no answer within {request.seconds or 0:.1f} s", charge=lost)
    except GenerationError as error:
        text = str(error.answer)
        in_passing = error if isinstance(error, TransientGenerationError) else None
        raw = clean(text)[:answer_bytes]
        unsent = Charge() if in_passing is not None and in_passing.is_unreachable else None
        return Ending("error", describe(error), raw, text, usage_in(error), charge=unsent, in_passing=in_passing)
    except Exception as error:  # noqa: BLE001 -- a generator is untrusted: whatever it raises ends this call alone
        return Ending("error", describe(error))


async def intend(host: ComponentHost, role: Role, subagent_id: str, context: str) -> SubagentSpawned:
    """Ask the gate, hold the worst case and commit the intent; as it is recorded, which is what is sent."""
    ledger, key = host.ledger, call_key(host.run_id, subagent_id)
    prompt = prompt_of(role, context)
    ruling = await host.asked(
        GenerationRequested(
            attempt=ledger.attempts, prompt=prompt, parameters="{}", max_tokens=role.max_tokens, key=key
        )
    )
    if ruling.deny is not None:
        if ruling.deny.limit:
            raise BudgetReachedError(ruling.deny.limit, ruling.deny.reason)
        raise CallDeniedError(ruling.deny.reason)
    event = SubagentSpawned(
        subagent_id=subagent_id,
        role=role.name,
        context=Blob(changed_text(context, ruling)),
        reservation=ruling.reservation or Reservation(key=key),
    )
    try:
        recorded = (await host.record(event))[0]
    except BaseException:
        ledger.release(key)
        raise
    assert isinstance(recorded, SubagentSpawned)
    return recorded


def changed_text(context: str, ruling: Ruling) -> str:
    """What is recorded of a call: its context, or the request that those who answer the gate made of it."""
    gate = ruling.gate
    if not isinstance(gate, GenerationRequested):
        return context
    taken = [attrs.asdict(each) for each in ruling.taken]
    asked = Blob(context).digest
    return json_of({"asked": asked, "prompt": gate.prompt, "parameters": gate.parameters, "decisions": taken})


def request_for(host: ComponentHost, role: Role, spawned: SubagentSpawned, number: int) -> Request:
    """What the generator is asked."""
    held = spawned.reservation
    assert held is not None
    text = spawned.context.data.decode()
    times = [seconds for seconds in (role.seconds, host.remaining_seconds()) if seconds is not None]
    return Request(
        run_id=host.run_id,
        attempt=number,
        prompt=prompt_of(role, text),
        parameters=json.loads(json.loads(text).get("parameters", "{}")),
        language="json",
        max_tokens=held.output_tokens,
        seconds=min(times, default=None),
        idempotency_key=held.key,
        spec_digest="",
    )


def judged(role: Role, answer: object, answer_bytes: int) -> Ending:
    """The ending that an answer is: an output, or what is wrong with it."""
    text, usage = written(answer), usage_in(answer)
    try:
        form, blob = checked_answer(answer, answer_bytes)
        if form != TEXT:
            raise GenerationError("the generator answered with files: an output is one JSON text")  # noqa: TRY301 -- as one that is checked
        output = output_of(role, blob.data.decode())
    except (GenerationError, OutputError) as error:
        reason = error.reason if isinstance(error, GenerationError) else str(error)
        return Ending("error", MALFORMED + reason, clean(text)[:answer_bytes], text, usage)
    status = cast(Status, output["status"])
    told = str(output.get("reason") or output.get("summary") or "") if status != "success" else ""
    return Ending(status, told[:LONGEST_REASON], json_of(output), text, usage)


def usage_in(answer: object) -> Usage | None:
    """What an answer, or an error, says that it used; None for what is no such report."""
    usage = getattr(answer, "usage", None)
    return usage if isinstance(usage, Usage) else None


async def finish(host: ComponentHost, spawned: SubagentSpawned, ending: Ending, begun: int) -> SubagentFinished:
    """Commit how a call ended, charged, and that it passed a limit where it did."""
    held = spawned.reservation
    assert held is not None
    ledger, charge = host.ledger, ending.charge
    if charge is None:
        charge = counted(ledger.charge(held.key, ending.usage, ending.answer), ending.answer)
    over = ledger.overrun(held.key, charge)
    event = SubagentFinished(
        subagent_id=spawned.subagent_id,
        status=ending.status,
        result=Blob(ending.result),
        charge=charge,
        duration_us=host.clock.monotonic() - begun,
        error=ending.error,
    )
    overrun = (BudgetOverrun(attempt=ledger.attempts, limits=over),) if over else ()
    recorded = (await host.record(event, *overrun))[0]
    assert isinstance(recorded, SubagentFinished)
    return recorded


def result_of(role: str, event: SubagentFinished) -> SubagentResult:
    """The result that an event tells, now or when a phase is executed again."""
    text = event.result.data.decode()
    has_output = event.status in STATUSES
    return SubagentResult(
        subagent_id=event.subagent_id,
        role=role,
        status=cast(Status, event.status),
        output=json.loads(text) if has_output else {},
        raw="" if has_output else text,
        error=event.error,
        is_malformed=event.status == "error" and event.error.startswith(MALFORMED),
        charge=event.charge,
        duration_us=event.duration_us,
    )


def lost_calls(history: Sequence[Event], reason: str, flying: Iterable[str] = ()) -> tuple[SubagentFinished, ...]:
    """The ends of calls that began, have none and are not under way: charged with all that was held for them.

    Runs inside the phase are left out: their own records say what they cost.
    """
    finished = {event.subagent_id for event in history if isinstance(event, SubagentFinished)}.union(flying)
    finished.update(drive.subagent_id for drive in open_drives(history))
    return tuple(
        SubagentFinished(
            subagent_id=event.subagent_id,
            status="error",
            result=Blob(""),
            charge=worst(event.reservation),
            duration_us=0,
            error=f"{LOST}{reason}",
        )
        for event in history
        if isinstance(event, SubagentSpawned) and event.subagent_id not in finished
    )


def worst(held: Reservation | None) -> Charge:
    """The whole of a reservation."""
    if held is None:
        return Charge(input_tokens=1, output_tokens=1, estimated=True)
    return Charge(
        input_tokens=max(1, held.input_tokens),
        output_tokens=held.output_tokens or 1,
        money_micro=held.money_micro or 0,
        estimated=True,
    )
