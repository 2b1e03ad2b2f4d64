"""The record codec: a record to the bytes that are hashed, and back, strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, get_args, get_type_hints

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.canonical import write_text, write_whole, writer
from orchestrator_events.errors import EventError
from orchestrator_events.event import Event
from orchestrator_events.record import Record
from orchestrator_events.registry import event_class
from orchestrator_events.verdict import CaseStatus

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["blobs_of", "decode", "encode"]


def encode(record: Record) -> bytes:
    """The record as compact JSON with sorted ASCII keys, UTF-8; equal to RFC 8785 since it holds no floats.

    Raises EventError for a value that is not of its field's type, and for a text with a lone surrogate, which
    no JSON reader would give back.
    """
    event = record.event
    write_event = writer(type(event))  # type: ignore[arg-type]  # mypy takes the hash of its instances for the class's
    try:
        return (
            f'{{"at":{write_whole(record.at)},"event":{write_event(event)}'
            f',"lifecycle":{write_text(record.lifecycle)},"name":{write_text(event.name)}'
            f',"run":{write_text(record.run_id)},"sequence":{write_whole(record.sequence)}'
            f',"source":{write_text(record.source)},"target":{write_text(record.target)}'
            f',"version":{event.version}}}'
        ).encode()
    except UnicodeEncodeError as error:
        raise EventError(
            f"{event.name} holds a lone surrogate at character {error.start}: decode text strictly"
        ) from error
    except (AttributeError, TypeError) as error:
        raise EventError(f"{event.name} holds a value that is not of its field's type: {error}") from error


def decode(body: bytes, blobs: Mapping[str, str] | None = None) -> Record:
    """The record that `encode` wrote; its blobs get their texts from `blobs` (digest to text).

    Raises EventError for an unknown event or version and for any field missing, extra or of another type.
    """
    try:
        data = json.loads(body)
        event_type = readable_class(data["name"], data["version"])
        event = converter().structure(data["event"], event_type)
        record = Record(
            run_id=text(data["run"]),
            sequence=whole(data["sequence"]),
            at=whole(data["at"]),
            lifecycle=text(data["lifecycle"]),
            source=text(data["source"]),
            target=text(data["target"]),
            event=event,
        )
    except EventError:
        raise
    except Exception as error:
        raise EventError(f"a stored record cannot be read: {type(error).__name__}: {error}") from error
    if encode(record) != body:
        raise EventError(f"a stored {event.name} is not as this release writes it: a field is missing or extra")
    if blobs:
        for blob in blobs_of(event):
            blob.text = blobs.get(blob.digest)
    return record


def blobs_of(event: Event) -> tuple[Blob, ...]:
    """The blobs an event names, for the journal to store beside it."""
    names = blob_fields(type(event))  # type: ignore[arg-type]  # as above
    if not names:
        return ()
    found: list[Blob] = []
    for name in names:
        held = getattr(event, name)
        if type(held) is tuple:
            found += held
        elif held is not None:
            found.append(held)
    return tuple(found)


def readable_class(name: str, version: int) -> type[Event]:
    """The class behind a wire name, if this release reads that version of it."""
    found = event_class(name)
    if whole(version) != found.version:
        raise EventError(f"{name} has version {version}; this release reads {found.version}")
    return found


@cache
def blob_fields(event_type: type[Event]) -> tuple[str, ...]:
    """Names of the fields that hold a blob, or several."""
    hints = get_type_hints(event_type)
    return tuple(name for name, hint in hints.items() if hint is Blob or Blob in get_args(hint))


@cache
def converter() -> Converter:
    """The one cattrs converter for records: fast, no coercion, no unknown fields."""
    from cattrs import Converter

    made = Converter(detailed_validation=False, forbid_extra_keys=True)
    for primitive, check in ((int, whole), (str, text), (bool, truth)):
        made.register_structure_hook(primitive, lambda value, _, check=check: check(value))
    made.register_structure_hook(CaseStatus, lambda value, _: CaseStatus(value))
    made.register_structure_hook(Blob, lambda data, _: Blob(None, text(data["sha256"]), whole(data["bytes"])))
    made.register_structure_hook(Budget, lambda data, _: budget_from_data(data))
    return made


def budget_from_data(data: dict[str, int | None]) -> Budget:
    """The budget that `write_budget` wrote."""
    limits = dict(data)
    time_us = limits.pop("time_us")
    return Budget(seconds=None if time_us is None else time_us / 1_000_000, **limits)


def whole(value: object) -> int:
    """An int that is not a bool, or TypeError."""
    if type(value) is not int:
        raise TypeError(f"expected a whole number, not {value!r:.80}")
    return value


def text(value: object) -> str:
    """A str, or TypeError."""
    if not isinstance(value, str):
        raise TypeError(f"expected a text, not {value!r:.80}")
    return value


def truth(value: object) -> bool:
    """A bool, or TypeError."""
    if not isinstance(value, bool):
        raise TypeError(f"expected true or false, not {value!r:.80}")
    return value
