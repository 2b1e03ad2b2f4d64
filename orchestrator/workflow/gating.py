"""Gates that are asked from within a phase, whose own deadline holds: those who answer, a person, the budget last."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from orchestrator.wording import describe
from orchestrator_events.bus import Question
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.event import Gate
from orchestrator_events.execution import ApprovalAnswered, ApprovalRequested

if TYPE_CHECKING:
    from orchestrator.workflow.invocation import PhaseHost

__all__ = ["asked_inside"]


async def asked_inside(host: PhaseHost, gate: Gate) -> Ruling:
    """Put a gate to those who answer it; a denial holds nothing back."""
    run, parts = host.it.run, host.it.parts
    unopposed = parts.bus.unopposed(gate, run.ledger)
    if unopposed is not None:
        return unopposed
    ruling = await parts.bus.ask(Question(run.run_id, run.lifecycle, run.state, gate, run.ledger))
    try:
        for question in ruling.ask_user if ruling.deny is None else ():
            if not await is_approved(host, gate, question.prompt):
                ruling = attrs.evolve(ruling, deny=Deny(f"not approved: {question.prompt}"))
                break
    except BaseException:
        release(host, ruling)
        raise
    if ruling.deny is not None:
        release(host, ruling)
    return ruling


async def is_approved(host: PhaseHost, gate: Gate, prompt: str) -> bool:
    """Commit the question, wait for the person, record the answer; an error and nobody are a no."""
    approver, yes, answer = host.approver, False, "nobody to ask"
    await host.record(ApprovalRequested(gate=gate.name, prompt=prompt))
    if approver is not None:
        try:
            yes = await approver.approve(host.run_id, prompt) is True
            answer = "yes" if yes else "no"
        except Exception as error:  # noqa: BLE001 -- an approver that fails has not approved
            answer = describe(error)
    await host.record(ApprovalAnswered(gate=gate.name, is_approved=yes, answer=answer))
    return yes


def release(host: PhaseHost, ruling: Ruling) -> None:
    """Give back what was held for a call that is not made."""
    if ruling.reservation is not None:
        host.ledger.release(ruling.reservation.key)
