"""What every screen of records is, the one that shows nothing, and drawing at the bottom of a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from rich.console import Console, RenderableType
from rich.live import Live

from orchestrator_events.record import Record

__all__ = ["NoScreen", "RecordScreen", "drawn_below"]


class RecordScreen(Protocol):
    """What shows a workflow or a plan while it goes on; it lives in the loop that drives it."""

    def show(self, record: Record) -> None:
        """This record, of it or of a part of it, was committed."""
        ...

    def close(self) -> None:
        """It is over, left, or waits for a person; nothing is drawn until the next record."""
        ...


class NoScreen:
    """Shows nothing."""

    def show(self, record: Record) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Show nothing."""


def drawn_below(console: Console, frame: Callable[[], RenderableType]) -> Live:
    """A drawing at the bottom of a terminal, begun; it is made anew at `refresh` and gone after `stop`."""
    live = Live(console=console, get_renderable=frame, auto_refresh=False, transient=True, redirect_stdout=False)
    live.start()
    return live
