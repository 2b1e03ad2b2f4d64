"""The steps around a generator call: intent, request, and what becomes of the answer."""

from __future__ import annotations

from orchestrator.adapter_errors import GenerationError
from orchestrator.answers import checked_answer
from orchestrator.candidate import Candidate
from orchestrator.parameters import read_parameters
from orchestrator.ports import Generation, Request
from orchestrator.run import Run
from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import Ruling
from orchestrator_events.run import (
    AttemptFailed,
    BudgetOverrun,
    CandidateGenerated,
    GenerationAbandoned,
    GenerationRequested,
    GenerationStarted,
    PromptReady,
)
from orchestrator_states.run import RunState

__all__ = ["InterruptionError", "abandoned", "failed_generation", "in_flight", "intend", "request_for", "taken"]


class InterruptionError(Exception):
    """The run cannot go on now; it stays in its open state and can be resumed."""


def intend(run: Run, ready: PromptReady, gate: GenerationRequested, ruling: Ruling) -> GenerationStarted:
    """Fire the intent to call, as the gate's subscribers changed it."""
    sent = gate if ruling.gate is None else ruling.gate
    assert isinstance(sent, GenerationRequested)
    event = GenerationStarted(
        attempt=ready.attempt,
        parameters=sent.parameters,
        reservation=ruling.reservation or Reservation(key=gate.key),
        prompt=None if sent is gate else changed_prompt(run, gate, sent),
        decisions=ruling.taken,
    )
    run.fire(event)
    return event


def changed_prompt(run: Run, gate: GenerationRequested, sent: GenerationRequested) -> Blob | None:
    """The prompt as subscribers changed it; every section of the spec must still be there (contract 1)."""
    missing = [section.title for section in run.spec.sections if section.text not in sent.prompt]
    if missing:
        run.ledger.release(gate.key)
        raise InterruptionError(f"a subscriber removed from the prompt: {', '.join(missing)}")
    return None if sent.prompt == gate.prompt else Blob(sent.prompt)


def request_for(run: Run, ready: PromptReady, call: GenerationStarted, language: str, begun: int) -> Request:
    """What the generator is asked, at this reading of the monotonic clock."""
    return Request(
        run_id=run.run_id,
        attempt=call.attempt,
        prompt=(call.prompt or ready.prompt).text or "",
        parameters=read_parameters(call.parameters),
        language=language,
        max_tokens=call.reservation.output_tokens,
        seconds=run.remaining_seconds(begun),
        idempotency_key=call.reservation.key,
        spec_digest=run.spec.digest,
    )


def taken(run: Run, key: str, answer: Generation, limit: int, begun: int, isolation: str) -> None:
    """Fire what the generator answered, charged: a candidate, or a failed attempt for what is none."""
    ready = run.ready
    assert ready is not None
    ledger = run.ledger
    try:
        form, blob = checked_answer(answer, limit)
    except GenerationError as error:
        charge = ledger.charge(key, getattr(answer, "usage", None), written(answer))
        return failed_generation(run, key, describe(error), begun, charge, isolation)
    charge = ledger.charge(key, answer.usage, blob.text or "")
    over = ledger.overrun(key, charge)
    run.fire(
        CandidateGenerated(
            attempt=ready.attempt,
            key=key,
            candidate=blob,
            form=form,
            charge=charge,
            duration_us=run.clock.monotonic() - begun,
            isolation=isolation,
        )
    )
    if over:
        run.fire(BudgetOverrun(attempt=ready.attempt, limits=over))
    return None


def written(answer: object) -> str:
    """What the generator wrote, though it is no candidate: it was paid for all the same."""
    candidate = answer.candidate if isinstance(answer, Generation) else None
    if not isinstance(candidate, Candidate):
        return ""
    parts: tuple[object, ...] = (candidate.text, *candidate.files.values())
    return "".join(part for part in parts if isinstance(part, str))


def failed_generation(run: Run, key: str, reason: str, begun: int, charge: Charge, isolation: str) -> None:
    """A call that gave no candidate costs the attempt and is fed back like a failing case."""
    ready = run.ready
    assert ready is not None
    over = run.ledger.overrun(key, charge)
    run.fire(
        AttemptFailed(
            attempt=ready.attempt,
            stage="generation",
            error=reason,
            duration_us=run.clock.monotonic() - begun,
            key=key,
            charge=charge,
            isolation=isolation,
        )
    )
    if over:
        run.fire(BudgetOverrun(attempt=ready.attempt, limits=over))


def in_flight(run: Run) -> bool:
    """Whether a call was started whose outcome is not recorded."""
    return run.state == RunState.GENERATING and run.started is not None


def abandoned(run: Run, reason: str) -> None:
    """Charge a call in flight whose answer will not be used."""
    if in_flight(run) and run.started is not None:
        key = run.started.reservation.key
        charge = run.ledger.worst_case(key)
        run.fire(GenerationAbandoned(attempt=run.started.attempt, key=key, charge=charge, reason=reason))
