"""What a plan came to, in words on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from orchestrator.cli.inert import one_line
from orchestrator.cli.plans.studiofile import STUDIO_FILE
from orchestrator.cli.wording import limit_name, usage
from orchestrator.excerpt import in_short
from orchestrator.plan.outcome import PlanCompletedResult, PlanExhaustedResult, PlanReport, StepStanding
from orchestrator_events.event import Event
from orchestrator_events.plan import PlanRejected

if TYPE_CHECKING:
    from orchestrator.cli.plans.running import PlanCommand

__all__ = ["is_rejected", "report_lines"]

REASON = 300


def report_lines(report: PlanReport, command: PlanCommand) -> Iterator[str]:
    """A report in words, with the command that comes next as it is typed."""
    yield f"plan {report.plan.plan_id}: {report.state}"
    yield from rejection_lines(report)
    yield from map(step_line, report.steps)
    if isinstance(report, PlanExhaustedResult):
        yield f"the limit {limit_name(report.limit)} is reached: {report.detail}"
    if isinstance(report, PlanCompletedResult):
        yield from (f"prepared: {path}" for path in report.release)
        yield from (f"missing before a rollout: {text}" for text in report.missing)
    yield f"used: {usage(report.usage)}"
    if report.next_command:
        yield f"next: {next_words(report, command)}"


def step_line(step: StepStanding) -> str:
    """Where a step is, who worked on it, and why it goes no further."""
    by = f"  {one_line(step.model, REASON)}" if step.model else ""
    times = f", {step.executions} executions" if step.executions > 1 else ""
    why = f"  {in_short(step.reason, REASON)}" if step.reason else ""
    return f"  {step.id:<20} {step.state:<10}{by}{times}{why}".rstrip()


def next_words(report: PlanReport, command: PlanCommand) -> str:
    """The next command, with what has to be done before it."""
    typed = command.command(report.next_command.removeprefix("plan "))
    if isinstance(report, PlanExhaustedResult):
        return f"raise {limit_name(report.limit)} in [budget] of {command.config or STUDIO_FILE}, then {typed}"
    if report.next_command == "plan amend":
        retry = f"{command.command('resume')} --retry STEP --reason TEXT"
        return (
            f"{typed} --reason TEXT, once {command.plan_file} is changed; or {retry}, where something else was mended"
        )
    return typed


def rejection_lines(report: PlanReport) -> Iterator[str]:
    """What the last review asks to change in the plan, where the plan waits for that."""
    event = last_of(report)
    if isinstance(event, PlanRejected):
        told = json.loads(event.review.text or "{}")
        yield f"{one_line(event.reviewer, REASON)}: {str(told.get('status', '')).replace('_', ' ')}"
        for text in (*told.get("required_fixes", ()), *told.get("diff_risk_notes", ())):
            yield f"  {in_short(str(text), REASON)}"


def is_rejected(report: PlanReport) -> bool:
    """Whether the last thing said of the plan is that it has to change."""
    return isinstance(last_of(report), PlanRejected)


def last_of(report: PlanReport) -> Event | None:
    """The last thing that was said of the plan as a whole."""
    told = [record.event for record in report.records if record.event.name.startswith("plan:")]
    return told[-1] if told else None
