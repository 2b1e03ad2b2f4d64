"""Spending: every call of the model was reserved for before it was made, and settled once; limits were kept."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.run import CALL_LIMIT, AgentRun
from orchestrator.audit.sums import Sums, reserved, settled
from orchestrator_events.agent import ProviderRetry, TurnAbandoned, TurnAnswered, TurnStarted
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.execution import ExecutionEnd, ExecutionInterrupted, ExecutionStart
from orchestrator_events.ledger import Refusal
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted

__all__ = ["Spending"]


@attrs.define(eq=False)
class Spending:
    """Does the sums again, by the ledger's own rule. What a provider reported is taken as recorded.

    Time is at least what the calls of the model took, which are made one after another.
    """

    sums: Sums = attrs.Factory(Sums)
    name: str = attrs.field(default="budget", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Sums that do not come out."""
        event, sums = record.event, self.sums
        yield from sums.noted(event)
        match event:
            case ExecutionStart() | ExecutionInterrupted() | ExecutionEnd():
                yield from sums.timed(run, event)
            case TurnStarted():
                yield from sums.bought(run, event.reservation, lambda: reserved_for(run, event))
            case TurnAnswered():
                yield from settled(run.ledger, event.key, event.charge, answers=0)
                sums.due = run.ledger.overrun(event.key, event.charge)
                yield from sums.took(event.duration_us)
            case TurnAbandoned():
                yield from settled(run.ledger, event.key, event.charge, answers=0)
            case ProviderRetry() if event.charge != Charge():
                yield from settled(run.ledger, event.key, event.charge, answers=0)
            case BudgetExhausted():
                yield from used_up(run, event)
            case _:
                pass

    def end(self, run: AgentRun) -> Iterator[str]:  # noqa: ARG002 -- the sums are followed here
        """An overrun that is noted nowhere."""
        yield from self.sums.noted(None)


def reserved_for(run: AgentRun, event: TurnStarted) -> Reservation | Refusal:
    """What the ledger reserves for the call, without holding it.

    Where subscribers changed the request, how they put it together is not told: the input counts as reserved.
    """
    changed = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
    is_changed = "messages" in changed or any(each.action == "inject" for each in event.decisions)
    counted = "." * (4 * event.reservation.input_tokens)
    text = counted if is_changed else "".join(each.data.decode() for each in event.messages)
    return reserved(run.ledger, event.reservation, event.turn, text, event.parameters, changed)


def used_up(run: AgentRun, event: BudgetExhausted) -> Iterator[str]:
    """The limit that ended the run is one it had, and was reached as far as the records can tell."""
    ledger, limit = run.ledger, event.limit
    if limit in ledger.overruns:
        return
    if limit == "iterations":
        most = (ledger.budget.attempts or 1) - 1
        if run.turn < most:
            yield f"the limit 'iterations' is not reached: {run.turn} of {most}"
    elif limit == CALL_LIMIT:
        if not run.is_call_limit_reached:
            yield f"the limit {CALL_LIMIT!r} is not reached: no call was refused for it"
    elif attrs.asdict(ledger.budget).get(limit) is None:
        yield f"the budget has no limit {limit!r:.80}"
    elif limit == "attempts" and ledger.attempts < (ledger.budget.attempts or 0):
        yield f"the limit 'attempts' is not reached: {ledger.attempts} of {ledger.budget.attempts}"
