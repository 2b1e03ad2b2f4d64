"""What people are told of an event, line by line: the literal messages of contract 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionResumed
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    PhaseAbandoned,
    StateUnreadable,
    StateUnwritable,
    SummaryReported,
    WorkflowCompleted,
)

__all__ = ["COMPLETE", "CORRUPTED", "NOT_FOUND", "UNWRITABLE", "lines_of", "resuming_from", "told"]

NOT_FOUND: Final = "State file not found. Cannot resume."
CORRUPTED: Final = "State corrupted. Outputting raw for recovery."
MISMATCH: Final = "The state file is not what the journal says, and nobody explained why."
UNWRITABLE: Final = "Failed to persist state"
COMPLETE: Final = "Workflow complete!"


def resuming_from(phase: str) -> str:
    """What is said when a workflow is resumed."""
    return f"Resuming from phase: {phase}"


def told(records: Iterable[Record]) -> tuple[str, ...]:
    """Everything that records tell people, in order."""
    return tuple(line for record in records for line in lines_of(record.event))


def lines_of(event: Event) -> tuple[str, ...]:
    """The lines that an event is told in; none for most. Texts of others are in them as they came."""
    return tuple(lines(event))


def lines(event: Event) -> Iterator[str]:
    """The same, one by one."""
    match event:
        case ExecutionResumed(reason=reason):
            yield reason
        case PhaseAbandoned():
            yield f"The outcome of phase {event.phase} is unknown: {event.reason}"
        case SummaryReported():
            yield from shown(event.output)
        case WorkflowCompleted():
            yield COMPLETE
        case StateUnreadable():
            yield from unreadable(event)
        case StateUnwritable():
            yield from (UNWRITABLE, event.message, *shown(event.state))
        case CascadeDetected():
            yield from cascade(event)
        case DecisionNeeded():
            yield event.message
            yield f"{', '.join(event.options[:-1])}, or {event.options[-1]}?"
        case BudgetExhausted():
            yield f"The budget's limit {event.limit!r} is reached: {event.detail}"


def unreadable(event: StateUnreadable) -> Iterator[str]:
    """What is wrong with the file, with all that is in it, and what the journal says instead."""
    if event.problem == "not found":
        yield NOT_FOUND
        yield event.message
        return
    yield CORRUPTED if event.problem == "corrupt" else MISMATCH
    yield event.message
    if event.problem == "mismatch":
        yield "In the file:"
    yield from shown(event.raw)
    if event.problem == "mismatch" and event.expected is not None:
        yield "In the journal:"
        yield from shown(event.expected)


def cascade(event: CascadeDetected) -> Iterator[str]:
    """The alert of a cascade."""
    yield f"Cascade detected: {event.failures_in_window} of the last {event.window} outcomes are failures."
    yield event.diagnosis
    if event.recommendation:
        yield event.recommendation


def shown(text: Blob) -> tuple[str, ...]:
    """A text, line by line."""
    return tuple((text.text or "").splitlines())
