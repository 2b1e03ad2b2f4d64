"""A workflow's events in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from orchestrator.narration import charged, decided, held, joined
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    DecisionTakenByUser,
    LearningRecorded,
    MetricRecorded,
    PhaseAbandoned,
    PhaseAnswered,
    PhaseAsked,
    PhaseEntered,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    RetryAttempted,
    RetryExhausted,
    StateMerged,
    StateRead,
    StateUnreadable,
    StateUnwritable,
    StateWritten,
    SubagentFinished,
    SubagentSpawned,
    SummaryReported,
    TodosUpdated,
    WorkflowCompleted,
    WorkflowContinued,
)

__all__ = ["TOLD"]


def current(event: TodosUpdated) -> str:
    """What is under way; nothing for what is no list of things to do."""
    try:
        todos = json.loads(event.todos.data.decode())
    except (ValueError, RecursionError):
        return ""
    entries = [todo for todo in todos if isinstance(todo, dict)] if isinstance(todos, list) else []
    going_on = [str(todo.get("content")) for todo in entries if todo.get("status") == "in_progress"]
    return ", ".join(going_on) or "nothing in progress"


def started(event: PhaseStarted) -> str:
    """What is executed, and by whom."""
    return joined(f"{event.phase}, execution {event.number}, by {event.executor}", *decided(event.decisions))


def asked(event: PhaseAsked) -> str:
    """What is held for a call."""
    return joined(f"{event.phase}, call {event.call}: held {held(event.reservation)}", *decided(event.decisions))


def answered(event: PhaseAnswered) -> str:
    """What came of a call, and what it cost."""
    came = f"no answer: {event.error}" if event.error else f"answer {event.answer.digest[:8]}"
    return f"{event.phase}, call {event.call}: {came}, charged {charged(event.charge)}"


def finished(event: PhaseFinished) -> str:
    """What comes next, and what it cost."""
    return f"{event.phase} finished, next is {event.next_phase}, charged {charged(event.charge)}"


def chosen(event: DecisionTakenByUser) -> str:
    """Who chose what, and where it leads."""
    on = f"on with {event.phase}" if event.phase else ""
    return joined(f"{event.by} chose {event.choice}", on, "with another state" if event.state is not None else "")


def attempted(event: RetryAttempted) -> str:
    """What came of an attempt."""
    ended = "succeeded" if event.is_success else f"failed: {event.error}"
    fix = f"after the fix: {event.fix}" if event.fix else ""
    return joined(f"{event.operation}: attempt {event.attempt} of {event.limit} {ended}", fix)


def cascading(event: CascadeDetected) -> str:
    """How many failures, and what the learning records say."""
    counted = f"{event.failures_in_window} failures in a window of {event.window} outcomes"
    return joined(counted, " ".join(event.diagnosis.split()), " ".join(event.recommendation.split()))


TOLD: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        CascadeDetected.name: cascading,
        DecisionNeeded.name: lambda event: (
            f"{event.about}: {' '.join(event.message.split())} ({', '.join(event.options)})"
        ),
        DecisionTakenByUser.name: chosen,
        LearningRecorded.name: lambda event: event.record_id,
        MetricRecorded.name: lambda event: f"{event.scope}: {event.metric} {event.measure} {event.value:+,}",
        PhaseAbandoned.name: lambda event: (
            f"{event.phase}, execution {event.number}: {event.reason}, charged {charged(event.charge)}"
        ),
        PhaseAnswered.name: answered,
        PhaseAsked.name: asked,
        PhaseEntered.name: lambda event: event.phase,
        PhaseFailed.name: lambda event: f"{event.phase} failed, {event.retry_count} in a row: {event.error}",
        PhaseFinished.name: finished,
        PhaseStarted.name: started,
        RetryAttempted.name: attempted,
        RetryExhausted.name: lambda event: (
            f"{event.operation}: all {event.attempts} attempts failed: {event.final_error}"
        ),
        StateMerged.name: lambda event: f"in {event.phase}; changed: {', '.join(event.fields_updated)}",
        StateRead.name: lambda event: f"in {event.phase}; from: {event.source}",
        StateUnreadable.name: lambda event: f"{event.problem}: {event.message}",
        StateUnwritable.name: lambda event: event.message,
        StateWritten.name: lambda event: event.path,
        SubagentFinished.name: lambda event: joined(
            f"{event.subagent_id} {event.status}, charged {charged(event.charge)}", event.error
        ),
        SubagentSpawned.name: lambda event: f"{event.subagent_id} as {event.role}",
        SummaryReported.name: lambda event: f"{event.phase}: {' '.join((event.output.text or '').split())}",
        TodosUpdated.name: current,
        WorkflowCompleted.name: lambda event: event.phase,
        WorkflowContinued.name: lambda event: f"on with {event.phase}",
    }
)
"""By the event's wire name."""
