"""What is put to a gate's subscribers, and the budget guard's last word on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import attrs

from orchestrator_events.decision import PLAIN_YES, Decision, Deny, Proceed, Ruling
from orchestrator_events.event import Gate
from orchestrator_events.ledger import Ledger

__all__ = ["Guard", "Question", "Responder", "last_word"]


@attrs.frozen
class Question:
    """What a gate's subscribers are asked: the gate, and where the run stands."""

    run_id: str
    lifecycle: str
    state: str
    gate: Gate
    ledger: Ledger
    """Account of the root run; read it, the budget guard alone reserves on it."""


Responder = Callable[[Question], Awaitable[Decision] | Decision]
Guard = Callable[[Question], Decision]


def last_word(guard: Guard, question: Question, ruling: Ruling) -> Ruling:
    """The ruling with the guard's denial or reservation, for the request as the others modified it.

    A guard that raises or answers anything but a denial or a yes denies: no call gets through unreserved.
    """
    if ruling.changes:
        question = attrs.evolve(question, gate=attrs.evolve(question.gate, **ruling.changes))
    try:
        decision = guard(question)
    except Exception as error:  # noqa: BLE001 -- whatever the guard raises is a denial
        decision = Deny(f"the budget guard failed: {type(error).__name__}: {error}")
    if isinstance(decision, Proceed):
        if decision.reservation is None:
            return ruling
        if ruling is PLAIN_YES:
            return Ruling(reservation=decision.reservation)
        return attrs.evolve(ruling, reservation=decision.reservation)
    if not isinstance(decision, Deny):
        decision = Deny(f"the budget guard answered {decision!r:.80}")
    return attrs.evolve(ruling, deny=decision)
