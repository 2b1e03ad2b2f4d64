"""What is put to a gate's subscribers, and the budget guard's last word on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from orchestrator_events.budget import Reservation
from orchestrator_events.decision import PLAIN_YES, Decision, Deny, Ruling
from orchestrator_events.event import Gate
from orchestrator_events.ledger import Ledger

__all__ = ["Guard", "Question", "Responder", "guarded", "last_word"]


@attrs.define
class Question:
    """What a gate's subscribers are asked: the gate, and where the run stands."""

    run_id: str
    lifecycle: str
    state: str
    gate: Gate
    ledger: Ledger
    """Account of the root run; read it, the budget guard alone reserves on it."""


Answer = Decision | tuple[Decision, ...]
Responder = Callable[[Question], Awaitable[Answer] | Answer]
Guard = Callable[[Gate, Ledger], Reservation | Deny | None]
"""The budget's voice: what it reserved, a denial that names the limit, or None where it has nothing to say."""


def last_word(guard: Guard, question: Question, ruling: Ruling) -> Ruling:
    """The ruling with the guard's denial or reservation, for the request as the others changed it.

    A guard that raises denies: no call gets through unreserved.
    """
    gate = question.gate
    if ruling.changes or ruling.injections:
        try:
            gate = gate.changed(ruling.changes).injected([(each.role, each.text) for each in ruling.injections])
        except ValueError as error:
            return attrs.evolve(ruling, deny=Deny(f"{gate.name} cannot be changed so: {error}"))
        ruling = attrs.evolve(ruling, gate=gate)
    return guarded(guard, gate, question.ledger, ruling)


def guarded(guard: Guard, gate: Gate, ledger: Ledger, ruling: Ruling) -> Ruling:
    """The ruling with what the guard says of the gate."""
    try:
        answer = guard(gate, ledger)
    except Exception as error:  # noqa: BLE001 -- whatever the guard raises is a denial
        answer = Deny(f"the budget guard failed: {type(error).__name__}: {error}")
    if answer is None:
        return ruling
    if isinstance(answer, Deny):
        return attrs.evolve(ruling, deny=answer)
    if ruling is PLAIN_YES:
        return Ruling(reservation=answer)
    return attrs.evolve(ruling, reservation=answer)
