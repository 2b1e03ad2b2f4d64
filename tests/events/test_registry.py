"""The registry: every event is found by its wire name, and none is left out."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import attrs
import pytest

import orchestrator_events
from orchestrator_events import Event, EventError, Fact, Gate, Live, event_class, event_names
from orchestrator_events.registry import REGISTRY


def declared_events() -> list[type[Event]]:
    """Every event class that any module of the package defines."""
    found = []
    for module_info in pkgutil.walk_packages(orchestrator_events.__path__, "orchestrator_events."):
        module = import_module(module_info.name)
        for value in vars(module).values():
            is_event = isinstance(value, type) and issubclass(value, Event) and value not in {Event, Fact, Gate, Live}
            if is_event and value.__module__ == module.__name__:
                found.append(value)
    return found


def test_the_registry_holds_exactly_the_declared_events() -> None:
    """A class that is not registered could be written and never read."""
    declared = {event.name: f"{event.__module__}:{event.__name__}" for event in declared_events()}
    assert declared == REGISTRY


def test_wire_names_are_unique() -> None:
    """Two classes under one name would make a journal ambiguous."""
    names = [event.name for event in declared_events()]
    assert sorted(names) == sorted(set(names))


@pytest.mark.parametrize("name", event_names())
def test_every_event_loads_and_is_well_formed(name: str) -> None:
    """Each is a frozen, slotted, keyword-only value with a wire name, a version from 1 and a kind."""
    event = event_class(name)
    assert event.name == name
    assert re.fullmatch(r"[a-z_]+:[a-z_]+", name)
    assert type(event.version) is int
    assert event.version >= 1
    kinds = [kind.__name__.lower() for kind in (Fact, Gate, Live) if issubclass(event, kind)]
    assert [event.kind] == kinds
    assert "__dict__" not in dir(event)
    assert all(field.kw_only for field in attrs.fields(event))


def test_what_a_gate_lets_change_are_fields_of_it() -> None:
    """A modifiable field that does not exist could never be changed."""
    gates = [event for event in declared_events() if issubclass(event, Gate)]
    unknown = [(gate.name, name) for gate in gates for name in gate.modifiable if name not in attrs.fields_dict(gate)]
    assert unknown == []


def test_an_unknown_name_is_an_error_that_says_why() -> None:
    """A journal of a newer release is refused, not guessed at."""
    with pytest.raises(EventError, match="unknown event 'no:such': the record comes from a newer release"):
        event_class("no:such")
