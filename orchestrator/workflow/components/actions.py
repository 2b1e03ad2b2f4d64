"""What a phase may ask of each component, by contract 4's names, and what it does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol

import attrs

from orchestrator.agent.plainjson import plain
from orchestrator.jsondata import JSON
from orchestrator.workflow.components.records import FailureContext
from orchestrator.workflow.components.subagents import SubagentTask
from orchestrator_events.subscribers.metrics import ALL

if TYPE_CHECKING:
    from orchestrator.workflow.components.bundle import Components
    from orchestrator.workflow.components.retry import RetryHandler

__all__ = ["ACTIONS", "DEFAULT_ACTIONS", "Action"]

FailureName = Literal["test", "review", "build", "implementation"]


class Action(Protocol):
    """One request of a phase."""

    async def perform(self, components: Components) -> JSON:
        """What the component answers."""
        ...


@attrs.frozen(kw_only=True)
class Spawn:
    """Give a task to a subagent."""

    subagent_type: str
    context: dict[str, Any]

    async def perform(self, components: Components) -> JSON:
        """The subagent's result."""
        return (await components.subagents.spawn(self.subagent_type, self.context)).as_json()


@attrs.frozen(kw_only=True)
class ParallelSpawn:
    """One of several tasks."""

    subagent_type: str
    context: dict[str, Any]
    files: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SpawnParallel:
    """Give tasks to several subagents, no file to two of them."""

    tasks: tuple[ParallelSpawn, ...]

    async def perform(self, components: Components) -> JSON:
        """All results, in order."""
        tasks = [SubagentTask(role=task.subagent_type, context=task.context, files=task.files) for task in self.tasks]
        given = await components.subagents.spawn_parallel(tasks)
        return {"status": given.status, "results": [result.as_json() for result in given.results]}


@attrs.frozen(kw_only=True)
class RecordCount:
    """Add to a count."""

    metric: str
    value: int = 1
    scope: str = ""

    async def perform(self, components: Components) -> JSON:
        """Nothing but that it was done."""
        await components.metrics.count(self.metric, self.value, self.scope)
        return {"success": True}


@attrs.frozen(kw_only=True)
class RecordTokens:
    """Add tokens that something else than a subagent used."""

    metric: str
    input_tokens: int
    output_tokens: int
    scope: str = ""

    async def perform(self, components: Components) -> JSON:
        """Nothing but that it was done."""
        await components.metrics.tokens(self.metric, self.input_tokens, self.output_tokens, self.scope)
        return {"success": True}


@attrs.frozen(kw_only=True)
class StartTimer:
    """Start a timer."""

    timer_id: str
    category: str
    scope: str = ""

    async def perform(self, components: Components) -> JSON:
        """Nothing but that it was done."""
        components.metrics.start_timer(self.timer_id, self.category, self.scope)
        return {"success": True}


@attrs.frozen(kw_only=True)
class StopTimer:
    """Stop a timer."""

    timer_id: str

    async def perform(self, components: Components) -> JSON:
        """Its time."""
        return {"success": True, "duration_ms": await components.metrics.stop_timer(self.timer_id) // 1000}


@attrs.frozen(kw_only=True)
class GetSummary:
    """Ask for the sums."""

    scope: str = ALL

    async def perform(self, components: Components) -> JSON:
        """The sums."""
        return plain(components.metrics.summary(self.scope).as_json())


@attrs.frozen(kw_only=True)
class Retry:
    """Attempt an operation of the host's; without one, ask how often the phase may, or note an attempt it made."""

    operation: str
    max_retries: int | None = None
    success: bool | None = None
    """Whether the phase's own attempt succeeded; left out before the first."""
    error: str = ""
    fix: str = ""

    async def perform(self, components: Components) -> JSON:
        """How it ended, or that another attempt may be made."""
        handler = components.retry
        refuse_more(handler, self.operation, self.max_retries)
        operation = handler.operations.get(self.operation)
        if operation is not None:
            if self.success is not None:
                raise ValueError(f"operation {self.operation!r} is attempted for you: leave success, error and fix out")
            outcome = await handler.run(
                self.operation, operation.attempt, fix=operation.fix, max_retries=self.max_retries
            )
            return outcome.as_json()
        limit, done = handler.limit_of(self.operation, self.max_retries), handler.failures_of(self.operation)
        if self.success is None and done < limit and handler.exhausted(self.operation) is None:
            return {"attempts": done, "attempts_left": limit - done, "next": self.own_attempts(limit)}
        noted = await handler.report(
            self.operation, self.max_retries, is_success=bool(self.success), error=self.error, fix=self.fix
        )
        if noted is not None:
            return noted.as_json()
        return {"success": False, "attempts": done + 1, "attempts_left": limit - done - 1, "escalation_required": False}

    def own_attempts(self, limit: int) -> str:
        """What a phase does that asks for an operation which only it can attempt."""
        told = {"operation": self.operation, "max_retries": limit, "success": False, "error": "…", "fix": "…"}
        form = json.dumps({"retry_handler": told}, ensure_ascii=False)
        return f"attempt {self.operation} yourself, and say after each attempt whether it succeeded: {form}"


def refuse_more(handler: RetryHandler, operation: str, asked: int | None) -> None:
    """Raise ValueError where a phase asks for more attempts than the domain gives: what a model says buys nothing."""
    most = handler.settings.limit_of(operation) or MOST_ASKED
    if asked is not None and asked > most:
        raise ValueError(f"operation {operation!r} has at most {most} attempts: a domain declares more, a phase cannot")


@attrs.frozen(kw_only=True)
class History:
    """Ask for the attempts of this execution of the phase."""

    operation: str = ""

    async def perform(self, components: Components) -> JSON:
        """The attempts, in order."""
        return {"retry_history": [attrs.asdict(each) for each in components.retry.history(self.operation)]}


@attrs.frozen(kw_only=True)
class Record:
    """Record a failure."""

    type: FailureName
    error: str
    retry_count: int = 0
    file: str = ""
    line: int = 0
    story_id: str = ""
    chunk_id: str = ""
    stack_trace: str = ""

    async def perform(self, components: Components) -> JSON:
        """The id of its record, and whether a person should look at it."""
        names = ("file", "line", "story_id", "chunk_id", "stack_trace")
        where = FailureContext(error=self.error, **{name: getattr(self, name) for name in names})
        record = await components.learnings.record_failure(
            self.type, self.error, retry_count=self.retry_count, context=where
        )
        pauses = components.learnings.asks_for_diagnosis(self.type, self.error)
        return {"record_id": record.record_id, "action": "pause_and_diagnose" if pauses else "continue"}


@attrs.frozen(kw_only=True)
class Resolve:
    """Record what was done about a failure."""

    record_id: str
    resolution: str
    success: bool
    files_changed: tuple[str, ...] = ()

    async def perform(self, components: Components) -> JSON:
        """The record as it is now."""
        record = await components.learnings.resolve(
            self.record_id, self.resolution, success=self.success, files_changed=self.files_changed
        )
        return plain(record.as_json())


@attrs.frozen(kw_only=True)
class FindSimilar:
    """Ask for failures like one."""

    type: FailureName
    error: str

    async def perform(self, components: Components) -> JSON:
        """Their records, latest first."""
        found = components.learnings.similar(self.type, self.error)[:MOST_SHOWN]
        return {"records": [plain(record.as_json()) for record in found]}


@attrs.frozen(kw_only=True)
class Sums:
    """Ask for what the learning records say together."""

    async def perform(self, components: Components) -> JSON:
        """Sums, frequent patterns, recommendations."""
        return plain(attrs.asdict(components.learnings.aggregate()))


MOST_SHOWN: Final = 10
MOST_ASKED: Final = 10
"""Attempts that a phase may ask for where the domain gives the operation no limit."""
ACTIONS: Final[Mapping[str, Mapping[str, type[Action]]]] = {
    "subagent_spawner": {"spawn": Spawn, "spawn_parallel": SpawnParallel},
    "metrics_collector": {
        "record_count": RecordCount,
        "record_tokens": RecordTokens,
        "start_timer": StartTimer,
        "stop_timer": StopTimer,
        "get_summary": GetSummary,
    },
    "retry_handler": {"retry": Retry, "history": History},
    "learning_recorder": {"record": Record, "resolve": Resolve, "find_similar": FindSimilar, "aggregate": Sums},
}
DEFAULT_ACTIONS: Final[Mapping[str, str]] = {"retry_handler": "retry"}
"""The contract calls the retry handler without an action."""
