"""What each record of a workflow has to say in plain lines; most say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from rich.text import Text

from orchestrator.cli.appearance import Marks
from orchestrator.cli.inert import inert, one_line
from orchestrator.cli.wording import duration
from orchestrator.workflow.messages import marked_lines_of
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionInterrupted, ExecutionResumed, SubscriberFailed
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    DecisionTakenByUser,
    LearningRecorded,
    PhaseAbandoned,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    RetryAttempted,
    RetryExhausted,
    StateUnreadable,
    StateUnwritable,
    SubagentFinished,
    SummaryReported,
    WorkflowCompleted,
)

__all__ = ["lines_of"]

REASON: Final = 200
TROUBLE: Final = (CascadeDetected, BudgetExhausted, StateUnreadable, StateUnwritable)


def lines_of(record: Record, marks: Marks) -> Iterator[Text]:
    """The lines of one record of the workflow itself; what the engine has people told is told word for word."""
    event = record.event
    match event:
        case PhaseStarted():
            again = f"  (execution {event.number})" if event.number > 1 else ""
            yield Text(f"{marks.bullet} {shown(event.phase, marks)}{again}", "cyan")
        case PhaseFinished():
            following = "again" if event.next_phase == event.phase else f"then {shown(event.next_phase, marks)}"
            yield Text(f"  finished in {duration(event.duration_us)}, {following}", "dim")
        case PhaseFailed():
            yield Text(f"  {marks.failed} failed, {event.retry_count} in a row", "red")
        case DecisionTakenByUser():
            phase = f", on with {shown(event.phase, marks)}" if event.phase else ""
            yield Text(f"  decided by {event.by}: {shown(event.choice, marks)}{phase}", "yellow")
        case ExecutionInterrupted():
            yield Text("  an earlier invocation was cut off", "yellow")
        case SubscriberFailed():
            failed = f"subscriber {event.subscriber} failed at {event.event}: {event.error}"
            yield Text(shown(failed, marks), "yellow")
        case SummaryReported() | ExecutionResumed() | WorkflowCompleted() | PhaseAbandoned():
            yield from told_lines(event)
        case DecisionNeeded():
            yield from told_lines(event, "bold yellow")
        case _ if isinstance(event, TROUBLE):
            yield from told_lines(event, "red")
        case _:
            yield from component_lines(record, marks)


def told_lines(event: Event, style: str = "") -> Iterator[Text]:
    """What the engine has people told; the text of others further in, so that no line of it passes for one of ours."""
    for line in marked_lines_of(event):
        yield Text(f"{'    ' if line.is_theirs else '  '}{inert(line.text)}", style)


def component_lines(record: Record, marks: Marks) -> Iterator[Text]:
    """What the components of a phase did."""
    match record.event:
        case RetryAttempted(is_success=False) as event:
            tried = f"{event.operation}: attempt {event.attempt} of {event.limit} failed"
            yield Text(f"    {shown(tried, marks)}: {shown(event.error, marks)}", "yellow")
        case RetryExhausted() as event:
            yield Text(f"    {shown(event.operation, marks)}: all {event.attempts} attempts failed", "red")
        case LearningRecorded() as event:
            yield Text(f"    recorded {shown(event.record_id, marks)}", "dim")
        case SubagentFinished() as event:
            why = f": {shown(event.error, marks)}" if event.error else ""
            told = f"subagent {event.subagent_id} {event.status}{why}"
            yield Text(f"    {shown(told, marks)}", "dim" if event.status == "success" else "yellow")
        case _:
            return


def shown(text: str, marks: Marks) -> str:
    """What others wrote, in one line that nothing acts on."""
    return one_line(text, REASON, marks.ellipsis)
