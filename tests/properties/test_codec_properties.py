"""The record codec: bytes equal to RFC 8785, back to an equal record, and nothing else taken for one."""

from __future__ import annotations

import json
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ClassVar, get_args, get_origin, get_type_hints

import attrs
import pytest
import rfc8785
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget, Charge
from orchestrator_events.canonical import writer
from orchestrator_events.codec import blobs_of, decode, encode
from orchestrator_events.errors import EventError
from orchestrator_events.event import Event, Fact
from orchestrator_events.record import Record
from orchestrator_events.registry import event_class, event_names
from orchestrator_events.run import AttemptFailed, CandidateGenerated
from orchestrator_events.verdict import CaseResult, CaseStatus

unhurried = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine fails no property."""

EXACT = 2**53 - 1
"""Largest whole number that RFC 8785 can write."""

whole_numbers = some.integers(-EXACT, EXACT)
texts = some.text()
limits = some.none() | some.integers(1, EXACT)
budgets = some.builds(
    Budget,
    attempts=some.integers(1, EXACT),
    seconds=some.none() | some.integers(1, 10**12).map(lambda us: us / 1_000_000),
    tokens=limits,
    input_tokens=limits,
    output_tokens=limits,
    money_micro=limits,
    repeats=limits,
)


def values(declared: Any) -> some.SearchStrategy[Any]:
    """Values of a declared type, found without the codec's own reading of it."""
    if get_origin(declared) is Annotated:
        return values(get_args(declared)[0])
    if get_origin(declared) is UnionType:
        return some.one_of(*map(values, get_args(declared)))
    if get_origin(declared) is tuple:
        return some.lists(values(get_args(declared)[0]), max_size=4).map(tuple)
    known: dict[Any, some.SearchStrategy[Any]] = {
        int: whole_numbers,
        str: texts,
        bool: some.booleans(),
        Blob: texts.map(Blob),
        Budget: budgets,
        NoneType: some.none(),
    }
    if declared in known:
        return known[declared]
    return some.sampled_from(declared) if issubclass(declared, Enum) else instances(declared)


def instances(declared: type[Any]) -> some.SearchStrategy[Any]:
    """Instances of an attrs class."""
    hints = get_type_hints(declared, include_extras=True)
    fields = {field.name: values(hints[field.name]) for field in attrs.fields(declared)}
    return some.builds(declared, **fields)


events = some.sampled_from(event_names()).flatmap(lambda name: instances(event_class(name)))
records = some.builds(
    Record,
    run_id=texts,
    sequence=some.integers(1, EXACT),
    at=some.integers(0, EXACT),
    lifecycle=texts,
    source=texts,
    target=texts,
    event=events,
)


@unhurried
@given(record=records)
def test_bytes_equal_rfc_8785(record: Record) -> None:
    """The bytes that are hashed are RFC 8785 of the record's plain data."""
    data = {
        "at": record.at,
        "event": plain(record.event),
        "lifecycle": record.lifecycle,
        "name": record.event.name,
        "run": record.run_id,
        "sequence": record.sequence,
        "source": record.source,
        "target": record.target,
        "version": record.event.version,
    }
    assert encode(record) == rfc8785.dumps(data)


@unhurried
@given(record=records)
def test_decode_gives_the_record_back(record: Record) -> None:
    """Encoding loses nothing: with its texts at hand the same record comes back."""
    found = {blob.digest: blob.data.decode() for blob in blobs_of(record.event)}
    assert decode(encode(record), found) == record


@unhurried
@given(record=records)
def test_a_record_without_its_texts_keeps_their_digests(record: Record) -> None:
    """A record read alone encodes to the same bytes, so that a chain can be checked without the texts."""
    assert encode(decode(encode(record))) == encode(record)


@unhurried
@given(record=records, data=some.data())
def test_a_missing_field_is_refused(record: Record, data: some.DataObject) -> None:
    """A record that lacks any field, one with a default included, is refused."""
    body = json.loads(encode(record))
    place = data.draw(some.sampled_from([body, body["event"]] if body["event"] else [body]))
    del place[data.draw(some.sampled_from(sorted(place)))]
    with pytest.raises(EventError):
        decode(rfc8785.dumps(body))


@unhurried
@given(record=records, is_inner=some.booleans(), name=texts, value=whole_numbers | texts)
def test_an_unknown_field_is_refused(record: Record, is_inner: bool, name: str, value: int | str) -> None:
    """A record with a field more, in the envelope or the event, is refused."""
    body = json.loads(encode(record))
    place = body["event"] if is_inner else body
    if name not in place:
        place[name] = value
        with pytest.raises(EventError):
            decode(rfc8785.dumps(body))


@unhurried
@given(record=records, data=some.data())
def test_a_value_of_another_type_is_refused(record: Record, data: some.DataObject) -> None:
    """Whole numbers, texts and truths are not taken for each other."""
    body = json.loads(encode(record))
    place = data.draw(some.sampled_from([part for part in (body, body["event"]) if scalars(part)]))
    name = data.draw(some.sampled_from(scalars(place)))
    every: tuple[object, ...] = (True, 1, 1.5, "1", [], {})
    others = [value for value in every if type(value) is not type(place[name])]
    place[name] = data.draw(some.sampled_from(others))
    with pytest.raises(EventError):
        decode(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


@unhurried
@given(record=records)
def test_other_spellings_are_refused(record: Record) -> None:
    """The same data with spaces, or with its keys in another order, is not what was hashed: refused."""
    body = json.loads(encode(record))
    spellings = [
        json.dumps(body, sort_keys=True, ensure_ascii=False),
        json.dumps(dict(reversed(body.items())), separators=(",", ":"), ensure_ascii=False),
    ]
    for spelling in spellings:
        with pytest.raises(EventError, match="not as this release writes it"):
            decode(spelling.encode())


@pytest.mark.parametrize("name", event_names())
def test_every_event_can_be_written(name: str) -> None:
    """Each class of the catalogue has only fields that records can hold."""
    event_type: Any = event_class(name)
    assert callable(writer(event_type))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "cannot be read"),
        (b"[]", "cannot be read"),
        (b"\xff", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b'{"name":"no:such","version":1}', "unknown event 'no:such'"),
        (b'{"name":"attempt:failed","version":2}', "attempt:failed has version 2; this release reads 1"),
        (b'{"name":"attempt:failed","version":true}', "cannot be read"),
    ],
)
def test_what_is_no_record_is_refused(body: bytes, message: str) -> None:
    """Anything but a record of a known event and version raises EventError with the reason."""
    with pytest.raises(EventError, match=message):
        decode(body)


@pytest.mark.parametrize(
    "event",
    [
        AttemptFailed(attempt=1.5, stage="evaluation"),  # type: ignore[arg-type]  # the point of the test
        AttemptFailed(attempt=1, stage=None),  # type: ignore[arg-type]  # the point of the test
        AttemptFailed(attempt=1, stage="evaluation", failing=(None,)),  # type: ignore[arg-type]  # the point of the test
        AttemptFailed(attempt=1, stage="evaluation", charge=Charge(estimated="yes")),  # type: ignore[arg-type]  # the point of the test
        AttemptFailed(attempt=1, stage="evaluation", failing=(CaseResult("a", CaseStatus.FAILED, "\udc80"),)),
        CandidateGenerated(attempt=1, key="", candidate=Blob("\ud800"), form="text", charge=Charge(), duration_us=1),
    ],
)
def test_what_cannot_be_read_back_is_not_written(event: Event) -> None:
    """A value that is not of its field's type, or a text with a lone surrogate, is refused when encoding."""
    with pytest.raises(EventError, match=r"not of its field's type|lone surrogate"):
        encode(Record("run", 1, 0, "run", "ready", "ready", event))


@attrs.frozen(kw_only=True)
class Floating(Fact):
    """An event that no record may hold."""

    name: ClassVar[str] = "floating"
    amount: float


def test_an_event_with_a_float_is_refused() -> None:
    """A class with a field that has no one spelling in JSON is refused, with the types that are allowed."""
    with pytest.raises(EventError, match="records cannot hold <class 'float'>: declare str, int, bool"):
        encode(Record("run", 1, 0, "run", "ready", "ready", Floating(amount=1.5)))


def plain(value: Any) -> Any:
    """A value as plain data, by hand."""
    if isinstance(value, Blob):
        return {"bytes": len(value.data), "sha256": value.digest}
    if isinstance(value, Budget):
        data = attrs.asdict(value)
        seconds = data.pop("seconds")
        return data | {"time_us": None if seconds is None else round(seconds * 1_000_000)}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if attrs.has(type(value)):
        return {field.name: plain(getattr(value, field.name)) for field in attrs.fields(type(value))}
    return value


def scalars(part: dict[str, object]) -> list[str]:
    """Names of the fields that hold a number, a text or a truth."""
    return [name for name, value in part.items() if isinstance(value, int | str)]
