"""The table form: a lifecycle is a literal table of rows (state, event, next state) and of notes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cached_property
from hashlib import sha256
from typing import NewType

import attrs

from orchestrator_events.event import Event
from orchestrator_states.checks import check_table

__all__ = ["Lifecycle", "Note", "Row", "StateName", "note", "on"]

StateName = NewType("StateName", str)


@attrs.frozen
class Row:
    """One move: in any of `sources`, `event` leads to `target`, if its own fields equal `where`."""

    event: str
    sources: tuple[StateName, ...]
    target: StateName
    where: Mapping[str, str | int | bool] = attrs.field(factory=dict)


@attrs.frozen
class Note:
    """An event that is recorded and published in `states` without moving the machine."""

    event: str
    states: tuple[StateName, ...]


def on(
    event: type[Event],
    sources: str | Iterable[str],
    target: str,
    where: Mapping[str, str | int | bool] | None = None,
) -> Row:
    """A row of a table: the event is the trigger."""
    return Row(event.name, names(sources), StateName(str(target)), dict(where or {}))


def note(event: type[Event], states: str | Iterable[str]) -> Note:
    """A note of a table."""
    return Note(event.name, names(states))


def names(states: str | Iterable[str]) -> tuple[StateName, ...]:
    """One state or several, as plain names."""
    listed = [states] if isinstance(states, str) else states
    return tuple(StateName(str(state)) for state in listed)


def name_of(state: str) -> StateName:
    """One state as a plain name."""
    return StateName(str(state))


@attrs.frozen(kw_only=True)
class Lifecycle:
    """A state machine as data: (state, event) alone decides, and the table says all there is.

    `resting` are the states a run may stay in for good. Building refuses rows that can both match, states
    that nothing reaches and open states that lead to no resting one, with every fault in one LifecycleError.
    """

    name: str
    states: tuple[StateName, ...] = attrs.field(converter=names)
    initial: StateName = attrs.field(converter=name_of)
    resting: tuple[StateName, ...] = attrs.field(converter=names)
    rows: tuple[Row, ...] = attrs.field(converter=tuple[Row, ...])
    notes: tuple[Note, ...] = attrs.field(converter=tuple[Note, ...], default=())

    def __attrs_post_init__(self) -> None:
        check_table(self)

    @cached_property
    def digest(self) -> str:
        """Lower-case hexadecimal SHA-256 of the table as compact JSON with sorted keys."""
        compact = json.dumps(self.as_json(), sort_keys=True, separators=(",", ":"))
        return sha256(compact.encode()).hexdigest()

    def as_json(self) -> dict[str, object]:
        """The table as plain data: what exports carry and `from_json` reads."""
        return {
            "name": self.name,
            "initial": self.initial,
            "states": list(self.states),
            "resting": list(self.resting),
            "rows": [
                {
                    "event": row.event,
                    "sources": list(row.sources),
                    "target": row.target,
                    "where": dict(row.where),
                }
                for row in self.rows
            ],
            "notes": [{"event": each.event, "states": list(each.states)} for each in self.notes],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, object]) -> Lifecycle:
        """The lifecycle that `as_json` wrote; raises LifecycleError for a malformed table."""
        from orchestrator_states.reading import read_table

        return read_table(data)

    def allowed(self, state: str) -> tuple[str, ...]:
        """Wire names of the events that move or note in this state, sorted."""
        moving = {row.event for row in self.rows if state in row.sources}
        noting = {each.event for each in self.notes if state in each.states}
        return tuple(sorted(moving | noting))
