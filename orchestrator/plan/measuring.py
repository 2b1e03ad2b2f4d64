"""How long a plan was at work in an invocation that was cut off: as long as the records of its steps measured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.steprun import StepRun
from orchestrator_events.execution import ExecutionEnd, ExecutionStart
from orchestrator_events.plan import StepExecuted, WorkFinished
from orchestrator_events.record import Record

__all__ = ["carry_over", "measured_us"]


def carry_over(run: PlanRun, steps: Mapping[str, StepRun]) -> None:
    """Charge a plan that was just loaded for the time of its last invocation, where that has no end.

    The plan's own stream is silent while its steps work, and a kill must not give back their time.
    """
    last = next(each for each in reversed(run.records) if isinstance(each.event, ExecutionStart | ExecutionEnd))
    if isinstance(last.event, ExecutionStart):
        run.ledger.carried_us += measured_us((record for step in steps.values() for record in step.records), last.at)


def measured_us(records: Iterable[Record], since: int, until: int | None = None) -> int:
    """Time that finished work took, microseconds; what was done side by side counts once.

    `since` and `until` are the stamps, microseconds since the Unix epoch, between which the invocation recorded.
    """
    spans = sorted(
        (max(since, record.at - record.event.duration_us), record.at)
        for record in records
        if isinstance(record.event, WorkFinished | StepExecuted)
        and since <= record.at
        and (until is None or record.at <= until)
    )
    total, covered = 0, since
    for begun, ended in spans:
        total += max(0, ended - max(begun, covered))
        covered = max(covered, ended)
    return total
