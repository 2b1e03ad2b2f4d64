"""How a workflow looks while it goes on: plain lines and the checklist, whatever its phases are called and say."""

from __future__ import annotations

import asyncio
import io

from rich.console import Console

from orchestrator.cli.appearance import ASCII, UNICODE, print_hanging
from orchestrator.cli.workflows.checklist import checklist_lines
from orchestrator.cli.workflows.lines import lines_of
from orchestrator.cli.workflows.screens import ChecklistScreen, LinesScreen
from orchestrator.testing import ManualClock
from orchestrator.workflow.todos import Todo, TodoView, written_todos
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.record import Record
from orchestrator_events.workflow import PhaseStarted, StateUnwritable, SummaryReported, TodosUpdated

VIEW = TodoView(
    "Workflow: red-1 - All red",
    (
        Todo("Phase: mix", "completed"),
        Todo("Phase: paint", "in_progress"),
        Todo("Item: red", "in_progress"),
        Todo("Phase: done", "pending"),
    ),
)
HOSTILE = "\x1b[2J\x1b]0;title\x07red\u202e\r\nblue"


def recorded(event: Event) -> Record:
    """A record of a workflow."""
    return Record("run", 1, 0, "workflow", "executing", "executing", event)


def test_checklist() -> None:
    """A tick for each status, the item below its phase."""
    assert [line.plain for line in checklist_lines(VIEW, UNICODE)] == [
        "Workflow: red-1 - All red",
        "  ✔ Phase: mix",
        "  ▸ Phase: paint",
        "    ▸ Item: red",
        "  ○ Phase: done",
    ]
    assert [line.plain for line in checklist_lines(VIEW, ASCII)][1:] == [
        "  [x] Phase: mix",
        "  [>] Phase: paint",
        "    [>] Item: red",
        "  [ ] Phase: done",
    ]


def test_what_phases_say_is_inert() -> None:
    """Nothing that a phase is called or says reaches the terminal as a control sequence."""
    said = [*lines_of(recorded(SummaryReported(phase="mix", output=Blob(HOSTILE))), UNICODE)]
    assert [line.plain for line in said] == ["    red", "    blue"]
    hostile = TodoView(f"Workflow: {HOSTILE}", (Todo(f"Item: {HOSTILE}", "pending"),))
    assert [line.plain for line in checklist_lines(hostile, UNICODE)] == ["Workflow: red", "    ○ Item: red"]


def test_a_sign_of_life() -> None:
    """While a phase takes its time, a line says so: shorter than the patience of whoever watches."""
    clock = ManualClock()

    class Heard(io.StringIO):
        heard: asyncio.Event

        def write(self, text: str) -> int:
            if "still" in text:
                self.heard.set()
            return super().write(text)

    async def watch() -> str:
        file = Heard()
        file.heard = asyncio.Event()
        screen = LinesScreen(Console(file=file), UNICODE, clock, heartbeat_s=0.02)
        screen.show(recorded(PhaseStarted(phase="paint", number=1, executor="callable")))
        clock.advance(61)
        await file.heard.wait()
        screen.close()
        return file.getvalue()

    assert asyncio.run(watch()).splitlines()[:2] == ["· paint", "  still in paint, 1m 01s"]


def test_the_drawing_fits_the_terminal() -> None:
    """The checklist, what is under way and for how long; a line that does not fit is cut, and closing clears it."""

    async def drawn() -> list[str]:
        console = Console(file=io.StringIO(), width=24, force_terminal=True)
        screen = ChecklistScreen(console, UNICODE, ManualClock())
        screen.show(recorded(TodosUpdated(todos=Blob(written_todos(VIEW)))))
        screen.show(recorded(PhaseStarted(phase="paint", number=1, executor="callable")))
        lines = [line.plain for line in map(screen.cut, checklist_lines(VIEW, UNICODE))]
        screen.close()
        assert screen.live is None
        return [*lines, screen.footer().plain]

    assert asyncio.run(drawn()) == [
        "Workflow: red-1 - All …",
        "  ✔ Phase: mix",
        "  ▸ Phase: paint",
        "    ▸ Item: red",
        "  ○ Phase: done",
        "  paint  0.0s   total 0.0s",
    ]


def test_a_broken_line_stays_as_far_in() -> None:
    """Where a terminal breaks a line of others, no word of it begins where the product's own lines do."""
    console = Console(file=io.StringIO(), width=24, force_terminal=True, color_system=None)
    for line in lines_of(
        recorded(SummaryReported(phase="mix", output=Blob("a long tale options: go on, and on"))), UNICODE
    ):
        print_hanging(console, line)
    assert isinstance(console.file, io.StringIO)
    assert [line.rstrip() for line in console.file.getvalue().splitlines()] == [
        "    a long tale options:",
        "    go on, and on",
    ]


def test_what_is_to_be_recovered_is_not_cut() -> None:
    """Beside the drawing, too, a state that could not be written is put out whole."""

    async def drawn() -> str:
        console = Console(file=io.StringIO(), width=24, force_terminal=True, color_system=None)
        screen = ChecklistScreen(console, UNICODE, ManualClock())
        state = Blob('{"note": "red and green and blue and white"}')
        screen.show(recorded(StateUnwritable(path="x", message="x: disk full", state=state)))
        screen.close()
        assert isinstance(console.file, io.StringIO)
        return console.file.getvalue()

    assert '{"note": "red and green and blue and white"}' in " ".join(asyncio.run(drawn()).split())
