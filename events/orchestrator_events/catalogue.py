"""The catalogue of events: what each one means, carries, and does in the lifecycles that know it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Annotated, Any, cast, get_args, get_origin, get_type_hints

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.event import Event, Gate
from orchestrator_events.registry import event_class, event_names

__all__ = ["Field", "Role", "as_markdown", "as_text", "fields_of", "value_classes"]

INTRODUCTION = """\
# Events

<!-- Written by `python -m orchestrator.catalogue`; a test compares it with the code. -->

A **fact** happened: it is recorded, then published, and cannot be refused. A **gate** is asked before an act,
or before a result is used; subscribers answer it with a decision, and the fact that follows carries what was
decided. A **live** event shows something under way to those who subscribed to it by name; it is never recorded.

In a lifecycle, a fact either **moves** the machine to another state or **notes** something where it stands. A
fact that is neither row nor note of the table is refused, and nothing moves. Times are whole microseconds,
money is whole millionths of the currency that the generator reports; a stored record holds no fraction.
"""


@attrs.frozen
class Role:
    """What an event does in one lifecycle; the caller, who knows the tables, says so."""

    event: str
    lifecycle: str
    moves: tuple[tuple[str, str], ...] = ()
    """Pairs of state and next state, in the order of the table."""
    notes: tuple[str, ...] = ()
    """States in which it is noted."""


@attrs.frozen
class Field:
    """One field of an event or of a value: its type in words, and its sentence."""

    name: str
    kind: str
    sentence: str


def as_markdown(roles: Iterable[Role]) -> str:
    """The whole catalogue as Markdown: an overview, each event with its fields, the values they hold."""
    known = tuple(roles)
    parts = [INTRODUCTION, *overview(known)]
    for name in event_names():
        parts += event_section(event_class(name), [role for role in known if role.event == name])
    parts.append("## Values\n")
    for value in value_classes():
        parts.append(f"### {value.__name__}\n\n{first_sentence(value)}\n")
        parts.append(field_table(fields_of(value)))
    return "\n".join(parts)


def as_text(roles: Iterable[Role]) -> str:
    """The overview as an aligned table for a terminal."""
    known = tuple(roles)
    rows = [("EVENT", "KIND", "LIFECYCLES", "MEANING")]
    for name in event_names():
        event = event_class(name)
        rows.append((name, event.kind, summary(name, known) or "-", first_sentence(event)))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ("  ".join([*map(str.ljust, row[:3], widths), row[3]]) for row in rows)
    return "\n".join(lines) + "\n"


def fields_of(value: type) -> tuple[Field, ...]:
    """The fields of an event or value class; one without a sentence has an empty one."""
    hints = get_type_hints(value, include_extras=True)
    found = []
    for field in attrs.fields(value):
        hint = hints[field.name]
        annotated = get_origin(hint) is Annotated
        inner, sentence = get_args(hint)[:2] if annotated else (hint, "")
        found.append(Field(field.name, in_words(inner), sentence))
    return tuple(found)


def value_classes() -> tuple[type, ...]:
    """The classes of values that events hold, by name, without blobs."""
    found: dict[str, type] = {}
    for name in event_names():
        for inner in inner_types(event_class(name)):
            if attrs.has(inner) and inner is not Blob:
                found[inner.__name__] = inner
    return tuple(found[name] for name in sorted(found))


def inner_types(value: type) -> Iterator[type]:
    """The plain classes in the types of a class's fields, however wrapped, and in the fields of those."""
    for field in attrs.fields(value):
        pending = [get_type_hints(value)[field.name]]
        while pending:
            hint = pending.pop()
            pending += get_args(hint)
            if isinstance(hint, type) and not get_args(hint):
                yield hint
                if attrs.has(hint) and hint is not Blob:
                    yield from inner_types(hint)


def overview(roles: tuple[Role, ...]) -> Iterator[str]:
    """The table of all events."""
    yield "| event | kind | lifecycles | meaning |\n|---|---|---|---|"
    for name in event_names():
        event = event_class(name)
        shown = summary(name, roles) or "-"
        yield f"| [`{name}`](#{anchor(name)}) | {event.kind} | {shown} | {first_sentence(event)} |"
    yield ""


def summary(name: str, roles: tuple[Role, ...]) -> str:
    """Which lifecycles know an event, and whether it moves or notes there."""
    known = [role for role in roles if role.event == name]
    return "; ".join(f"{role.lifecycle}: {' and '.join(doings(role))}" for role in known)


def doings(role: Role) -> Iterator[str]:
    """What an event does in a lifecycle, in words."""
    if role.moves:
        yield "moves"
    if role.notes:
        yield "notes"


def event_section(event: type[Event], roles: list[Role]) -> Iterator[str]:
    """One event: its meaning, its lifecycles, its fields."""
    yield f"## {event.name}\n\n{first_sentence(event)}\n"
    yield f"`{event.__name__}` in `{event.__module__}`, {event.kind}, version {event.version}.\n"
    if issubclass(event, Gate):
        changes = ", ".join(f"`{name}`" for name in event.modifiable) or "nothing"
        yield f"A decision may modify: {changes}.\n"
    for role in roles:
        yield "\n".join(role_lines(role)) + "\n"
    yield field_table(fields_of(event))


def role_lines(role: Role) -> Iterator[str]:
    """The moves and notes of an event in one lifecycle."""
    for source, target in role.moves:
        yield f"- {role.lifecycle}: `{source}` → `{target}`"
    if role.notes:
        yield f"- {role.lifecycle}: noted in {', '.join(f'`{state}`' for state in role.notes)}"


def field_table(fields: tuple[Field, ...]) -> str:
    """Fields as a Markdown table."""
    rows = "\n".join(f"| `{field.name}` | {field.kind} | {field.sentence} |" for field in fields)
    return f"| field | type | meaning |\n|---|---|---|\n{rows}\n"


def in_words(hint: Any) -> str:
    """A field's type for a reader who knows no Python."""
    if isinstance(hint, UnionType):
        return " or ".join(in_words(choice) for choice in get_args(hint))
    if get_origin(hint) is tuple:
        return f"list of {in_words(get_args(hint)[0])}"
    if hint in PLAIN:
        return PLAIN[hint]
    if issubclass(hint, StrEnum):
        return "one of " + ", ".join(f"`{choice}`" for choice in hint)
    return f"[{hint.__name__}](#{hint.__name__.lower()})"


PLAIN = {
    Blob: "text, stored by its SHA-256",
    NoneType: "none",
    bool: "true or false",
    float: "number",
    int: "whole number",
    str: "text",
}


def first_sentence(documented: type) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join(cleandoc(cast(str, documented.__doc__)).split("\n\n")[0].split())


def anchor(name: str) -> str:
    """The anchor that Markdown viewers give the heading of an event."""
    return name.replace(":", "")
