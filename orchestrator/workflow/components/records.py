"""Learning records: what failed, how it was resolved, and what would prevent it."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final, Literal, get_args

import attrs

from orchestrator.jsondata import JSON

__all__ = [
    "CATEGORIES",
    "FAILURE_TYPES",
    "RECORD_ID",
    "Classification",
    "Failure",
    "FailureContext",
    "LearningRecord",
    "Resolution",
    "day_of",
    "number_of",
    "time_of",
]

FailureType = Literal["test", "review", "build", "implementation"]
Category = Literal["syntax", "logic", "architecture", "integration", "environment"]
FAILURE_TYPES: Final[tuple[str, ...]] = get_args(FailureType)
CATEGORIES: Final[tuple[str, ...]] = get_args(Category)
RECORD_ID: Final = re.compile(r"lr-(\d{4}-\d{2}-\d{2})-(\d{3,9})", re.ASCII)
"""`lr-2026-01-31-007`; the number begins anew each day (UTC) and has three digits, more where they do not do."""
TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z", re.ASCII)


def _is_record_id(_: object, __: attrs.Attribute[Any], value: str) -> None:
    found = RECORD_ID.fullmatch(value)
    if found is None or not _is_date(found[1]) or int(found[2]) < 1:
        raise ValueError(f"{value!r:.60} is no record id: write lr-YYYY-MM-DD-NNN")


def _is_time(_: object, attribute: attrs.Attribute[Any], value: str) -> None:
    if value and not (TIME.fullmatch(value) and _is_date(value[:-1])):
        raise ValueError(f"{attribute.name} {value!r:.60} is no time: write YYYY-MM-DDTHH:MM:SS.ffffffZ, in UTC")


def _is_date(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


@attrs.frozen(kw_only=True)
class FailureContext:
    """Where it failed, as far as it is known."""

    error: str
    phase: str = ""
    file: str = ""
    line: int = 0
    """From 1; 0: not known."""
    story_id: str = ""
    chunk_id: str = ""
    stack_trace: str = ""


@attrs.frozen(kw_only=True)
class Failure:
    """What failed, and how often it was tried again."""

    type: FailureType
    context: FailureContext
    retry_count: int = 0


@attrs.frozen(kw_only=True)
class Resolution:
    """What was done about it, and whether that helped."""

    action: str
    success: bool
    files_changed: tuple[str, ...] = ()
    resolved_at: str = attrs.field(validator=_is_time)


@attrs.frozen(kw_only=True)
class Classification:
    """What kind of failure it is, and what would prevent the next one."""

    category: Category
    pattern: str
    """What failures like it have in common."""
    preventable: bool = False
    prevention_rule: str = ""


@attrs.frozen(kw_only=True)
class LearningRecord:
    """One failure, classified; resolved or not."""

    record_id: str = attrs.field(validator=_is_record_id)
    recorded_at: str = attrs.field(validator=_is_time)
    source: str
    """Where it was first recorded, for ever: run and id there. Two stores that have it have the same record."""
    failure: Failure
    classification: Classification
    resolution: Resolution | None = None

    def as_json(self) -> dict[str, JSON]:
        """The record as plain data."""
        return attrs.asdict(self)


def time_of(now_us: int) -> str:
    """A time as records have it, of microseconds since the Unix epoch."""
    seconds, micro = divmod(now_us, 1_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{micro:06d}Z"


def day_of(record_id: str) -> str:
    """The day in a record's id."""
    return record_id[3:13]


def number_of(record_id: str) -> int:
    """The number in a record's id."""
    return int(record_id[14:])
