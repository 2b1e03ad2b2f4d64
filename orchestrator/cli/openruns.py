"""A run that is not over: whether somebody works on it, and what became of the attempt that nobody judged."""

from __future__ import annotations

from rich.text import Text

from orchestrator.attempt import Attempt
from orchestrator.cli.appearance import Marks
from orchestrator.cli.attemptlines import generation, joined
from orchestrator.cli.inert import one_line
from orchestrator.execution import Execution
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.run import GenerationAbandoned

__all__ = ["is_worked_on", "standing_of", "unjudged_line"]

REASON = 200


def is_worked_on(journal: SqliteJournal, run: Execution) -> bool:
    """Whether a process works on the run, or on the one that it is inside of."""
    start = run.records[0].event
    root = start.root_id if isinstance(start, ExecutionStart) else ""
    return journal.is_held(root or run.run_id)


def standing_of(run: Execution, *, is_held: bool) -> str:
    """`running`, `interrupted` (in order) or `cut off` (by a crash or a kill); the state of a run that is over.

    A plan whose invocation did all it could is `waiting`: for an amendment, or for another limit.
    """
    if run.is_over:
        return str(run.state)
    if is_held:
        return "running"
    marks = [record.event for record in run.records if isinstance(record.event, ExecutionStart | ExecutionEnd)]
    last = marks[-1]
    if isinstance(last, ExecutionEnd):
        return "waiting" if run.lifecycle == "plan" and last.status == "completed" else "interrupted"
    return "cut off"


def unjudged_line(run: Run, attempt: Attempt, marks: Marks, *, is_held: bool) -> Text:
    """An attempt without a verdict: what it was at, and why it got no further."""
    doing = "waiting for its verdict" if attempt.generated is not None else "waiting for its candidate"
    if is_held and not run.is_over:
        told = doing
    elif reason := abandoned(run, attempt):
        told = f"abandoned: {reason}"
    else:
        told = "not judged" if run.is_over else f"{standing_of(run, is_held=False)} {doing}"
    return joined(
        Text(f"#{attempt.number:<2}", "bold"),
        f"{generation(attempt):<31}",
        Text(one_line(told, REASON, marks.ellipsis), "yellow"),
    )


def abandoned(run: Run, attempt: Attempt) -> str:
    """Why its last call was given up; empty where it was not, or was made again."""
    if attempt.started is not None:
        return ""
    reasons = [
        record.event.reason
        for record in run.records
        if isinstance(record.event, GenerationAbandoned) and record.event.attempt == attempt.number
    ]
    return reasons[-1] if reasons else ""
