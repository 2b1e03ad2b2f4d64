"""The budget guard: reserves the worst case before every paid call, refuses when a limit is reached."""

from __future__ import annotations

from orchestrator_events.bus import Question
from orchestrator_events.decision import Decision, Deny, Proceed
from orchestrator_events.ledger import Refusal
from orchestrator_events.run import GenerationRequested, RefinementRequested

__all__ = ["guard_budget"]


def guard_budget(question: Question) -> Decision:
    """Answer for the ledger: a reservation, a denial that names the limit, or a plain yes (contract 1).

    It is asked last, about the request as the other subscribers modified it.
    """
    gate = question.gate
    if isinstance(gate, GenerationRequested):
        held = question.ledger.reserve(gate.key, gate.attempt, gate.prompt, gate.max_tokens)
        return denial(held) if isinstance(held, Refusal) else Proceed(held)
    if isinstance(gate, RefinementRequested):
        refusal = question.ledger.refusal(gate.attempt, question.ledger.elapsed_us())
        return Proceed() if refusal is None else denial(refusal)
    return Proceed()


def denial(refusal: Refusal) -> Deny:
    """The ledger's refusal as a decision."""
    return Deny(refusal.detail, refusal.limit)
