"""Runs a table with `transitions`: one shared machine per table, models never registered with it.

This is the only module that imports transitions. Its stock objects copy arguments, log each step and walk six
callback lists at every trigger; the lean subclasses below do the two things a table needs: find the row of
(state, event) and hand the move to the model. What runs is the Machine that transitions built, so what is drawn
from the table is what runs. A dispatch table of our own beside it was rejected: it would be a second truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol, cast

from transitions.core import Event as TransitionsEvent
from transitions.core import Machine, Transition

from orchestrator_events.errors import StateError
from orchestrator_events.event import Event
from orchestrator_states.lifecycle import Lifecycle

__all__ = ["IllegalTransitionError", "Model", "machine_of"]


class IllegalTransitionError(StateError):
    """An event was fired in a state whose table has neither row nor note for it; nothing moved."""

    def __init__(self, lifecycle: str, state: str, event: Event, allowed: tuple[str, ...]) -> None:
        self.lifecycle = lifecycle
        self.state = state
        self.event = event
        self.allowed = allowed
        super().__init__(
            f"{lifecycle}: {event.name} is illegal in state {state!r}; allowed there: {', '.join(allowed) or 'nothing'}"
        )


class Model(Protocol):
    """Whatever has a state that events move; a run of ours, or a fold in an audit."""

    state: str

    def moved(self, event: Event, target: str) -> None:
        """The table allows the event: apply it, ending in `target` (the same state for a note)."""
        ...


class TableTransition(Transition):
    """A row or note: matches when the event's own fields equal `where`."""

    def __init__(self, *arguments: Any, where: Mapping[str, object] | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.where = tuple((where or {}).items())

    def fits(self, event: Event) -> bool:
        """Whether the event's fields are those of this row."""
        return all(getattr(event, name) == value for name, value in self.where)


class TableEvent(TransitionsEvent):
    """A trigger: finds the row of a state and an event, or refuses."""

    machine: TableMachine

    def trigger(self, model: Model, event: Event) -> bool:  # type: ignore[override]  # packing arguments costs
        """Apply an event to the model; raises IllegalTransitionError, with nothing moved, where it is illegal."""
        model.moved(event, self.target(model.state, event))
        return True

    def target(self, state: str, event: Event) -> str:
        """The state that the event leads to, the same for a note; IllegalTransitionError when it is illegal."""
        transition: TableTransition
        for transition in self.transitions.get(state, ()):  # type: ignore[assignment]  # as transition_cls made them
            if not transition.where or transition.fits(event):
                return transition.dest or state
        return self.machine.refuse(state, event)


class TableMachine(Machine):
    """The machine of one table."""

    transition_cls = TableTransition
    event_cls = TableEvent

    def __init__(self, table: Lifecycle) -> None:
        self.table = table
        super().__init__(
            None, states=list(table.states), initial=table.initial, auto_transitions=False, send_event=True
        )
        for row in table.rows:
            self.add_transition(row.event, list(row.sources), row.target, where=row.where)
        for each in table.notes:
            self.add_transition(each.event, list(each.states), None)
        self.triggers = cast(dict[str, TableEvent], dict(self.events))  # as event_cls made them

    def fire(self, model: Model, event: Event) -> None:
        """Fire an event at a model; IllegalTransitionError when neither row nor note allows it."""
        model.moved(event, self.target(model.state, event))

    def target(self, state: str, event: Event) -> str:
        """The state that the event leads to, the same for a note; IllegalTransitionError when it is illegal."""
        trigger = self.triggers.get(event.name)
        if trigger is None:
            self.refuse(state, event)
        return trigger.target(state, event)

    def refuse(self, state: str, event: Event) -> NoReturn:
        """Raise IllegalTransitionError, naming what is allowed in the state."""
        raise IllegalTransitionError(self.table.name, state, event, self.table.allowed(state))


_MACHINES: dict[str, TableMachine] = {}
"""By table digest: equal tables share one, whichever object holds them."""


def machine_of(table: Lifecycle) -> TableMachine:
    """The one shared machine of a table, built at first use."""
    if table.digest not in _MACHINES:
        _MACHINES[table.digest] = TableMachine(table)
    return _MACHINES[table.digest]
