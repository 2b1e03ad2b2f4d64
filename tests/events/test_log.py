"""The log subscriber: one line an attempt, or one a record, through the host's structlog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
import structlog
from structlog.testing import capture_logs
from structlog.typing import FilteringBoundLogger

from orchestrator_events import (
    AttemptFailed,
    AttemptPassed,
    Batch,
    Blob,
    BudgetExhausted,
    BudgetOverrun,
    Bus,
    CandidateGenerated,
    CaseResult,
    CaseStatus,
    Charge,
    Event,
    ExecutionEnd,
    ExecutionFailed,
    Journal,
    Record,
    SubscriberFailed,
    log_attempts,
    log_records,
)

MakeRecord = Callable[..., Record]

FAILING = (CaseResult("a", CaseStatus.FAILED), CaseResult("b", CaseStatus.ERROR))
CANDIDATE = CandidateGenerated(
    attempt=1, key="k", candidate=Blob("code"), form="text", charge=Charge(input_tokens=3), duration_us=9
)


@pytest.fixture(autouse=True)
def _unconfigured() -> Iterator[None]:
    """Leaves structlog as it was found."""
    yield
    structlog.reset_defaults()


def lines_of(subscribe: Callable[[Bus], object], journal: Journal, records: list[Record]) -> list[dict[str, object]]:
    """What is logged of these records."""
    with capture_logs() as lines:
        bus = Bus()
        subscribe(bus)
        asyncio.run(bus.publish(Batch("r1", tuple(records)), journal))
    return [dict(line) for line in lines]


def test_an_attempt_is_a_line_and_so_is_what_ends_the_run(journal: Journal, record: MakeRecord) -> None:
    """Attempts, limits, failing subscribers and the end are logged, each with its run; the rest is not."""
    events: tuple[Event, ...] = (
        CANDIDATE,
        AttemptFailed(attempt=1, stage="evaluation", failing=FAILING, passed=("c",)),
        AttemptPassed(attempt=2, passed=("a", "b", "c"), duration_us=5, is_pinned=True),
        BudgetExhausted(limit="tokens", detail="10 of 10 used"),
        BudgetOverrun(attempt=2, limits=("tokens",)),
        SubscriberFailed(subscriber="s", event="attempt:passed", error="KeyError: 1"),
        ExecutionFailed(reason="OSError: disk"),
        ExecutionEnd(response="", status="completed"),
    )
    info, warning = {"log_level": "info", "run": "r1"}, {"log_level": "warning", "run": "r1"}
    assert lines_of(log_attempts, journal, [record(event) for event in events]) == [
        {"event": "attempt:failed", **info, "attempt": 1, "stage": "evaluation", "passed": 1, "failed": 2},
        {"event": "attempt:passed", **info, "attempt": 2, "passed": 3},
        {"event": "budget:exhausted", **info, "limit": "tokens", "detail": "10 of 10 used"},
        {"event": "budget:overrun", **warning, "attempt": 2, "limits": ("tokens",)},
        {"event": "subscriber:failed", **warning, "subscriber": "s", "error": "KeyError: 1"},
        {"event": "execution:end", **info, "status": "completed", "state": "evaluating"},
    ]


def test_every_record_is_a_line_with_its_move_and_fields(journal: Journal, record: MakeRecord) -> None:
    """Nested values are plain data, and a text that is stored by digest is logged by digest."""
    [line] = lines_of(log_records, journal, [record(CANDIDATE, sequence=7)])
    assert line == {
        "event": "candidate:generated",
        "log_level": "debug",
        "run": "r1",
        "sequence": 7,
        "source": "evaluating",
        "target": "evaluating",
        "fields": {
            "attempt": 1,
            "key": "k",
            "candidate": {"bytes": 4, "sha256": CANDIDATE.candidate.digest},
            "form": "text",
            "charge": {"input_tokens": 3, "output_tokens": 0, "money_micro": 0, "estimated": False},
            "duration_us": 9,
            "isolation": "none",
        },
    }


def test_a_host_s_own_logger_is_used(journal: Journal, record: MakeRecord) -> None:
    """What is bound to the host's logger is on every line."""
    logger: FilteringBoundLogger = structlog.get_logger().bind(tenant="t1")
    lines = lines_of(
        lambda bus: log_attempts(bus, logger), journal, [record(ExecutionEnd(response="", status="error"))]
    )
    assert [line["tenant"] for line in lines] == ["t1"]


def test_a_closed_log_is_silent(journal: Journal, record: MakeRecord) -> None:
    """Logging is a subscription like any other."""
    assert lines_of(lambda bus: log_records(bus).close(), journal, [record(CANDIDATE)]) == []
