"""The budget guard: reserves the worst case before every paid call, refuses when a limit is reached."""

from __future__ import annotations

from orchestrator_events.budget import Reservation
from orchestrator_events.decision import Deny
from orchestrator_events.event import Gate
from orchestrator_events.ledger import Ledger, Refusal, tokens_in
from orchestrator_events.run import GenerationRequested, RefinementRequested

__all__ = ["guard_budget"]


def guard_budget(gate: Gate, ledger: Ledger) -> Reservation | Deny | None:
    """Answer for the ledger: a reservation, a denial that names the limit, or nothing (contract 1).

    It is asked last, about the request as the other subscribers modified it.
    """
    if isinstance(gate, GenerationRequested):
        held = ledger.reserve(gate.key, gate.attempt, gate.prompt, gate.max_tokens)
        return Deny(held.detail, held.limit) if isinstance(held, Refusal) else held
    if isinstance(gate, RefinementRequested):
        refusal = ledger.refusal(gate.attempt, ledger.elapsed_us())
        return None if refusal is None else Deny(refusal.detail, refusal.limit)
    if gate.name == "phase:requested":  # an execution of a phase counts as an attempt
        refusal = ledger.refusal(ledger.attempts + 1, ledger.elapsed_us())
        return None if refusal is None else Deny(refusal.detail, refusal.limit)
    if gate.name == "provider:request":
        return for_a_turn(gate, ledger)
    return None


def for_a_turn(gate: Gate, ledger: Ledger) -> Reservation | Deny:
    """The same for an agent's call of its model; a turn counts as an attempt."""
    from orchestrator_events.agent import ProviderRequest

    assert isinstance(gate, ProviderRequest)
    reads = tokens_in(sum(map(len, gate.messages)))
    held = ledger.reserve_tokens(gate.key, gate.turn, reads, gate.max_tokens)
    return Deny(held.detail, held.limit) if isinstance(held, Refusal) else held
