"""Step 3: one phase, executed by a callable or by a generator that reads the phase file; and what came of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from inspect import isawaitable

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.callables import is_async
from orchestrator.documents import read_text
from orchestrator.errors import DocumentError
from orchestrator.excerpt import excerpt
from orchestrator.supervision import DeadlineError
from orchestrator.threads import call_in_thread
from orchestrator.wording import describe
from orchestrator.workflow.components.bundle import Components, components_for
from orchestrator.workflow.components.port import BudgetReachedError
from orchestrator.workflow.conversing import converse
from orchestrator.workflow.domain import Phase
from orchestrator.workflow.invocation import Invocation, PhaseHost
from orchestrator.workflow.losing import settle_lost
from orchestrator.workflow.phases import PhaseOutcome, PhaseOutcomeError, outcome_of
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.updating import outcome_faults
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionCancelled
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import PhaseAbandoned, PhaseFailed, PhaseFinished, PhaseRequested, PhaseStarted

__all__ = ["abandon", "execute", "lost_charge", "out_of_time"]


FAILED = "the phase failed"


class PhaseError(Exception):
    """The phase failed; the message is the state's `error`."""


async def execute(it: Invocation) -> None:
    """Ask the gate, commit the intent, execute the phase, and fire what came of it."""
    run = it.run
    phase = it.parts.domain.phase(run.phase)
    ruling = await it.asked(PhaseRequested(phase=phase.id, state=run.state_text))
    if ruling.deny is not None:
        return await denied(it, ruling.deny)
    begun = run.clock.monotonic()
    own = None if phase.seconds is None else begun + round(phase.seconds * 1_000_000)
    host = it.host = PhaseHost(it=it, phase=phase.id, ends_us=own)
    try:
        instructions = instructions_of(it, phase)
        start(it, phase, instructions, ruling)
        await it.commit()
        outcome = await it.supervisor.effect(perform(host, phase, instructions), host.remaining_seconds())
        await settle_lost(it, host, "the phase ended without waiting for it")
        fired = finished(it, phase, outcome, begun)
    except DeadlineError:
        return await out_of_time(it)
    except BudgetReachedError as error:
        await settle_lost(it, host, "the budget's limit was reached beside it")
        abandon(it, str(error))
        return it.fire(BudgetExhausted(limit=error.limit, detail=error.detail))
    except JournalError:
        raise  # what cannot be recorded is not gone on with
    except GeneratorUnavailableError as error:
        await settle_lost(it, host, "the generator is unavailable")
        abandon(it, f"the generator is unavailable: {error}")
        raise  # nothing is wrong with the phase: it is executed again once that is mended
    except (PhaseOutcomeError, PhaseError) as error:
        await settle_lost(it, host, FAILED)
        fired = failed(it, phase, str(error), begun)
    except Exception as error:  # noqa: BLE001 -- a phase is untrusted: whatever it raises is its error
        await settle_lost(it, host, FAILED)
        fired = failed(it, phase, describe(error), begun)
    finally:
        host.is_closed = host.journal.is_closed = (
            True  # of this execution: a driver that was dropped may wake in the middle of another
        )
    return it.fire(fired)


def start(it: Invocation, phase: Phase, instructions: str | None, ruling: Ruling) -> None:
    """Fire the intent to execute a phase."""
    it.fire(
        PhaseStarted(
            phase=phase.id,
            number=it.run.executions.get(phase.id, 0) + 1,
            executor="callable" if instructions is None else generator_of(it, phase),
            instructions=None if instructions is None else Blob(instructions),
            decisions=ruling.taken,
        )
    )


async def perform(host: PhaseHost, phase: Phase, instructions: str | None) -> PhaseOutcome:
    """What the phase returns, checked as far as its form goes."""
    it = host.it
    components = components_for(it.parts.components, host, dict(it.parts.operations))
    await components.subagents.settle_lost()
    if it.parts.learnings is not None:
        await components.learnings.take_in(it.parts.learnings)
    if instructions is not None:
        return await converse(host, generator_of(it, phase), instructions, components)
    return outcome_of(await called(it, phase, it.run.current, components))


async def called(it: Invocation, phase: Phase, state: Mapping[str, object], components: Components) -> object:
    """What a phase's callable returns; a plain one runs in a thread of its own."""
    call = it.parts.calls[phase.id]
    if is_async(call):
        return await call(state, components)  # type: ignore[misc]  # an awaitable
    returned = await call_in_thread(call, state, components)
    return await returned if isawaitable(returned) else returned


def instructions_of(it: Invocation, phase: Phase) -> str | None:
    """The phase file's text, as it is now; None for a callable. PhaseError when it cannot be read."""
    if phase.id in it.parts.calls:
        return None
    path = it.parts.domain.path_of(phase)
    try:
        if path is not None:
            return read_text(path)
    except DocumentError as error:
        raise PhaseError(str(error)) from error
    raise PhaseError(f"phase {phase.id} has neither a file nor a callable: give it one")


def generator_of(it: Invocation, phase: Phase) -> str:
    """Name of the generator that executes a phase file; PhaseError where there is none."""
    name = phase.generator or it.parts.generator
    if name not in it.parts.generators:
        known = ", ".join(it.parts.generators) or "none"
        raise PhaseError(f"no generator {name!r} executes phase {phase.id}: the workflow has {known}")
    return name


def finished(it: Invocation, phase: Phase, outcome: PhaseOutcome, begun: int) -> PhaseFinished | PhaseFailed:
    """The event of an outcome: a success, or the phase's own error; PhaseOutcomeError for one that cannot be used."""
    run = it.run
    faults = tuple(outcome_faults(it.parts.domain, phase.id, run.current, outcome))
    if faults:
        raise PhaseOutcomeError(faults)
    updates = Blob(json.dumps(dict(outcome.state_updates), ensure_ascii=False))
    error = outcome.state_updates.get("error")
    if error is not None:
        fired = failed(it, phase, str(error), begun)
        return attrs.evolve(fired, updates=updates, output=Blob(outcome.output))
    return PhaseFinished(
        phase=phase.id,
        next_phase=outcome.next_phase,
        updates=updates,
        output=Blob(outcome.output),
        duration_us=run.clock.monotonic() - begun,
        charge=run.spent(),
    )


def failed(it: Invocation, phase: Phase, error: str, begun: int) -> PhaseFailed:
    """The event of a failure: the workflow stays on the phase."""
    run = it.run
    if run.open_call is not None:
        abandon(it, error)
    return PhaseFailed(
        phase=phase.id,
        error=excerpt(error),
        retry_count=run.failures + 1,
        duration_us=run.clock.monotonic() - begun,
        charge=run.spent(),
    )


def abandon(it: Invocation, reason: str) -> None:
    """The execution under way has no outcome; a call that is out is charged in full."""
    run = it.run
    if run.started is not None and run.is_in_flight:
        phase, number = run.started.phase, run.started.number
        it.fire(PhaseAbandoned(phase=phase, number=number, reason=reason, charge=lost_charge(run)))


def lost_charge(run: WorkflowRun) -> Charge:
    """What a call of a phase's generator is charged whose outcome nobody knows: all that was reserved for it."""
    return Charge() if run.open_call is None else run.ledger.worst_case(run.open_call.key)


async def out_of_time(it: Invocation) -> None:
    """The phase's own time is over, which is its error; or the budget's, which pauses the workflow."""
    run, host, it.host = it.run, it.host, None
    await settle_lost(it, host, "the time was up")
    phase = it.parts.domain.phase(run.phase)
    left = it.remaining_seconds()
    if phase.seconds is not None and (left is None or left > 0):
        begun = run.clock.monotonic() - round(phase.seconds * 1_000_000)
        return it.fire(failed(it, phase, f"the phase did not end within {phase.seconds:g} s", begun))
    abandon(it, "the time of the budget was up")
    return it.fire(BudgetExhausted(limit="seconds", detail=f"the time was up in phase {phase.id}"))


async def denied(it: Invocation, deny: Deny) -> None:
    """The budget's denial pauses the workflow; any other aborts it."""
    await settle_lost(it, None, f"the phase was not executed again: {deny.reason}")
    if deny.limit:
        return it.fire(BudgetExhausted(limit=deny.limit, detail=deny.reason))
    return it.fire(ExecutionCancelled(reason=deny.reason, is_denial=True))
