"""The workflow's todo list as lines: phase, item and status, one line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs
from rich.text import Text

from orchestrator.cli.appearance import ASCII, Marks
from orchestrator.cli.inert import one_line
from orchestrator.workflow.todos import TodoView

__all__ = ["checklist_lines"]

WIDTH: Final = 120
STYLE: Final = {"completed": "green", "in_progress": "bold cyan", "pending": "dim"}


@attrs.frozen
class Ticks:
    """What stands before a line of the list."""

    completed: str
    in_progress: str
    pending: str

    def of(self, status: str) -> str:
        """The tick of a status."""
        known: Mapping[str, str] = attrs.asdict(self)
        return known.get(status, "?")


UNICODE_TICKS: Final = Ticks("✔", "▸", "○")
ASCII_TICKS: Final = Ticks("[x]", "[>]", "[ ]")


def checklist_lines(view: TodoView, marks: Marks, *, shows_status: bool = False) -> Iterator[Text]:
    """The title and the list below it; `shows_status` has each status beside its tick in words."""
    ticks = ASCII_TICKS if marks is ASCII else UNICODE_TICKS
    yield Text(one_line(view.title, WIDTH, marks.ellipsis), "bold")
    width = max((len(one_line(todo.content, WIDTH)) for todo in view.todos), default=0)
    for todo in view.todos:
        content = one_line(todo.content, WIDTH, marks.ellipsis)
        indent = "    " if todo.content.startswith("Item:") else "  "
        line = f"{indent}{ticks.of(todo.status)} {content}"
        if shows_status:
            line = f"{line:<{width + 8}}  {todo.status}"
        yield Text(line, STYLE.get(todo.status, ""))
