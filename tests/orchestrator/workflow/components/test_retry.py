"""The retry handler: how many attempts there are, what is between them, and what comes after the last."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from orchestrator.workflow.components.port import BudgetReachedError
from orchestrator.workflow.components.retry import (
    FailedAttempt,
    OperationError,
    RetryAttempt,
    RetryOutcome,
    UnknownOperationError,
)
from orchestrator.workflow.components.settings import ComponentSettings, RetrySettings
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.errors import JournalError
from orchestrator_events.workflow import PhaseFinished, RetryAttempted, RetryExhausted


def failing(times: int, calls: list[str]) -> Callable[[], str]:
    """An operation that fails so often before it succeeds, and writes down each attempt."""

    def attempt() -> str:
        calls.append("attempt")
        if calls.count("attempt") <= times:
            raise OperationError(f"{calls.count('attempt')} tests fail")
        return "all green"

    return attempt


def fixing(calls: list[str]) -> Callable[[FailedAttempt], str]:
    """A fix that writes down what it was told."""

    def fix(failure: FailedAttempt) -> str:
        calls.append(f"fix {failure.attempt}: {failure.error}")
        return f"fixed after {failure.attempt}"

    return fix


def test_max_retries_3_means_three_attempts_and_two_fixes() -> None:
    """`max_retries: 3` is three attempts in all; a fix stands between two attempts and never after the last."""
    host, calls = RecordingHost(), list[str]()

    async def phase() -> RetryOutcome[str]:
        return await host.components().retry.run("test", failing(9, calls), fix=fixing(calls), max_retries=3)

    outcome = asyncio.run(phase())

    first, second, third = (f"OperationError: {number} tests fail" for number in (1, 2, 3))
    assert calls == ["attempt", f"fix 1: {first}", "attempt", f"fix 2: {second}", "attempt"]
    assert outcome == RetryOutcome(
        operation="test",
        is_success=False,
        attempts=3,
        final_error=third,
        learning_record_id="lr-2026-01-01-001",
    )
    assert outcome.as_json() == {
        "success": False,
        "attempts": 3,
        "final_error": third,
        "learning_record_id": "lr-2026-01-01-001",
        "escalation_required": True,
    }
    assert [event for event in host.history if isinstance(event, RetryAttempted | RetryExhausted)] == [
        RetryAttempted(operation="test", attempt=1, limit=3, is_success=False, error=first),
        RetryAttempted(operation="test", attempt=2, limit=3, is_success=False, error=second, fix="fixed after 1"),
        RetryAttempted(operation="test", attempt=3, limit=3, is_success=False, error=third, fix="fixed after 2"),
        RetryExhausted(operation="test", attempts=3, final_error=third, record_id="lr-2026-01-01-001"),
    ]
    assert [event.name for event in host.commits[-1]] == ["learning:recorded", "retry:exhausted"]


@pytest.mark.parametrize(("operation", "limit"), [("test", 3), ("review", 2), ("build", 1), ("deploy", 4)])
def test_each_operation_has_its_limit(operation: str, limit: int) -> None:
    """Without a number, test has 3 attempts, review 2, build 1, and a custom one what the domain gives it."""
    host = RecordingHost(settings=ComponentSettings(retry_handler=RetrySettings(custom={"deploy": 4})))
    calls = list[str]()

    async def phase() -> RetryOutcome[str]:
        return await host.components().retry.run(operation, failing(99, calls))

    assert (asyncio.run(phase()).attempts, len(calls)) == (limit, limit)


def test_a_success_ends_it_and_begins_the_count_anew() -> None:
    """The result of the attempt that succeeded is given; the next round of the operation has all its attempts."""
    host, calls = RecordingHost(), list[str]()

    async def phase() -> list[RetryOutcome[str]]:
        retry = host.components().retry
        first = await retry.run("test", failing(1, calls), fix=fixing(calls))
        return [first, await retry.run("test", failing(99, calls))]

    first, second = asyncio.run(phase())

    assert first.as_json() == {"success": True, "attempts": 2, "result": "all green"}
    assert (second.is_success, second.attempts, calls.count("attempt")) == (False, 3, 5)


def test_an_exhausted_operation_stays_so_until_the_phase_is_executed_anew() -> None:
    """A second call buys no further attempts; the next execution of the phase has all of them; names count apart."""
    host, calls = RecordingHost(), list[str]()

    async def phase(operation: str) -> RetryOutcome[str]:
        return await host.components().retry.run(operation, failing(99, calls))

    first, again = asyncio.run(phase("test")), asyncio.run(phase("test"))
    assert (again, len(calls)) == (first, 3)

    assert (asyncio.run(phase("test:chunk-2")).attempts, len(calls)) == (3, 6)

    host.history.append(
        PhaseFinished(phase="p", next_phase="p", updates=Blob("{}"), output=Blob(""), duration_us=0, charge=Charge())
    )
    assert (asyncio.run(phase("test")).attempts, len(calls)) == (3, 9)


def test_a_phase_that_a_crash_cut_off_goes_on_counting() -> None:
    """Attempts of an earlier beginning of the same execution count, and the fix is told the last error."""
    calls = list[str]()
    earlier = RetryAttempted(operation="test", attempt=1, limit=3, is_success=False, error="boom")
    host = RecordingHost(history=[earlier])

    async def phase() -> tuple[RetryOutcome[str], tuple[RetryAttempt, ...]]:
        retry = host.components().retry
        return await retry.run("test", failing(1, calls), fix=fixing(calls)), retry.history("test")

    outcome, history = asyncio.run(phase())

    assert calls == ["fix 1: boom", "attempt", "fix 2: OperationError: 1 tests fail", "attempt"]
    assert (outcome.is_success, outcome.attempts) == (True, 3)
    assert history == (
        RetryAttempt("test", 1, is_success=False, error="boom"),
        RetryAttempt("test", 2, False, "OperationError: 1 tests fail", "fixed after 1"),
        RetryAttempt("test", 3, True, "", "fixed after 2"),
    )


def test_a_fix_that_fails_is_noted_and_the_next_attempt_made() -> None:
    """A fix is as fallible as what it repairs."""
    host, calls = RecordingHost(), list[str]()

    def fix(failure: FailedAttempt) -> str:
        raise RuntimeError(f"no idea about {failure.operation}")

    async def phase() -> tuple[RetryAttempt, ...]:
        retry = host.components().retry
        await retry.run("test", failing(1, calls), fix=fix)
        return retry.history()

    assert asyncio.run(phase())[-1].fix_applied == "not fixed: RuntimeError: no idea about test"


@pytest.mark.parametrize("error", [JournalError("full"), BudgetReachedError("tokens", "10 of 10 used")])
def test_what_is_no_failure_of_the_operation_is_not_tried_again(error: Exception) -> None:
    """Where nothing more can be recorded or bought, the error passes and no attempt is counted."""
    host = RecordingHost()

    async def attempt() -> None:
        raise error

    async def phase() -> None:
        await host.components().retry.run("test", attempt)

    with pytest.raises(type(error)):
        asyncio.run(phase())
    assert host.history == []


@pytest.mark.parametrize(
    ("operation", "max_retries", "message"),
    [
        ("deploy", None, r"operation 'deploy' has no limit: pass max_retries, or declare it"),
        ("tset", None, r"did you mean 'test'\?"),
        ("test", 0, "give how many attempts there are, 1 to 1000"),
        ("test", True, "give how many attempts there are"),
        ("", 3, "is no name"),
        ("a\x1b[2J", 3, "is no name"),
    ],
)
def test_an_operation_without_a_limit_or_a_name_is_refused(
    operation: str, max_retries: int | None, message: str
) -> None:
    """A custom operation must be given its limit; the message names the fix."""
    host = RecordingHost()

    async def phase() -> None:
        await host.components().retry.run(operation, lambda: None, max_retries=max_retries)

    with pytest.raises(UnknownOperationError, match=message):
        asyncio.run(phase())
