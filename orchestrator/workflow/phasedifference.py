"""How the phases of a domain differ from those that a workflow was started with, phase by phase."""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.reopening import Difference
from orchestrator_states.lifecycle import Lifecycle

__all__ = ["phase_differences"]

ANY = "any phase"


def phase_differences(was: Lifecycle, now: Lifecycle) -> tuple[Difference, ...]:
    """Phases that came or went, and whose `next` is another; at least one where two tables of a domain differ."""
    if was.digest == now.digest or was.name != now.name:
        return ()
    found = (*phases_changed(was, now), *next_changed(was, now))
    return found or (("phases", ", ".join(phases_of(was)), ", ".join(phases_of(now))),)


def phases_changed(was: Lifecycle, now: Lifecycle) -> Iterator[Difference]:
    """Phases that only one of the tables has."""
    before, after = phases_of(was), phases_of(now)
    for phase in dict.fromkeys((*before, *after)):
        if (phase in before) != (phase in after):
            yield (f"phase {phase}", *(("there", "gone") if phase in before else ("not there", "there")))


def next_changed(was: Lifecycle, now: Lifecycle) -> Iterator[Difference]:
    """Phases of both tables that other phases may follow; where any may, one that came or went is told already."""
    for phase in phases_of(was):
        before, after = following(was, phase), following(now, phase)
        if phase in phases_of(now) and before != after:
            yield f"next of {phase}", before, after


def following(table: Lifecycle, phase: str) -> str:
    """The phases that may follow one, in words."""
    targets = [row.target for row in table.rows if phase in row.sources]
    return ANY if set(targets) == set(phases_of(table)) else ", ".join(targets) or "nothing"


def phases_of(table: Lifecycle) -> tuple[str, ...]:
    """The states that are phases: all but the one before the first."""
    return tuple(state for state in table.states if state != table.initial)
