"""What every picture of a lifecycle draws: states, groups of states that move alike, and labelled arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from json import dumps
from typing import NamedTuple

import attrs

from orchestrator_states.lifecycle import Lifecycle, Row, StateName

__all__ = ["Arrow", "Graph", "Group", "Label", "Move", "graph_of", "note_lines", "row_text"]

SMALLEST_GROUP = 3
LEAST_SAVING = 3


class Move(NamedTuple):
    """One (state, event, next state) of the table."""

    source: str
    event: str
    target: str


@attrs.frozen
class Label:
    """One line on an arrow, and the moves of the table that it stands for."""

    text: str
    event: str
    moves: tuple[Move, ...]


@attrs.frozen
class Group:
    """States that several rows treat alike; an arrow at the group holds for each of them."""

    name: str
    title: str
    states: tuple[StateName, ...]


@attrs.frozen
class Arrow:
    """From a state or group to a state or group; `source` and `target` are their names."""

    source: str
    target: str
    labels: tuple[Label, ...]


@attrs.frozen
class Graph:
    """A lifecycle, ready to be drawn."""

    lifecycle: Lifecycle
    groups: tuple[Group, ...]
    arrows: tuple[Arrow, ...]

    def group_of(self, state: str) -> Group | None:
        """The group a state is in; groups never overlap."""
        return next((group for group in self.groups if state in group.states), None)

    def members(self, element: str) -> tuple[str, ...]:
        """The states behind the name of a state or group."""
        return next((group.states for group in self.groups if group.name == element), (element,))


def graph_of(lifecycle: Lifecycle) -> Graph:
    """The groups and arrows of a table: rows that go the same way share an arrow, in table order."""
    groups = chosen_groups(lifecycle)
    labels: dict[tuple[str, str], list[Label]] = {}
    for rows in bundles(lifecycle):
        for source, target, label in drawn(rows, groups):
            labels.setdefault((source, target), []).append(label)
    arrows = tuple(Arrow(source, target, tuple(lines)) for (source, target), lines in labels.items())
    return Graph(lifecycle, groups, arrows)


def row_text(row: Row) -> str:
    """An event with the conditions of its row, values as JSON would write them, text without its quotes."""
    values = {name: value if isinstance(value, str) else dumps(value) for name, value in row.where.items()}
    conditions = ", ".join(f"{name}={value}" for name, value in sorted(values.items()))
    return f"{row.event} [{conditions}]" if conditions else row.event


def note_lines(lifecycle: Lifecycle) -> list[str]:
    """What is noted where, one line per set of states, for a comment in an export."""
    found: dict[tuple[StateName, ...], list[str]] = {}
    for each in lifecycle.notes:
        found.setdefault(each.states, []).append(each.event)
    return [f"noted in {', '.join(states)}: {', '.join(events)}" for states, events in found.items()]


def chosen_groups(lifecycle: Lifecycle) -> tuple[Group, ...]:
    """Disjoint sets of states that spare the most arrows, the most sparing first."""
    candidates = {ordered(lifecycle, row.sources) for row in lifecycle.rows}
    candidates |= {ordered(lifecycle, [row.target for row in rows]) for rows in bundles(lifecycle)}
    rank = {state: index for index, state in enumerate(lifecycle.states)}
    large = [states for states in candidates if len(states) >= SMALLEST_GROUP]
    large.sort(key=lambda states: (-saving(lifecycle, states), [rank[state] for state in states]))
    taken: list[tuple[StateName, ...]] = []
    for states in large:
        if saving(lifecycle, states) >= LEAST_SAVING and not any(set(states) & set(other) for other in taken):
            taken.append(states)
    titles = titled(lifecycle, taken)
    return tuple(
        Group(f"group_{number}", title, states)
        for number, (title, states) in enumerate(zip(titles, taken, strict=True), 1)
    )


def saving(lifecycle: Lifecycle, states: Sequence[str]) -> int:
    """How many arrows fewer there are when these states are one group."""
    return sum(len(states) - 1 for row in lifecycle.rows if set(states) <= set(row.sources))


def titled(lifecycle: Lifecycle, taken: Sequence[Sequence[str]]) -> Iterator[str]:
    """What to call each group: by what its states have in common."""
    for states in taken:
        others = [other for other in taken if other is not states]
        resting = set(lifecycle.resting)
        if not resting & set(states):
            yield "any working state" if all(set(other) & resting for other in others) else "any of these"
        elif set(states) <= resting and not any(set(other) <= resting for other in others):
            yield "any of these ends"
        else:
            yield "any of these"


def bundles(lifecycle: Lifecycle) -> list[tuple[Row, ...]]:
    """Rows of one event and the same sources, which differ in `where` and target only."""
    found: dict[tuple[str, tuple[StateName, ...]], list[Row]] = {}
    for row in lifecycle.rows:
        found.setdefault((row.event, row.sources), []).append(row)
    return [tuple(rows) for rows in found.values()]


def drawn(rows: tuple[Row, ...], groups: tuple[Group, ...]) -> Iterator[tuple[str, str, Label]]:
    """The arrows of a bundle: to a whole group where the rows cover it, to single states otherwise."""
    left = list(rows)
    for group in groups:
        covering = [row for row in left if row.target in group.states]
        if len(rows) > 1 and {row.target for row in covering} == set(group.states):
            left = [row for row in left if row not in covering]
            fields = sorted({name for row in covering for name in row.where})
            text = f"{rows[0].event} [{', '.join(fields)}]"
            for source, states in spans(rows[0].sources, groups):
                moves = tuple(Move(state, row.event, row.target) for row in covering for state in states)
                yield source, group.name, Label(text, rows[0].event, moves)
    for row in left:
        text = row_text(row)
        for source, states in spans(row.sources, groups):
            yield (
                source,
                row.target,
                Label(text, row.event, tuple(Move(each, row.event, row.target) for each in states)),
            )


def spans(states: Sequence[StateName], groups: tuple[Group, ...]) -> Iterator[tuple[str, tuple[StateName, ...]]]:
    """The groups that lie wholly within `states`, then the states left over, with what each stands for."""
    whole = [group for group in groups if set(group.states) <= set(states)]
    yield from ((group.name, group.states) for group in whole)
    grouped = {state for group in whole for state in group.states}
    yield from ((state, (state,)) for state in states if state not in grouped)


def ordered(lifecycle: Lifecycle, states: Sequence[StateName]) -> tuple[StateName, ...]:
    """A set of states in the table's order."""
    return tuple(state for state in lifecycle.states if state in states)
