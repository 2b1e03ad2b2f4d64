"""Sums done again, by the ledger's own rule, whichever lifecycle's calls are accounted for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import attrs

from orchestrator.audit.attempts import table_of
from orchestrator.execution import Execution
from orchestrator.history import RecordedClock
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionEnd, ExecutionInterrupted, ExecutionStart
from orchestrator_events.ledger import Ledger, Refusal
from orchestrator_events.run import BudgetOverrun

__all__ = ["Sums", "reserved", "settled"]


@attrs.define(eq=False)
class Sums:
    """Time and limits of one run, as its records tell them so far."""

    due: tuple[str, ...] = ()
    """Limits that the call just settled has passed, and that have to be noted next."""
    elapsed_us: int = 0
    """Active time that the records have shown so far, at least."""

    def noted(self, event: Event | None) -> Iterator[str]:
        """An overrun is noted directly after the call, and only then; None at the end of the records."""
        limits = event.limits if isinstance(event, BudgetOverrun) else ()
        if limits != self.due:
            was, now = ", ".join(self.due) or "no limit", ", ".join(limits) or "none"
            yield f"the call before passed {was}, but the overrun noted is of {now:.200}"
        self.due = ()

    def timed(self, run: Execution, event: Event) -> Iterator[str]:
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
            case _:
                pass

    def took(self, duration_us: int) -> Iterator[str]:
        """An effect took this long, in microseconds."""
        if duration_us < 0:
            yield f"took {duration_us} microseconds"
        self.elapsed_us += max(0, duration_us)

    def bought(self, run: Execution, held: Reservation, expected: Callable[[], Reservation | Refusal]) -> Iterator[str]:
        """The reservation is what the ledger gives at this point; a refusal means that a limit was ignored."""
        ledger = run.ledger
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
        given = expected()
        if isinstance(given, Refusal):
            yield f"was made though the limit {given.limit!r} is reached: {given.detail}"
        elif attrs.evolve(given, time_us=held.time_us) != held or (limit_us is None) != (held.time_us is None):
            yield f"reserves {figures(held)}; the sums give {figures(given)}"


def reserved(
    ledger: Ledger, held: Reservation, number: int, prompt: str, parameters: str, changed: set[str]
) -> Reservation | Refusal:
    """What the ledger reserves for a call, without holding it; `changed` are the fields that subscribers changed."""
    if "max_tokens" in changed:
        asked = None if held.open_ended else held.output_tokens
    else:
        asked = table_of(parameters).get("max_tokens")
    if asked is not None and type(asked) is not int:
        raise ValueError(f"max_tokens is {asked!r:.80}, not a whole number")
    try:
        return ledger.reserve(held.key, number, prompt, asked)
    finally:
        ledger.release(held.key)


def settled(ledger: Ledger, key: str, charge: Charge, *, answers: int) -> Iterator[str]:
    """A charge settles a reservation; unknown use is never 0."""
    if key not in ledger.holds:
        yield f"charges the call {key!r:.80}, which is not in flight"
    if charge.input_tokens < 1 or charge.output_tokens < answers or charge.money_micro < 0:
        yield f"charges {charge}, less than any call costs"


def figures(reservation: Reservation) -> str:
    """A reservation in words."""
    return ", ".join(f"{name} {value}" for name, value in attrs.asdict(reservation).items() if name != "key")
