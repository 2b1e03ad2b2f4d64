"""The steps around a generator call: intent, request, and what becomes of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from orchestrator.adapter_errors import GenerationError
from orchestrator.answers import checked_answer
from orchestrator.candidate import Candidate
from orchestrator.excerpt import excerpt
from orchestrator.parameters import read_parameters
from orchestrator.ports import Generation, Request
from orchestrator.run import Run
from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import DecisionTaken, Ruling
from orchestrator_events.ledger import estimate_tokens
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    BudgetOverrun,
    CandidateGenerated,
    GenerationAbandoned,
    GenerationRequested,
    GenerationStarted,
    PromptReady,
)
from orchestrator_states.run import RunState

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = [
    "InterruptionError",
    "abandoned",
    "exposing",
    "failed_generation",
    "in_flight",
    "intend",
    "raised",
    "request_for",
    "taken",
]


LONGEST_TOKEN = 16
"""Characters of a token, on the average of any real answer and beyond doubt."""


class InterruptionError(Exception):
    """The run cannot go on now; it stays in its open state and can be resumed."""


def intend(run: Run, ready: PromptReady, gate: GenerationRequested, ruling: Ruling) -> GenerationStarted:
    """Fire the intent to call, as the gate's subscribers changed it."""
    sent = gate if ruling.gate is None else ruling.gate
    assert isinstance(sent, GenerationRequested)
    withheld = () if run.secrets is None else withheld_from(gate, run.secrets)
    event = GenerationStarted(
        attempt=ready.attempt,
        parameters=sent.parameters,
        reservation=ruling.reservation or Reservation(key=gate.key),
        prompt=changed_prompt(run, gate, sent) if sent is not gate else Blob(gate.prompt) if withheld else None,
        decisions=(*ruling.taken, *withheld),
    )
    run.fire(event)
    assert run.started is not None
    return run.started  # as it is recorded: what is sent is that and nothing else


def withheld_from(gate: GenerationRequested, secrets: Secrets) -> tuple[DecisionTaken, ...]:
    """What is told where the recorded request holds a secret, which was not known when it was rendered."""
    fields = [name for name in ("parameters", "prompt") if secrets.found(getattr(gate, name))]
    return (DecisionTaken("secrets", "modify", ", ".join(fields)),) if fields else ()


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


def taken(run: Run, key: str, answer: Generation, limit: int, begun: int, *, refuses_secrets: bool = False) -> None:
    """Fire what the generator answered, charged: a candidate, or a failed attempt for what is none."""
    ready = run.ready
    assert ready is not None
    ledger = run.ledger
    if getattr(answer, "answer", ""):
        received(run, key, answer.answer, answer.extraction)
    try:
        form, blob = checked_answer(answer, limit)
    except GenerationError as error:
        text = written(answer)
        charge = counted(ledger.charge(key, getattr(answer, "usage", None), text), text)
        return failed_generation(run, key, describe(error), begun, charge)
    text = answer.answer or blob.text or ""
    charge = counted(ledger.charge(key, answer.usage, text), text)
    over = ledger.overrun(key, charge)
    run.fire(
        CandidateGenerated(
            attempt=ready.attempt,
            key=key,
            candidate=blob,
            form=form,
            charge=charge,
            duration_us=run.clock.monotonic() - begun,
            isolation=run.generator_isolation,
        )
    )
    if run.secrets is not None:
        revealed(run, is_refused=refuses_secrets)
    if over:
        run.fire(BudgetOverrun(attempt=ready.attempt, limits=over))
    return None


def revealed(run: Run, *, is_refused: bool) -> None:
    """Fire which secrets stand in the candidate, which is kept as it is."""
    from orchestrator.exposure import secrets_in

    if run.secrets is not None and run.generated is not None:
        for event in secrets_in(run.generated, run.secrets, is_refused=is_refused):
            run.fire(event)


def exposing(run: Run, generated: CandidateGenerated) -> str:
    """Why a candidate with a secret in it is refused; empty for one without."""
    from orchestrator.exposure import secrets_in

    found = () if run.secrets is None else tuple(secrets_in(generated, run.secrets, is_refused=True))
    names = ", ".join(dict.fromkeys(event.secret for event in found))
    return f"the candidate holds what must stay secret ({names}): leave it out" if names else ""


def raised(run: Run, key: str, error: Exception, begun: int) -> None:
    """A call that raised gave no candidate; what it says it used, and the answer it could not use, are kept."""
    usage, answer, remedy = None, "", ""
    if isinstance(error, GenerationError):
        usage, answer, remedy = error.usage, error.answer, error.remedy
    if answer:
        received(run, key, answer, "")
    charge = counted(run.ledger.charge(key, usage, answer), answer)
    failed_generation(run, key, describe(error), begun, charge, remedy=excerpt(remedy))


def counted(charge: Charge, text: str) -> Charge:
    """The charge, with our own count of the output where so much text cannot be of the tokens that are charged.

    Whoever reports next to nothing, or writes on past `max_tokens` and reports nothing, pays for what came.
    """
    if len(text) <= LONGEST_TOKEN * charge.output_tokens:
        return charge
    return attrs.evolve(charge, output_tokens=estimate_tokens(text), estimated=True)


def received(run: Run, key: str, answer: str, extraction: str) -> None:
    """The raw answer is kept beside the candidate that was taken from it."""
    assert run.ready is not None
    text = answer.encode(errors="replace").decode()
    run.fire(AnswerReceived(attempt=run.ready.attempt, key=key, answer=Blob(text), extraction=extraction))


def written(answer: object) -> str:
    """What the generator wrote, though it is no candidate: it was paid for all the same."""
    candidate = answer.candidate if isinstance(answer, Generation) else None
    if isinstance(answer, Generation) and answer.answer:
        return answer.answer
    if not isinstance(candidate, Candidate):
        return ""
    parts: tuple[object, ...] = (candidate.text, *candidate.files.values())
    return "".join(part for part in parts if isinstance(part, str))


def failed_generation(run: Run, key: str, reason: str, begun: int, charge: Charge, remedy: str = "") -> None:
    """A call that gave no candidate costs the attempt and is fed back like a failing case, without the remedy."""
    ready = run.ready
    assert ready is not None
    over = run.ledger.overrun(key, charge)
    run.fire(
        AttemptFailed(
            attempt=ready.attempt,
            stage="generation",
            error=reason,
            remedy=remedy,
            duration_us=run.clock.monotonic() - begun,
            key=key,
            charge=charge,
            isolation=run.generator_isolation,
        )
    )
    if over:
        run.fire(BudgetOverrun(attempt=ready.attempt, limits=over))


def in_flight(run: Run) -> bool:
    """Whether a call was started whose outcome is not recorded."""
    return run.state == RunState.GENERATING and run.started is not None


def abandoned(run: Run, reason: str, charge: Charge | None = None) -> None:
    """Charge a call in flight whose answer will not be used: the worst case, where nothing is known."""
    if in_flight(run) and run.started is not None:
        key = run.started.reservation.key
        charge = charge or run.ledger.worst_case(key)
        run.fire(GenerationAbandoned(attempt=run.started.attempt, key=key, charge=charge, reason=reason))
