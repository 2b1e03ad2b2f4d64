"""The codec: a record to bytes and back, strictly."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator_events import (
    AttemptFailed,
    Blob,
    Budget,
    BudgetExhausted,
    BudgetRaised,
    CandidateGenerated,
    CaseResult,
    CaseStatus,
    Charge,
    DecisionTaken,
    Event,
    EventError,
    GenerationStarted,
    Record,
    Reservation,
)
from orchestrator_events.codec import blobs_of, decode, encode

MakeRecord = Callable[..., Record]

EXAMPLES: tuple[Event, ...] = (
    BudgetExhausted(limit="tokens", detail="größer ✓"),
    BudgetRaised(budget=Budget(attempts=None, seconds=1.5, tokens=10)),
    AttemptFailed(
        attempt=1,
        stage="evaluation",
        failing=(CaseResult("t::a", CaseStatus.TIMED_OUT, "slow", "critical"),),
        passed=("t::b",),
    ),
    AttemptFailed(attempt=1, stage="generation", error="boom", key="k", charge=Charge(input_tokens=3)),
    GenerationStarted(
        attempt=2,
        parameters="{}",
        reservation=Reservation(key="k", output_tokens=None),
        prompt=Blob("prompt"),
        decisions=(DecisionTaken("rules", "modify", "prompt"),),
    ),
)


@pytest.mark.parametrize("event", EXAMPLES)
def test_a_record_comes_back_as_it_was(event: Event, record: MakeRecord) -> None:
    """Nested values, enums, absent values and texts beside the record survive the round trip."""
    written = record(event, at=5)
    blobs = {blob.digest: blob.text or "" for blob in blobs_of(event)}
    read = decode(encode(written), blobs)
    assert read == written
    assert encode(read) == encode(written)


def test_the_bytes_are_compact_sorted_utf8_json(record: MakeRecord) -> None:
    """Every reader computes the same bytes from the same record."""
    body = encode(record(EXAMPLES[0], at=5))
    expected = (
        '{"at":5,"event":{"detail":"größer ✓","limit":"tokens"},"lifecycle":"run","name":"budget:exhausted",'
        '"run":"r1","sequence":1,"source":"evaluating","target":"evaluating","version":1}'
    )
    assert body == expected.encode()


def test_a_blob_is_stored_by_size_and_digest(record: MakeRecord) -> None:
    """The text is not in the record; the journal keeps it beside."""
    blob = Blob("x" * 500)
    event = CandidateGenerated(attempt=1, key="k", candidate=blob, form="text", charge=Charge(), duration_us=1)
    stored = json.loads(encode(record(event)))["event"]["candidate"]
    assert (stored, blobs_of(event)) == ({"bytes": 500, "sha256": blob.digest}, (blob,))


@pytest.mark.parametrize("place", ["a field", "a blob"])
def test_a_lone_surrogate_is_refused(place: str, record: MakeRecord) -> None:
    """No JSON reader would give it back, so it is not written."""
    text = "x\ud800"
    event: Event = BudgetExhausted(limit="tokens", detail=text)
    if place == "a blob":
        event = CandidateGenerated(
            attempt=1, key="k", candidate=Blob(text), form="text", charge=Charge(), duration_us=1
        )
    with pytest.raises(EventError, match="lone surrogate"):
        encode(record(event))


def no_limit(data: dict[str, Any]) -> None:
    """Drop a field of the event."""
    del data["event"]["limit"]


def extra_field(data: dict[str, Any]) -> None:
    """Add a field to the event."""
    data["event"]["more"] = 1


def other_version(data: dict[str, Any]) -> None:
    """Claim a version of the future."""
    data["version"] = 99


def unknown_name(data: dict[str, Any]) -> None:
    """Claim an event of the future."""
    data["name"] = "no:such"


def number_for_text(data: dict[str, Any]) -> None:
    """Put a number where a text belongs."""
    data["event"]["limit"] = 7


def truth_for_number(data: dict[str, Any]) -> None:
    """Put a boolean where a number belongs."""
    data["sequence"] = True


def no_stamp(data: dict[str, Any]) -> None:
    """Drop a field of the record."""
    del data["at"]


@pytest.mark.parametrize(
    "damage",
    [no_limit, extra_field, other_version, unknown_name, number_for_text, truth_for_number, no_stamp],
)
def test_a_damaged_record_is_refused(damage: Callable[[dict[str, Any]], None], record: MakeRecord) -> None:
    """Nothing is guessed, coerced or ignored."""
    data = json.loads(encode(record(EXAMPLES[0])))
    damage(data)
    with pytest.raises(EventError):
        decode(json.dumps(data).encode())


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff"])
def test_what_is_no_record_is_refused(body: bytes) -> None:
    """Bytes that are no JSON object are an EventError like any other damage."""
    with pytest.raises(EventError):
        decode(body)


def test_a_status_is_read_back_as_a_status(record: Callable[..., Record]) -> None:
    """An enum stays one, though it equals its text; a word that is none is refused."""
    failed = AttemptFailed(attempt=1, stage="evaluation", failing=(CaseResult("a", CaseStatus.TIMED_OUT),))
    body = encode(record(failed))
    event = decode(body).event
    assert isinstance(event, AttemptFailed)
    assert type(event.failing[0].status) is CaseStatus
    with pytest.raises(EventError):
        decode(body.replace(b"timed out", b"timed-out"))
