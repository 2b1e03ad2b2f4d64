"""Spending: every call of the model was reserved for before it was made, and settled once; limits were kept."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.run import CALL_LIMIT, AgentRun
from orchestrator.audit.accounts import figures
from orchestrator.audit.attempts import table_of
from orchestrator.history import RecordedClock
from orchestrator_events.agent import ProviderRetry, TurnAbandoned, TurnAnswered, TurnStarted
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.execution import ExecutionEnd, ExecutionInterrupted, ExecutionStart
from orchestrator_events.ledger import Refusal
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted, BudgetOverrun

__all__ = ["Spending"]


@attrs.define(eq=False)
class Spending:
    """Does the sums again, by the ledger's own rule. What a provider reported is taken as recorded.

    Time is at least what the calls of the model took, which are made one after another.
    """

    due: tuple[str, ...] = ()
    """Limits that the call just settled has passed, and that have to be noted next."""
    elapsed_us: int = 0
    name: str = attrs.field(default="budget", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Sums that do not come out."""
        event = record.event
        yield from self.noted(event.limits if isinstance(event, BudgetOverrun) else ())
        match event:
            case ExecutionStart() | ExecutionInterrupted() | ExecutionEnd():
                yield from self.timed(run, event)
            case TurnStarted():
                yield from self.bought(run, event)
            case TurnAnswered():
                yield from settled(run, event.key, event.charge, answers=0)
                self.due = run.ledger.overrun(event.key, event.charge)
                if event.duration_us < 0:
                    yield f"took {event.duration_us} microseconds"
                self.elapsed_us += max(0, event.duration_us)
            case TurnAbandoned():
                yield from settled(run, event.key, event.charge, answers=0)
            case ProviderRetry() if event.charge != Charge():
                yield from settled(run, event.key, event.charge, answers=0)
            case BudgetExhausted():
                yield from used_up(run, event)
            case _:
                pass

    def noted(self, limits: tuple[str, ...]) -> Iterator[str]:
        """An overrun is noted directly after the call, and only then."""
        if limits != self.due:
            was, now = ", ".join(self.due) or "no limit", ", ".join(limits) or "none"
            yield f"the call before passed {was}, but the overrun noted is of {now:.200}"
        self.due = ()

    def timed(self, run: AgentRun, event: ExecutionStart | ExecutionInterrupted | ExecutionEnd) -> Iterator[str]:
        """Active time goes on from where it was, and never back."""
        match event:
            case ExecutionStart():
                self.elapsed_us = run.ledger.carried_us
            case ExecutionInterrupted():
                self.elapsed_us = event.active_us
                if event.active_us < run.ledger.carried_us:
                    yield f"gives back time: {event.active_us} of {run.ledger.carried_us} microseconds"
            case ExecutionEnd():
                if event.active_us < self.elapsed_us:
                    yield f"states {event.active_us} microseconds of active time, its records show {self.elapsed_us}"
                if run.ledger.holds:
                    yield f"the call {min(run.ledger.holds):.80} is neither settled nor abandoned"

    def bought(self, run: AgentRun, event: TurnStarted) -> Iterator[str]:
        """The reservation is what the ledger gives at this point; a refusal means that a limit was ignored."""
        ledger, held = run.ledger, event.reservation
        if held.key in ledger.holds:
            yield f"a call under the key {held.key!r:.80} is in flight already"
            return
        limit_us = ledger.budget.limit_us
        if limit_us is not None:
            left_us = limit_us - self.elapsed_us
            if held.time_us is None or not 0 < held.time_us <= left_us:
                yield f"has {held.time_us} microseconds, at most {left_us} are left"
            else:
                self.elapsed_us = limit_us - held.time_us
        if isinstance(run.clock, RecordedClock):
            run.clock.at = (ledger.started_us or 0) + self.elapsed_us - ledger.carried_us
        expected = reserved(run, event)
        if isinstance(expected, Refusal):
            yield f"was made though the limit {expected.limit!r} is reached: {expected.detail}"
        elif attrs.evolve(expected, time_us=held.time_us) != held or (limit_us is None) != (held.time_us is None):
            yield f"reserves {figures(held)}; the sums give {figures(expected)}"

    def end(self, run: AgentRun) -> Iterator[str]:  # noqa: ARG002 -- the sums are followed here
        """An overrun that is noted nowhere."""
        yield from self.noted(())


def reserved(run: AgentRun, event: TurnStarted) -> Reservation | Refusal:
    """What the ledger reserves for the call, without holding it.

    Where subscribers changed the request, how they put it together is not told: the input counts as reserved.
    """
    held, ledger = event.reservation, run.ledger
    changes = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
    is_changed = "messages" in changes or any(each.action == "inject" for each in event.decisions)
    text = "." * (4 * held.input_tokens) if is_changed else "".join(each.data.decode() for each in event.messages)
    if "max_tokens" in changes:
        asked = None if held.open_ended else held.output_tokens
    else:
        asked = table_of(event.parameters).get("max_tokens")
    if asked is not None and type(asked) is not int:
        raise ValueError(f"max_tokens is {asked!r:.80}, not a whole number")
    try:
        return ledger.reserve(held.key, event.turn, text, asked)
    finally:
        ledger.release(held.key)


def settled(run: AgentRun, key: str, charge: Charge, *, answers: int) -> Iterator[str]:
    """A charge settles a reservation; unknown use is never 0."""
    if key not in run.ledger.holds:
        yield f"charges the call {key!r:.80}, which is not in flight"
    if charge.input_tokens < 1 or charge.output_tokens < answers or charge.money_micro < 0:
        yield f"charges {charge}, less than any call costs"


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
