"""A table from its JSON, as a recorded run brings it along: nothing about its shape is taken on trust."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator_states.checks import LifecycleError
from orchestrator_states.lifecycle import Lifecycle, Note, Row, name_of, names

__all__ = ["read_table"]


def read_table(data: Mapping[str, object]) -> Lifecycle:
    """Build the lifecycle that `Lifecycle.as_json` wrote; LifecycleError for any other shape."""
    try:
        return Lifecycle(
            name=text(data["name"]),
            states=names(map(text, listed(data["states"]))),
            initial=name_of(text(data["initial"])),
            resting=names(map(text, listed(data["resting"]))),
            rows=[row_of(table(row)) for row in listed(data["rows"])],
            notes=[note_of(table(each)) for each in listed(data["notes"])],
        )
    except (KeyError, TypeError) as error:
        raise LifecycleError(str(data.get("name", "?")), (f"malformed table: {error}",)) from error


def row_of(data: Mapping[str, object]) -> Row:
    """One move."""
    where = {text(name): value_of(value) for name, value in table(data["where"]).items()}
    return Row(text(data["event"]), names(map(text, listed(data["sources"]))), name_of(text(data["target"])), where)


def note_of(data: Mapping[str, object]) -> Note:
    """One note."""
    return Note(text(data["event"]), names(map(text, listed(data["states"]))))


def text(value: object) -> str:
    """A text, or TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, not {value!r:.60}")
    return value


def listed(value: object) -> list[object]:
    """A list, or TypeError."""
    if not isinstance(value, list):
        raise TypeError(f"expected a list, not {value!r:.60}")
    return value


def table(value: object) -> Mapping[str, object]:
    """A table, or TypeError."""
    if not isinstance(value, dict):
        raise TypeError(f"expected a table, not {value!r:.60}")
    return value


def value_of(value: object) -> str | int | bool:
    """What a field of an event may equal."""
    if not isinstance(value, str | int):
        raise TypeError(f"expected a text, a whole number or a truth value, not {value!r:.60}")
    return value
