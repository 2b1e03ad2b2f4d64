"""A plan as a Markdown report: how it stands, its steps, risks and decisions, what was spent, and how to check it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.exports.inertmarkdown import span
from orchestrator.plan.outcome import KIND, PlanCompletedResult, PlanExhaustedResult, PlanReport, StepStanding
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.reporting import report_on, trace_table
from orchestrator.plan.steprun import StepRun
from orchestrator_states.path import span as time_span

__all__ = ["export_plan_markdown"]


def export_plan_markdown(run: PlanRun, steps: Mapping[str, StepRun]) -> str:
    """A loaded plan with its steps as Markdown for people, with a final newline.

    Everything that a plan, a model or a check wrote stands in code spans, where no renderer takes it for HTML, a
    link or a heading.
    """
    report = report_on(run, steps)
    parts = [
        f"# Plan {span(report.plan.plan_id)}: {report.state}",
        f"This is a {KIND}.",
        "\n".join(facts(report)),
        "## Steps",
        "\n".join(step_lines(report)),
        *listed("Open risks", report.open_risks),
        *listed("Decisions", report.decisions),
        *ended(report),
        "## Trace",
        "\n".join(trace_table(run, steps.values())),
        "## Record",
        "\n".join(record(run, report)),
    ]
    return "\n\n".join(parts) + "\n"


def facts(report: PlanReport) -> Iterator[str]:
    """What is planned, and what it has cost."""
    usage = report.usage
    mark = " (partly estimated)" if usage.is_estimated else ""
    yield f"- Goal: {span(report.plan.goal)}"
    yield f"- Run {span(report.run_id)}, plan {span(report.digest)}"
    yield f"- Active time {time_span(usage.active_us)}"
    yield f"- Tokens: {usage.input_tokens:,} read, {usage.output_tokens:,} written{mark}"
    if usage.money_micro:
        yield f"- Money: {usage.money_micro / 1_000_000:,.6f}{mark}"
    if isinstance(report, PlanExhaustedResult):
        yield f"- The limit {span(report.limit)} is reached: {span(report.detail)}"


def step_lines(report: PlanReport) -> Iterator[str]:
    """Each step with what it is to do, and where it is."""
    for step in report.plan.steps:
        yield f"- {span(step.id)}, {step.risk_level} risk: {span(step.title or step.task)}"
        yield f"  - {'; '.join(standing(report.by_id[step.id]))}"


def standing(step: StepStanding) -> Iterator[str]:
    """Where a step is, by whom, and why."""
    yield step.state
    if step.executions:
        yield f"{step.executions} executions, {step.failures} failures"
    if step.model:
        yield f"by {span(step.model)}"
    if step.reviewer:
        yield f"reviewed by {span(step.reviewer)}"
    if step.reason:
        yield span(step.reason)
    if step.followup:
        yield f"followed up by {span(step.followup)}"


def listed(title: str, texts: tuple[str, ...]) -> Iterator[str]:
    """A heading and a list; neither without entries."""
    if texts:
        yield f"## {title}"
        yield "\n".join(f"- {span(text)}" for text in texts)


def ended(report: PlanReport) -> Iterator[str]:
    """What was prepared for a rollout, and what a rollout still lacks."""
    if isinstance(report, PlanCompletedResult):
        yield from listed("Release", report.release)
        yield from listed("Missing before a rollout", report.missing)


def record(run: PlanRun, report: PlanReport) -> Iterator[str]:
    """What to keep so that the record can be checked later."""
    head = report.journal_head
    yield f"- {head.count} records, the last with digest {span(head.digest)}"
    yield f"- Lifecycle {span(run.lifecycle)}, table digest {span(run.machine.table.digest)}"
    yield ""
    yield "Keep number and digest: whoever holds them can tell whether the record was cut or rewritten."
