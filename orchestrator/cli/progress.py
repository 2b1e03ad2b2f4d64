"""Progress: a subscriber that folds the records of a run and has a screen show what became of it."""

from __future__ import annotations

from typing import Protocol

import attrs

from orchestrator.run import Run
from orchestrator_events.record import Record

__all__ = ["Progress", "QuietScreen", "Screen"]


class Screen(Protocol):
    """What shows a run while it goes on; it lives in the loop that the run is in."""

    def open(self, run: Run) -> None:
        """A run begins; it changes before each `show`."""
        ...

    def show(self, record: Record) -> None:
        """This record was folded into the run."""
        ...

    def close(self) -> None:
        """The run is over, or left; nothing is drawn after it."""
        ...


class QuietScreen:
    """Shows nothing."""

    def open(self, run: Run) -> None:
        """Show nothing."""

    def show(self, record: Record) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Show nothing."""


@attrs.define(eq=False)
class Progress:
    """Subscribe it to a bus; it has a run of its own, so that it only sees what is recorded."""

    run: Run
    screen: Screen
    is_open: bool = False

    def __call__(self, record: Record) -> None:
        """Fold one record and show it."""
        if not self.is_open:
            self.is_open = True
            self.screen.open(self.run)
        self.run.apply(record)
        self.screen.show(record)
