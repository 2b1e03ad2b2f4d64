"""What people are told of an event, line by line: the literal messages of contract 4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionResumed, ExecutionStart
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    DecisionTakenByUser,
    PhaseAbandoned,
    PhaseStarted,
    StateRead,
    StateUnreadable,
    StateUnwritable,
    SummaryReported,
    WorkflowCompleted,
)

__all__ = [
    "COMPLETE",
    "CORRUPTED",
    "NOT_FOUND",
    "UNWRITABLE",
    "Line",
    "broken",
    "grounds_in",
    "lines_of",
    "marked_lines_of",
    "resuming_from",
    "told",
]

NOT_FOUND: Final = "State file not found. Cannot resume."
CORRUPTED: Final = "State corrupted. Outputting raw for recovery."
MISMATCH: Final = "The state file is not what the journal says, and nobody explained why."
UNWRITABLE: Final = "Failed to persist state"
COMPLETE: Final = "Workflow complete!"
GROUNDS: Final = (CascadeDetected, StateUnreadable, StateUnwritable)
"""What a decision may rest on that its message does not hold."""


@attrs.frozen
class Line:
    """One line that people are told; with `is_theirs` all of it is text of others, and could look like any of ours."""

    text: str
    is_theirs: bool = False


def resuming_from(phase: str) -> str:
    """What is said when a workflow is resumed."""
    return f"Resuming from phase: {phase}"


def told(records: Iterable[Record]) -> tuple[str, ...]:
    """Everything that records tell people, in order."""
    return tuple(line for record in records for line in lines_of(record.event))


def lines_of(event: Event) -> tuple[str, ...]:
    """The lines that an event is told in; none for most. Texts of others are in them as they came."""
    return tuple(line.text for line in lines(event))


def marked_lines_of(event: Event) -> tuple[Line, ...]:
    """The same, and which of them are text of others alone: whoever shows them tells those apart from ours."""
    return tuple(lines(event))


def grounds_in(records: Sequence[Record]) -> tuple[Line, ...]:
    """What the decision that a workflow waits for rests on (contract 4): the state to recover from, the diagnosis.

    Empty where its message says it all.
    """
    events = (record.event for record in reversed(records))
    needed = next((event for event in events if isinstance(event, DecisionNeeded | BudgetExhausted)), None)
    if not isinstance(needed, DecisionNeeded):
        return ()
    found: list[Event] = []
    for event in events:
        if isinstance(event, DecisionTakenByUser | ExecutionStart | PhaseStarted | StateRead):
            break
        if isinstance(event, GROUNDS):
            found.insert(0, event)
    return tuple(line for event in found for line in lines(event))


def lines(event: Event) -> Iterator[Line]:
    """The lines, one by one."""
    match event:
        case ExecutionResumed(reason=reason):
            yield from broken(reason)
        case PhaseAbandoned():
            yield from broken(f"The outcome of phase {event.phase} is unknown: {event.reason}")
        case SummaryReported():
            yield from theirs(event.output)
        case WorkflowCompleted():
            yield Line(COMPLETE)
        case StateUnreadable():
            yield from unreadable(event)
        case StateUnwritable():
            yield Line(UNWRITABLE)
            yield from broken(event.message)
            yield from ours(event.state)
        case CascadeDetected():
            yield from cascade(event)
        case DecisionNeeded():
            yield from broken(event.message)
            yield Line(f"{', '.join(event.options[:-1])}, or {event.options[-1]}?")
        case BudgetExhausted():
            yield from broken(f"The budget's limit {event.limit!r} is reached: {event.detail}")


def unreadable(event: StateUnreadable) -> Iterator[Line]:
    """What is wrong with the file, with all that is in it, and what the journal says instead."""
    if event.problem == "not found":
        yield Line(NOT_FOUND)
        yield from broken(event.message)
        return
    yield Line(CORRUPTED if event.problem == "corrupt" else MISMATCH)
    yield from broken(event.message)
    if event.problem == "mismatch":
        yield Line("In the file:")
    yield from theirs(event.raw)
    if event.problem == "mismatch" and event.expected is not None:
        yield Line("In the journal:")
        yield from ours(event.expected)


def cascade(event: CascadeDetected) -> Iterator[Line]:
    """The alert of a cascade."""
    yield Line(f"Cascade detected: {event.failures_in_window} failures in a window of {event.window} outcomes.")
    for text in (event.diagnosis, event.recommendation):
        yield from (Line(line, is_theirs=True) for line in text.splitlines())


def broken(text: str) -> Iterator[Line]:
    """A text that begins with words of ours and goes on with those of others, line by line."""
    first, *more = text.splitlines() or [""]
    yield Line(first)
    yield from (Line(line, is_theirs=True) for line in more)


def theirs(text: Blob) -> Iterator[Line]:
    """A text of others, line by line."""
    return (Line(line, is_theirs=True) for line in (text.text or "").splitlines())


def ours(text: Blob) -> Iterator[Line]:
    """A state as it is written here: what others put into it has no line to itself."""
    return (Line(line) for line in (text.text or "").splitlines())
