"""Accounts: every call was reserved for before it was made, settled once, and nothing bought after a limit."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.audit.sums import Sums, reserved, settled
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

    sums: Sums = attrs.Factory(Sums)
    children: set[str] = attrs.Factory(set[str])
    """Ids of the runs that calls have started; what those cost is held against their own records."""
    name: str = attrs.field(default="budget", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """Sums that do not come out."""
        event, sums = record.event, self.sums
        yield from sums.noted(event)
        match event:
            case ExecutionStart() | ExecutionInterrupted() | ExecutionEnd():
                yield from sums.timed(run, event)
            case GenerationStarted():
                yield from sums.bought(run, event.reservation, lambda: reserved_for(run, event))
            case ChildStarted():
                self.children.add(event.child_id)
            case GenerationAbandoned():
                yield from self.written_off(run.ledger, event)
            case CandidateGenerated():
                yield from settled(run.ledger, event.key, event.charge, answers=1)
                sums.due = run.ledger.overrun(event.key, event.charge)
            case AttemptFailed() if event.charge is not None:
                yield from settled(run.ledger, event.key, event.charge, answers=0)
                sums.due = run.ledger.overrun(event.key, event.charge)
            case BudgetExhausted():
                yield from used_up(run, event)
            case _:
                pass
        if isinstance(event, CandidateGenerated | AttemptFailed | AttemptPassed):
            yield from sums.took(event.duration_us)

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
        yield from self.sums.noted(None)


def reserved_for(run: Run, event: GenerationStarted) -> Reservation | Refusal:
    """What the ledger reserves for the call, without holding it."""
    prompt = event.prompt or (run.ready.prompt if run.ready else None)
    text = "" if prompt is None else prompt.data.decode()
    changed = {field for each in event.decisions if each.action == "modify" for field in each.detail.split(", ")}
    return reserved(run.ledger, event.reservation, event.attempt, text, event.parameters, changed)


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
