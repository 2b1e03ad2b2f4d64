"""What building a lifecycle refuses: ambiguity, states that nothing reaches, states that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from orchestrator_events.errors import EventError, StateError
from orchestrator_events.registry import event_class

if TYPE_CHECKING:
    from orchestrator_states.lifecycle import Lifecycle, Row

__all__ = ["LifecycleError", "check_table"]


class LifecycleError(StateError):
    """A table is malformed; `faults` lists everything that is wrong with it."""

    def __init__(self, lifecycle: str, faults: tuple[str, ...]) -> None:
        self.lifecycle = lifecycle
        self.faults = faults
        super().__init__(f"lifecycle {lifecycle!r}: " + "; ".join(faults))


def check_table(table: Lifecycle) -> None:
    """Raise LifecycleError with every fault of a table, or return."""
    faults = (*unknown_names(table), *ambiguities(table), *dead_ends(table))
    if faults:
        raise LifecycleError(table.name, faults)


def unknown_names(table: Lifecycle) -> Iterator[str]:
    """States, events and fields that a row or note names and nobody declares."""
    if len(set(table.states)) != len(table.states):
        yield "a state is declared twice"
    declared = set(table.states)
    named = [("initial", table.initial), *(("resting", state) for state in table.resting)]
    for row in table.rows:
        named += [(f"row {row.event}", state) for state in (*row.sources, row.target)]
    for each in table.notes:
        named += [(f"note {each.event}", state) for state in each.states]
    for place, state in named:
        if state not in declared:
            yield f"{place} names the unknown state {state!r}"
    for row in table.rows:
        yield from unknown_fields(row)


def unknown_fields(row: Row) -> Iterator[str]:
    """Fields of `where` that the event does not have, and an event that nobody registered."""
    try:
        event = event_class(row.event)
    except EventError as error:
        yield str(error)
        return
    for name in row.where:
        if name not in {field.name for field in event.__attrs_attrs__}:
            yield f"row {row.event} asks for the field {name!r}, which the event does not have"


def ambiguities(table: Lifecycle) -> Iterator[str]:
    """Pairs that both match: two rows, or a row and a note, of one event in one state."""
    for one, other in combinations(table.rows, 2):
        shared = set(one.sources) & set(other.sources)
        differ = any(other.where.get(name, value) != value for name, value in one.where.items())
        if one.event == other.event and shared and not differ:
            yield f"two rows of {one.event} both match in {', '.join(sorted(shared))}"
    noted = [(each.event, state) for each in table.notes for state in each.states]
    moved = {(row.event, state) for row in table.rows for state in row.sources}
    for event, state in noted:
        if (event, state) in moved:
            yield f"{event} both moves and notes in {state}"
    if len(set(noted)) != len(noted):
        yield "an event is noted twice in one state"


def dead_ends(table: Lifecycle) -> Iterator[str]:
    """States out of reach of the initial one, and open states from which no resting one can be reached."""
    steps = [(source, row.target) for row in table.rows for source in row.sources]
    reached = closure([table.initial], steps)
    for state in table.states:
        if state not in reached:
            yield f"nothing leads to {state}"
    can_rest = closure(table.resting, [(target, source) for source, target in steps])
    for state in table.states:
        if state not in can_rest:
            yield f"{state} leads to no resting state"


def closure(starts: Iterable[str], steps: Sequence[tuple[str, str]]) -> set[str]:
    """Every state that can be reached from `starts`."""
    found = set(starts)
    frontier = list(found)
    while frontier:
        here = frontier.pop()
        for source, target in steps:
            if source == here and target not in found:
                found.add(target)
                frontier.append(target)
    return found
