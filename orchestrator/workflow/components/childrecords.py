"""What a workflow's records say of the runs inside its phases.

A child is announced once (`child:started`). Each time that it is driven is a `subagent:spawned` with what is held for
it, and a `subagent:finished` with what it was charged since; its id is that of the child with a number. Where the
child has any records, `child:ended` says with the latter where its chain stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from orchestrator.nesting import plus
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.event import Event
from orchestrator_events.execution import ChildStarted
from orchestrator_events.workflow import SubagentFinished, SubagentSpawned

__all__ = ["Drive", "child_in", "children_in", "drives_of", "open_drives", "used_by"]


@attrs.define
class Drive:
    """One time that a child was driven."""

    child_id: str
    subagent_id: str
    reservation: Reservation
    finished: SubagentFinished | None = None


def children_in(history: Iterable[Event]) -> frozenset[str]:
    """Ids of the runs that were announced."""
    return frozenset(event.child_id for event in history if isinstance(event, ChildStarted))


def child_in(subagent_id: str) -> str:
    """The child that an id of a drive names; empty for an id of a subagent."""
    return subagent_id.rpartition(":")[0]


def drives_of(history: Sequence[Event], child_id: str = "") -> list[Drive]:
    """How often children were driven, oldest first; with an id, that child alone."""
    known = children_in(history)
    drives: dict[str, Drive] = {}
    for event in history:
        if not isinstance(event, SubagentSpawned | SubagentFinished):
            continue
        child = child_in(event.subagent_id)
        if child not in known or (child_id and child != child_id):
            continue
        if isinstance(event, SubagentSpawned):
            held = event.reservation or Reservation(key="")
            drives[event.subagent_id] = Drive(child, event.subagent_id, held)
        elif event.subagent_id in drives:
            drives[event.subagent_id].finished = event
    return list(drives.values())


def open_drives(history: Sequence[Event]) -> list[Drive]:
    """Those without an end."""
    return [drive for drive in drives_of(history) if drive.finished is None]


def used_by(drives: Iterable[Drive]) -> Charge:
    """What a child was charged so far, as the workflow has it."""
    used = Charge()
    for drive in drives:
        if drive.finished is not None:
            used = plus(used, drive.finished.charge)
    return used
