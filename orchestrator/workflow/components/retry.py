"""The retry handler: an operation is attempted up to its limit, with a fix between two attempts, then escalated.

A limit says how many attempts there are in all. `max_retries: 3`, the contract's name for it, means three attempts:
the first one and two more. Attempts are counted by name, from the events of one execution of the phase: a success
begins the count anew, and an operation whose attempts are used up stays so until the phase is executed anew, so that
neither a crash nor a second call buys further attempts. Give what a phase does for several things a name for each:
`test:chunk-2` has the limit of `test` and a count of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Generic, TypeVar, cast, overload

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.agent.plainjson import bounded, plain
from orchestrator.callables import is_async
from orchestrator.faults import closest_name
from orchestrator.jsondata import JSON
from orchestrator.threads import call_in_thread
from orchestrator.wording import describe
from orchestrator.workflow.components.checking import is_name
from orchestrator.workflow.components.execution import current_execution
from orchestrator.workflow.components.learnings import Learnings
from orchestrator.workflow.components.port import BudgetReachedError, ComponentHost
from orchestrator.workflow.components.settings import RetrySettings
from orchestrator_events.errors import JournalError, OrchestratorError
from orchestrator_events.workflow import RetryAttempted, RetryExhausted

__all__ = [
    "FailedAttempt",
    "Operation",
    "OperationError",
    "RetryAttempt",
    "RetryHandler",
    "RetryOutcome",
    "UnknownOperationError",
]

Result = TypeVar("Result")
MOST_ATTEMPTS = 1_000
LONGEST_ERROR = LONGEST_FIX = 4_000


class UnknownOperationError(OrchestratorError, ValueError):
    """An operation has no limit, or no name that records can hold; `operation` is what was given."""

    def __init__(self, operation: object, fault: str, hint: str = "") -> None:
        self.operation = operation
        suggestion = f" (did you mean {hint!r}?)" if hint else ""
        super().__init__(f"operation {str(operation)[:80]!r} {fault}{suggestion}")


class OperationError(Exception):
    """An attempt raises it to say that it failed, and why; any other error is a failure as well."""


@attrs.frozen
class FailedAttempt:
    """What a fix is told."""

    operation: str
    attempt: int
    error: str


@attrs.frozen
class RetryAttempt:
    """One attempt of the past."""

    operation: str
    attempt: int
    is_success: bool
    error: str = ""
    fix_applied: str = ""


@attrs.frozen(kw_only=True)
class RetryOutcome(Generic[Result]):
    """How an operation ended; a failure is to be escalated to a person, and has a learning record."""

    operation: str
    is_success: bool
    attempts: int
    result: Result | None = None
    final_error: str = ""
    learning_record_id: str = ""

    @property
    def escalation_required(self) -> bool:
        """Whether a person has to look at it."""
        return not self.is_success

    def as_json(self) -> dict[str, JSON]:
        """The outcome as phases that are files read it."""
        if self.is_success:
            return {"success": True, "attempts": self.attempts, "result": plain(self.result)}
        return {
            "success": False,
            "attempts": self.attempts,
            "final_error": self.final_error,
            "learning_record_id": self.learning_record_id,
            "escalation_required": True,
        }


Attempt = Callable[[], Result | Awaitable[Result]]
Fix = Callable[[FailedAttempt], str | Awaitable[str]]
"""Repairs what made an attempt fail, and says what it did."""


@attrs.frozen
class Operation:
    """An operation of the host's, for phases that ask for it by name."""

    attempt: Attempt[Any]
    fix: Fix | None = None


@attrs.define(eq=False)
class RetryHandler:
    """Attempts operations for one execution of a phase; every attempt is an event."""

    settings: RetrySettings
    host: ComponentHost
    learnings: Learnings
    operations: Mapping[str, Operation] = attrs.Factory(dict[str, Operation])

    @overload
    async def run(
        self,
        operation: str,
        attempt: Callable[[], Awaitable[Result]],
        *,
        fix: Fix | None = None,
        max_retries: int | None = None,
    ) -> RetryOutcome[Result]: ...

    @overload
    async def run(
        self, operation: str, attempt: Callable[[], Result], *, fix: Fix | None = None, max_retries: int | None = None
    ) -> RetryOutcome[Result]: ...

    async def run(
        self, operation: str, attempt: Attempt[Result], *, fix: Fix | None = None, max_retries: int | None = None
    ) -> RetryOutcome[Result]:
        """Attempt an operation until it succeeds, at most `max_retries` times in all (3 means three attempts).

        Without `max_retries` the limit is the settings': test 3, review 2, build 1, or what the domain says. An
        attempt fails by raising. Sync callables run in a thread. Between two attempts, never after the last, the fix
        is applied; one that raises is noted, and the next attempt made. Raises UnknownOperationError.
        """
        limit = self.limit_of(operation, max_retries)
        while (done := self.failures_of(operation)) < limit and self.exhausted(operation) is None:
            fixed = await self.applied(fix, FailedAttempt(operation, done, self.last_error(operation)), limit)
            try:
                result = cast(Result, await called(attempt))
            except PASSING:
                raise
            except Exception as error:  # noqa: BLE001 -- an operation may be anything: what it raises is its failure
                await self.report(operation, limit, error=describe(error), fix=fixed)
            else:
                await self.report(operation, limit, is_success=True, fix=fixed)
                return RetryOutcome(operation=operation, is_success=True, attempts=done + 1, result=result)
        return await self.given_up(operation)

    async def report(
        self,
        operation: str,
        max_retries: int | None = None,
        *,
        is_success: bool = False,
        error: str = "",
        fix: str = "",
    ) -> RetryOutcome[None] | None:
        """Note an attempt that was made elsewhere; the outcome when it was the last, None when another may be made.

        An attempt past the limit is not noted: the operation stays exhausted.
        """
        limit = self.limit_of(operation, max_retries)
        done = self.failures_of(operation)
        if done >= limit or self.exhausted(operation) is not None:
            return await self.given_up(operation)
        error = "" if is_success else bounded(error, LONGEST_ERROR) or "it failed without saying why"
        await self.host.record(
            RetryAttempted(
                operation=operation,
                attempt=done + 1,
                limit=limit,
                is_success=is_success,
                error=error,
                fix=bounded(fix, LONGEST_FIX),
            )
        )
        if is_success:
            return RetryOutcome(operation=operation, is_success=True, attempts=done + 1)
        return await self.given_up(operation) if done + 1 >= limit else None

    def history(self, operation: str = "") -> tuple[RetryAttempt, ...]:
        """The attempts of this execution of the phase, of one operation or of all, in order."""
        return tuple(
            RetryAttempt(event.operation, event.attempt, event.is_success, event.error, event.fix)
            for event in current_execution(self.host.history, self.host.phase)
            if isinstance(event, RetryAttempted) and operation in ("", event.operation)
        )

    def limit_of(self, operation: str, max_retries: int | None = None) -> int:
        """How many attempts an operation has in all."""
        if not is_name(operation):
            raise UnknownOperationError(operation, "is no name: use letters, digits, '.', '_', ':' and '-'")
        if max_retries is not None:
            if type(max_retries) is not int or not 1 <= max_retries <= MOST_ATTEMPTS:
                fault = f"has max_retries {max_retries!r:.40}: give how many attempts there are, 1 to {MOST_ATTEMPTS}"
                raise UnknownOperationError(operation, fault)
            return max_retries
        limit = self.settings.limit_of(operation)
        if limit is None:
            known = self.settings.operations
            fault = (
                f"has no limit: pass max_retries, or declare it under retry-handler.custom beside {', '.join(known)}"
            )
            raise UnknownOperationError(operation, fault, closest_name(operation, known))
        return limit

    def failures_of(self, operation: str) -> int:
        """Failed attempts since the last success."""
        attempts = self.history(operation)
        return next((index for index, each in enumerate(reversed(attempts)) if each.is_success), len(attempts))

    def last_error(self, operation: str) -> str:
        """Why the last attempt failed; empty where it did not."""
        attempts = self.history(operation)
        return attempts[-1].error if attempts else ""

    def exhausted(self, operation: str) -> RetryExhausted | None:
        """How the operation was given up in this execution, if it was."""
        for event in reversed(current_execution(self.host.history, self.host.phase)):
            if isinstance(event, RetryExhausted) and event.operation == operation:
                return event
        return None

    async def applied(self, fix: Fix | None, failure: FailedAttempt, limit: int) -> str:
        """What was fixed before the next attempt; empty before the first."""
        if fix is None or failure.attempt == 0 or failure.attempt >= limit:
            return ""
        try:
            return bounded(str(await called(fix, failure)), LONGEST_FIX)
        except PASSING:
            raise
        except Exception as error:  # noqa: BLE001 -- as above
            return f"not fixed: {describe(error)}"

    async def given_up(self, operation: str) -> RetryOutcome[Any]:
        """The failure of an operation whose attempts are used up, recorded once with what is to be learned from it."""
        event = self.exhausted(operation)
        if event is None:
            error, attempts = self.last_error(operation), self.failures_of(operation)
            learned = self.learnings.failure_event(kind_of(operation), error, retry_count=attempts)
            event = RetryExhausted(
                operation=operation, attempts=attempts, final_error=error, record_id=learned.record_id
            )
            recorded = (await self.host.record(learned, event))[-1]
            assert isinstance(recorded, RetryExhausted)
            event = recorded
        return RetryOutcome(
            operation=operation,
            is_success=False,
            attempts=event.attempts,
            final_error=event.final_error,
            learning_record_id=event.record_id,
        )


PASSING = (JournalError, BudgetReachedError, GeneratorUnavailableError)
"""What is no failure of an operation: nothing more can be recorded, bought or reached."""


async def called(function: Callable[..., object], *arguments: object) -> object:
    """The result of a callable, plain or async; a plain one runs in a thread."""
    if is_async(function):
        returned = function(*arguments)
    else:
        returned = await call_in_thread(function, *arguments)
    return await returned if isawaitable(returned) else returned


def kind_of(operation: str) -> str:
    """The kind of failure that an operation's is."""
    kind = operation.partition(":")[0]
    return kind if kind in ("test", "review", "build") else "implementation"
