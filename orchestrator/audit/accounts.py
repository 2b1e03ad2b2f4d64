"""Accounts: every call was reserved for before it was made, settled once, and nothing bought after a limit."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.audit.attempts import table_of
from orchestrator.history import RecordedClock
from orchestrator.nesting import child_id_of
from orchestrator.run import Run
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.execution import ChildStarted, ExecutionEnd, ExecutionInterrupted, ExecutionStart
from orchestrator_events.ledger import Ledger, Refusal
from orchestrator_events.record import Record
from orchestrator_events.run import (
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    GenerationAbandoned,
    GenerationStarted,
)
from orchestrator_states.run import RunState

__all__ = ["Accounts"]


@attrs.define(eq=False)
class Accounts:
    """Does the sums again: reservations and overruns are recomputed by the ledger's own rule.

    What a generator reported is taken as recorded, and so is the clock, but no time may be lost: the time left
    at a reservation is at most what the durations recorded before it leave.
    """

    due: tuple[str, ...] = ()
    """Limits that the call just settled has passed, and that have to be noted next."""
    elapsed_us: int = 0
    """Active time that the records have shown so far, at least."""
    children: set[str] = attrs.Factory(set[str])
    """Ids of the runs that calls have started; what those cost is held against their own records."""
    name: str = attrs.field(default="budget", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """Sums that do not come out."""
        event = record.event
        yield from self.noted(event.limits if isinstance(event, BudgetOverrun) else ())
        match event:
            case ExecutionStart() | ExecutionInterrupted() | ExecutionEnd():
                yield from self.timed(run, event)
            case GenerationStarted():
                yield from self.bought(run, event)
            case ChildStarted():
                self.children.add(event.child_id)
            case GenerationAbandoned():
                yield from self.written_off(run.ledger, event)
            case CandidateGenerated():
                yield from self.settled(run.ledger, event.key, event.charge, answers=1)
            case AttemptFailed() if event.charge is not None:
                yield from self.settled(run.ledger, event.key, event.charge, answers=0)
            case BudgetExhausted():
                yield from used_up(run, event)
            case _:
                pass
        if isinstance(event, CandidateGenerated | AttemptFailed | AttemptPassed):
            if event.duration_us < 0:
                yield f"took {event.duration_us} microseconds"
            self.elapsed_us += max(0, event.duration_us)

    def noted(self, limits: tuple[str, ...]) -> Iterator[str]:
        """An overrun is noted directly after the call, and only then."""
        if limits != self.due:
            was, now = ", ".join(self.due) or "no limit", ", ".join(limits) or "none"
            yield f"the call before passed {was}, but the overrun noted is of {now:.200}"
        self.due = ()

    def timed(self, run: Run, event: ExecutionStart | ExecutionInterrupted | ExecutionEnd) -> Iterator[str]:
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

    def bought(self, run: Run, event: GenerationStarted) -> Iterator[str]:
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
        prompt = event.prompt or (run.ready.prompt if run.ready else None)
        text = "" if prompt is None else prompt.data.decode()
        expected = reserved(run, event, text)
        if isinstance(expected, Refusal):
            yield f"was made though the limit {expected.limit!r} is reached: {expected.detail}"
        elif attrs.evolve(expected, time_us=held.time_us) != held or (limit_us is None) != (held.time_us is None):
            yield f"reserves {figures(held)}; the sums give {figures(expected)}"

    def settled(self, ledger: Ledger, key: str, charge: Charge, *, answers: int) -> Iterator[str]:
        """A charge settles a reservation; unknown use is never 0."""
        if key not in ledger.holds:
            yield f"charges the call {key!r:.80}, which is not in flight"
        if charge.input_tokens < 1 or charge.output_tokens < answers or charge.money_micro < 0:
            yield f"charges {charge}, less than any call costs"
        self.due = ledger.overrun(key, charge)

    def written_off(self, ledger: Ledger, event: GenerationAbandoned) -> Iterator[str]:
        """A call without an outcome is charged whole, or not at all where the generator was never reached."""
        if event.key not in ledger.holds:
            yield f"abandons the call {event.key!r:.80}, which is not in flight"
        elif child_id_of(event.key) not in self.children and event.charge not in (
            Charge(),
            ledger.worst_case(event.key),
        ):
            yield f"charges {event.charge}, which is neither nothing nor what was reserved"

    def end(self, run: Run) -> Iterator[str]:  # noqa: ARG002 -- the sums are followed here
        """An overrun that is noted nowhere."""
        yield from self.noted(())


def reserved(run: Run, event: GenerationStarted, prompt: str) -> Reservation | Refusal:
    """What the ledger reserves for the call, without holding it."""
    held, ledger = event.reservation, run.ledger
    fields = [decision.detail.split(", ") for decision in event.decisions if decision.action == "modify"]
    if any("max_tokens" in each for each in fields):
        asked = None if held.open_ended else held.output_tokens
    else:
        asked = table_of(event.parameters).get("max_tokens")
    if asked is not None and type(asked) is not int:
        raise ValueError(f"max_tokens is {asked!r:.80}, not a whole number")
    try:
        return ledger.reserve(held.key, event.attempt, prompt, asked)
    finally:
        ledger.release(held.key)


def used_up(run: Run, event: BudgetExhausted) -> Iterator[str]:
    """The limit that ended the run is one it had, and was reached as far as the records can tell."""
    ledger = run.ledger
    cap = attrs.asdict(ledger.budget).get(event.limit)
    if event.limit in ledger.overruns:
        return
    if cap is None:
        yield f"the budget has no limit {event.limit!r:.80}"
        return
    spent = {limit: used for limit, used, _ in ledger.sums()} if run.state == RunState.REFINING else {}
    spent |= {"attempts": ledger.attempts, "repeats": ledger.repeats}
    if event.limit in spent and spent[event.limit] < cap:
        yield f"the limit {event.limit!r} is not reached: {spent[event.limit]} of {cap}"


def figures(reservation: Reservation) -> str:
    """A reservation in words."""
    return ", ".join(f"{name} {value}" for name, value in attrs.asdict(reservation).items() if name != "key")
