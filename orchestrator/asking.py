"""Putting a gate to those who answer it: subscribers, and a person where a subscriber asks for one."""

from __future__ import annotations

import attrs

from orchestrator.closing import commit
from orchestrator.execution import Execution
from orchestrator.generating import InterruptionError
from orchestrator.ports import Approver
from orchestrator.run import Run
from orchestrator.supervision import DeadlineError, Supervisor
from orchestrator.wording import describe
from orchestrator_events.bus import Bus, Question
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.event import Gate
from orchestrator_events.execution import ApprovalAnswered, ApprovalRequested, ExecutionCancelled
from orchestrator_events.run import BudgetExhausted

__all__ = ["NobodyToAskError", "ask", "denied", "is_approved"]


class NobodyToAskError(InterruptionError):
    """A person's approval is needed, and nobody is there to be asked: the question is left open."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt
        super().__init__(f"nobody is there to approve; go on where somebody can answer: {prompt}")


async def ask(bus: Bus, approver: Approver | None, run: Execution, supervisor: Supervisor, gate: Gate) -> Ruling:
    """Put a gate to the bus; a person, when one is to be asked, is asked here. A denial holds nothing back."""
    ruling = await bus.ask(Question(run.run_id, run.lifecycle, run.state, gate, run.ledger))
    if ruling.deny is None:
        for question in ruling.ask_user:
            if not await is_approved(bus, approver, run, supervisor, gate, question.prompt):
                ruling = attrs.evolve(ruling, deny=Deny(f"not approved: {question.prompt}"))
                break
    if ruling.deny is not None and ruling.reservation is not None:
        run.ledger.release(ruling.reservation.key)
    return ruling


async def is_approved(
    bus: Bus,
    approver: Approver | None,
    run: Execution,
    supervisor: Supervisor,
    gate: Gate,
    prompt: str,
    *,
    waits: bool = False,
) -> bool:
    """Commit the question, wait for the person, record the answer; silence and an error are a no.

    So is nobody to ask, unless the run waits for somebody: then NobodyToAskError is raised, and no answer recorded.
    """
    if waits and approver is None:
        raise NobodyToAskError(prompt)
    run.fire(ApprovalRequested(gate=gate.name, prompt=prompt))
    await commit(bus, run)
    yes, answer = False, "nobody to ask"
    if approver is not None:
        try:
            yes = (
                await supervisor.effect(
                    approver.approve(run.run_id, prompt), run.remaining_seconds(run.clock.monotonic())
                )
                is True
            )
            answer = "yes" if yes else "no"
        except NobodyToAskError:
            if waits:
                raise
        except DeadlineError:
            answer = "no answer in time"
        except Exception as error:  # noqa: BLE001 -- an approver that fails has not approved
            answer = describe(error)
    run.fire(ApprovalAnswered(gate=gate.name, is_approved=yes, answer=answer))
    return yes


def denied(run: Run, deny: Deny) -> None:
    """The budget's denial exhausts the run; any other cancels it."""
    if deny.limit:
        run.fire(BudgetExhausted(limit=deny.limit, detail=deny.reason))
    else:
        run.fire(ExecutionCancelled(reason=deny.reason, is_denial=True))
