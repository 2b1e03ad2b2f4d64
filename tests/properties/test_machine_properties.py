"""Any sequence of events: the machine stays in the table, and agrees with looking the table up by hand."""

from __future__ import annotations

from typing import Annotated, Any, get_args, get_origin, get_type_hints

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionResumed
from orchestrator_events.registry import event_class, event_names
from orchestrator_states import RUN, IllegalTransitionError, Lifecycle, machine_of


@attrs.define(eq=False)
class Walker:
    """A model that goes where it is told and remembers where it was told to go."""

    state: str
    told: list[str] = attrs.Factory(list[str])

    def moved(self, event: Event, target: str) -> None:  # noqa: ARG002  # the port's signature
        """Go to the target."""
        self.told.append(target)
        self.state = target


def sample(kind: type) -> Any:
    """Some value of a field's type; what it is does not matter to a table without conditions on it."""
    plain: dict[type, object] = {str: "", int: 1, bool: False, Blob: Blob(""), Budget: Budget()}
    if kind in plain:
        return plain[kind]
    if kind in (Charge, Reservation):
        return filled(kind)
    return () if get_origin(kind) is tuple else None


def filled(kind: type[Any], **given_fields: object) -> Any:
    """An attrs object with its required fields filled in."""
    hints = get_type_hints(kind, include_extras=True)
    needed = [field.name for field in attrs.fields(kind) if field.init and field.default is attrs.NOTHING]
    values = {name: sample(bare(hints[name])) for name in needed}
    return kind(**{**values, **given_fields})


def bare(hint: Any) -> Any:
    """A type without its annotation."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


EVENTS: tuple[Event, ...] = (
    *(filled(event_class(name)) for name in event_names()),
    *(ExecutionResumed(into=str(state)) for state in RUN.states),
)
STATES = tuple(str(state) for state in RUN.states)


def looked_up(table: Lifecycle, state: str, event: Event) -> str | None:
    """Where the table's rows and notes say that an event leads; None where they say nothing."""
    targets = [
        str(row.target)
        for row in table.rows
        if row.event == event.name
        and state in row.sources
        and all(getattr(event, name) == value for name, value in row.where.items())
    ]
    targets += [state for each in table.notes if each.event == event.name and state in each.states]
    assert len(targets) <= 1
    return targets[0] if targets else None


def fired(state: str, event: Event) -> str | None:
    """Where the machine leads; None where it refuses, having moved nothing."""
    walker = Walker(state)
    try:
        machine_of(RUN).fire(walker, event)
    except IllegalTransitionError:
        assert (walker.state, walker.told) == (state, [])
        return None
    assert walker.told == [walker.state]
    return walker.state


def test_machine_and_table_agree_everywhere() -> None:
    """For every state and every event there is, the machine does what reading the table says."""
    pairs = [(state, event) for state in STATES for event in EVENTS]
    assert [fired(state, event) for state, event in pairs] == [looked_up(RUN, state, event) for state, event in pairs]


@given(st.lists(st.sampled_from(EVENTS), max_size=60))
def test_any_sequence_of_events_stays_in_the_table(events: list[Event]) -> None:
    """Whatever is fired, the state is always one of the table's, and equals folding the table by hand."""
    walker = Walker(str(RUN.initial))
    by_hand = str(RUN.initial)
    for event in events:
        expected = looked_up(RUN, by_hand, event)
        if expected is None:
            with pytest.raises(IllegalTransitionError) as caught:
                machine_of(RUN).fire(walker, event)
            assert (caught.value.state, caught.value.allowed) == (by_hand, RUN.allowed(by_hand))
        else:
            machine_of(RUN).fire(walker, event)
            by_hand = expected
        assert walker.state == by_hand
    assert walker.state in STATES


@given(st.lists(st.sampled_from(EVENTS), max_size=60))
def test_a_passed_run_stays_passed(events: list[Event]) -> None:
    """No sequence of events leads out of `passed`."""
    walker = Walker("passed")
    for event in events:
        try:
            machine_of(RUN).fire(walker, event)
        except IllegalTransitionError:
            continue
    assert set(walker.told) <= {"passed"}
