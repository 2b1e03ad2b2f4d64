"""Screens for workflows: a checklist redrawn in place, plain lines, or nothing."""

from __future__ import annotations

import asyncio
from typing import Final

import attrs
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from orchestrator.cli.appearance import ASCII, Marks, print_hanging
from orchestrator.cli.inert import one_line
from orchestrator.cli.recordscreens import drawn_below
from orchestrator.cli.wording import duration
from orchestrator.cli.workflows.checklist import checklist_lines
from orchestrator.cli.workflows.lines import lines_of
from orchestrator.workflow.todos import TodoView, read_todos
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.record import Record
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    PhaseStarted,
    StateUnreadable,
    StateUnwritable,
    TodosUpdated,
)

__all__ = ["ChecklistScreen", "LinesScreen"]

WIDTH: Final = 120
REFRESH_S: Final = 0.2
WHOLE: Final = (CascadeDetected, DecisionNeeded, StateUnreadable, StateUnwritable)
"""Records whose lines are never cut: a state is recovered from them, and decisions rest on them."""
HEARTBEAT_S: Final = 30.0
"""Silence after which a line says that the workflow is alive, seconds: shorter than any CI's patience."""


@attrs.define(eq=False)
class LinesScreen:
    """Writes lines, never goes back, and moves no cursor."""

    console: Console
    marks: Marks
    clock: Clock = attrs.field(factory=SystemClock)
    heartbeat_s: float = HEARTBEAT_S
    title: str = ""
    phase: str = ""
    since: int = 0
    """Monotonic reading when the phase under way began, microseconds."""
    timer: asyncio.TimerHandle | None = None

    def show(self, record: Record) -> None:
        """Write what this record has to say; the title once, whenever it changes."""
        match record.event:
            case TodosUpdated() as event:
                self.show_title(view_in(event).title)
            case PhaseStarted() as event:
                self.phase, self.since = event.phase, self.clock.monotonic()
        for line in lines_of(record, self.marks):
            print_hanging(self.console, line)
        self.beat_later()

    def show_title(self, title: str) -> None:
        """Write the title, unless it stands there already."""
        if title != self.title:
            self.title = title
            self.console.print(Text(one_line(title, WIDTH, self.marks.ellipsis), "bold"))

    def close(self) -> None:
        """Stop the heartbeat."""
        if self.timer is not None:
            self.timer.cancel()

    def beat_later(self) -> None:
        """Start to wait anew: what was just written is a sign of life itself."""
        self.close()
        self.timer = asyncio.get_running_loop().call_later(self.heartbeat_s, self.beat)

    def beat(self) -> None:
        """Say that the workflow is alive, and what it waits for."""
        waited = duration(self.clock.monotonic() - self.since)
        self.console.print(Text(f"  still in {one_line(self.phase, 80)}, {waited}", "dim"))
        self.beat_later()


@attrs.define(eq=False)
class ChecklistScreen:
    """Draws the checklist at the bottom of a terminal; what phases say scrolls away above it."""

    console: Console
    marks: Marks
    clock: Clock = attrs.field(factory=SystemClock)
    view: TodoView | None = None
    phase: str = ""
    begun: int = 0
    """Monotonic reading at the first record, microseconds."""
    since: int = 0
    """Monotonic reading when the phase under way began, microseconds."""
    live: Live | None = None
    timer: asyncio.TimerHandle | None = None

    def show(self, record: Record) -> None:
        """Take in a record; what it has to say for good scrolls away above the drawing."""
        if self.live is None:
            self.open()
        match record.event:
            case TodosUpdated() as event:
                self.view = view_in(event)
            case PhaseStarted() as event:
                self.phase, self.since = event.phase, self.clock.monotonic()
        for line in lines_of(record, self.marks):
            print_hanging(self.console, line if isinstance(record.event, WHOLE) else self.cut(line))
        if self.live is not None:
            self.live.refresh()

    def open(self) -> None:
        """Begin to draw, or begin again."""
        self.begun = self.begun or self.clock.monotonic()
        self.live = drawn_below(self.console, self.frame)
        self.redraw()

    def close(self) -> None:
        """Take the drawing away and give the cursor back."""
        if self.timer is not None:
            self.timer.cancel()
        if self.live is not None:
            self.live.stop()
        self.live = None

    def redraw(self) -> None:
        """Draw, and again a little later."""
        if self.live is not None:
            self.live.refresh()
            self.timer = asyncio.get_running_loop().call_later(REFRESH_S, self.redraw)

    def frame(self) -> Group:
        """All lines, from top to bottom."""
        lines = [] if self.view is None else checklist_lines(self.view, self.marks)
        return Group(Text(), *map(self.cut, lines), self.cut(self.footer()))

    def footer(self) -> Text:
        """What is going on, and for how long."""
        now = self.clock.monotonic()
        line = Text()
        if self.phase:
            line.append(f"  {one_line(self.phase, 60)}  {duration(now - self.since)}", "cyan")
        return line.append(f"   total {duration(now - self.begun)}", "dim")

    def cut(self, line: Text) -> Text:
        """The line without what does not fit; a line that wraps would upset the drawing."""
        line.truncate(self.console.width - 1, overflow="crop" if self.marks is ASCII else "ellipsis")
        return line


def view_in(event: TodosUpdated) -> TodoView:
    """The list that an event carries."""
    return read_todos(event.todos.data.decode())
