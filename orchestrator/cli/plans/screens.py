"""Progress of a plan on standard error: a table of steps redrawn in place, plain lines, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.appearance import Marks
from orchestrator.cli.inert import one_line
from orchestrator.excerpt import in_short
from orchestrator.plan.plan import Plan
from orchestrator_events.event import Event
from orchestrator_events.plan import (
    FollowUpAdded,
    PlanCompleted,
    PlanStarted,
    StepBlocked,
    StepEscalated,
    StepExecuted,
    StepFailed,
    StepFaltered,
    StepReviewed,
    StepRouted,
    StepSettled,
    StepVerified,
    WorkStarted,
)
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted

__all__ = ["LinesScreen", "TableScreen", "lines_of"]

WIDTH = 160
NAME = 40


@attrs.define(eq=False)
class LinesScreen:
    """Writes lines, never goes back, and moves no cursor."""

    console: Console
    marks: Marks

    def show(self, record: Record) -> None:
        """Write what this record has to say."""
        for line in lines_of(record, self.marks):
            self.console.print(line)

    def close(self) -> None:
        """Nothing is left to write."""


@attrs.define(eq=False)
class TableScreen:
    """A line for each step, redrawn in place."""

    console: Console
    marks: Marks
    plan: Plan
    states: dict[str, str] = attrs.Factory(dict[str, str])
    notes: dict[str, str] = attrs.Factory(dict[str, str])
    live: Live | None = None

    def show(self, record: Record) -> None:
        """Take in what this record says."""
        event = record.event
        step_id = str(getattr(event, "followup", "") or getattr(event, "step", ""))
        if not step_id:
            return
        self.states[step_id] = record.target if record.lifecycle == "step" else getattr(event, "state", "pending")
        if (found := said(record)) is not None:
            self.notes[step_id], _ = found
        if self.live is None:
            self.live = Live(console=self.console, refresh_per_second=8, transient=False)
            self.live.start()
        self.live.update(self.drawn())

    def drawn(self) -> Group:
        """Every step with its state and its last news."""
        names = dict.fromkeys([*(step.id for step in self.plan.steps), *self.states])
        return Group(*map(self.line, names))

    def line(self, name: str) -> Text:
        """A step with its state and its last news."""
        place = f"{one_line(name, NAME):<20} {self.states.get(name, 'pending'):<10} "
        return Text((place + in_short(self.notes.get(name, ""), WIDTH - len(place), self.marks.ellipsis)).rstrip())

    def close(self) -> None:
        """Leave the last drawing where it is."""
        if self.live is not None:
            self.live.stop()
            self.live = None


def lines_of(record: Record, marks: Marks) -> Iterator[Text]:
    """What a record has to say in a line; most say nothing."""
    found = said(record)
    if found is not None:
        text, style = found
        step_id = str(getattr(record.event, "step", ""))
        prefix = f"{marks.bullet} {step_id}: " if step_id else ""
        yield Text(in_short(f"{prefix}{text}", WIDTH, marks.ellipsis), style)


def said(record: Record) -> tuple[str, str] | None:
    """A record in words, and its style."""
    event = record.event
    teller = TELLERS.get(type(event))
    return None if teller is None else teller(event)


def verified(event: StepVerified) -> tuple[str, str]:
    """What the gates say."""
    return ("verified", "dim") if event.has_passed else (f"closed gates: {', '.join(event.failed)}", "red")


def reviewed(event: StepReviewed) -> tuple[str, str]:
    """What the reviewer says."""
    conditions = " with conditions" if event.has_conditions else ""
    return f"{event.reviewer}: {event.outcome.replace('_', ' ')}{conditions}", "bold"


def begun(event: WorkStarted) -> tuple[str, str]:
    """Who begins what; why, where it is asked for again."""
    again = f", again: {event.again}" if event.again else ""
    return f"{event.purpose} {event.number}: {event.model} as {event.role}{again}", "cyan"


TELLERS: Final[Mapping[type[Event], Callable[[Any], tuple[str, str]]]] = {
    BudgetExhausted: lambda event: (f"the limit {event.limit} is reached: {event.detail}", "red"),
    FollowUpAdded: lambda event: (f"step {event.followup} is added", "yellow"),
    PlanCompleted: lambda event: (f"completed: {len(event.steps)} steps", "bold green"),
    PlanStarted: lambda event: (f"executing {event.digest}", "bold"),
    StepBlocked: lambda event: (event.reason, "red"),
    StepEscalated: lambda event: (f"failed {event.failures} times: {event.model} takes over", "yellow"),
    StepExecuted: lambda event: (f"output of {event.model}", ""),
    StepFailed: lambda event: (event.reason, "red"),
    StepFaltered: lambda event: (f"no output: {event.error}", "red"),
    StepReviewed: reviewed,
    StepRouted: lambda event: (f"{event.primary}, {event.mode}: {event.reason}", "dim"),
    StepSettled: lambda event: (
        ": ".join(filter(None, (event.state, event.reason))),
        "green" if event.state == "completed" else "red",
    ),
    StepVerified: verified,
    WorkStarted: begun,
}
"""What each event says, and in which style."""
