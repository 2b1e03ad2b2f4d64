"""From the records of a plan and its steps to the report of what they came to, and to the trace of who did what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from orchestrator.exports.inertmarkdown import span
from orchestrator.plan.outcome import (
    PlanBlockedResult,
    PlanCompletedResult,
    PlanExhaustedResult,
    PlanReport,
    StepStanding,
)
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.recorded import evidence_in, review_in
from orchestrator.plan.settling import has_ended_under
from orchestrator.plan.steprun import StepRun
from orchestrator.recordedresult import UsageTotals
from orchestrator_events.event import Event
from orchestrator_events.execution import ApprovalAnswered
from orchestrator_events.plan import StepCompared, StepSettled, StepStarted, StepVerified, WorkFinished
from orchestrator_events.record import Record
from orchestrator_states.plan import PlanState, StepState

__all__ = ["NEXT", "next_command", "report_on", "trace_page", "trace_table"]

NEXT: Final[Mapping[str, str]] = {
    PlanState.NEW: "plan review",
    PlanState.DRAFT: "plan review",
    PlanState.REVIEWED: "plan lock",
    PlanState.LOCKED: "plan run",
    PlanState.EXECUTING: "plan resume",
    PlanState.AMENDED: "plan review",
    PlanState.COMPLETED: "",
    PlanState.ABANDONED: "",
}
"""What comes next in each state of the lifecycle."""
TOLD: Final = (
    "plan:drafted", "plan:reviewed", "plan:rejected", "plan:locked", "plan:started", "plan:amended", "plan:completed",
    "plan:abandoned", "step:routed", "step:started", "work:started", "work:finished", "step:compared", "step:executed",
    "step:faltered", "step:verified", "step:reviewed", "step:escalated", "step:blocked", "step:failed",
    "step:unblocked", "step:settled", "followup:added", "decision:recorded", "release:prepared",
    "approval:answered", "budget:exhausted", "artifact:published",
)  # fmt: skip
"""Events that an execution trace tells."""
OURSELVES: Final = "orchestrator"
"""Who a fact is of that no model and no person did."""
EVALS: Final = "evals"
"""Who compared two candidates where no reviewer did."""


def report_on(run: PlanRun, steps: Mapping[str, StepRun]) -> PlanReport:
    """What a plan came to, or where it stands."""
    fields = measures(run, steps)
    if run.state == PlanState.COMPLETED and run.released is not None:
        return PlanCompletedResult(**fields, release=run.released.paths, missing=run.released.missing)
    if run.exhausted is not None and run.state == PlanState.EXECUTING:
        return PlanExhaustedResult(**fields, limit=run.exhausted.limit, detail=run.exhausted.detail)
    blocked = {name: step.reason for name, step in steps.items() if has_ended_under(run, step)}
    if blocked and run.state == PlanState.EXECUTING:
        return PlanBlockedResult(**{**fields, "next_command": "plan amend"}, blocked=blocked)
    return PlanReport(**fields)


def next_command(run: PlanRun) -> str:
    """The command that takes a plan on."""
    return NEXT[PlanState(run.state)]


def measures(run: PlanRun, steps: Mapping[str, StepRun]) -> dict[str, Any]:
    """What the folds say."""
    return {
        "run_id": run.run_id,
        "plan": run.effective,
        "state": run.state,
        "digest": run.current.digest,
        "steps": tuple(standing(run, step.id, steps.get(step.id)) for step in run.effective.steps),
        "usage": UsageTotals.of(run.ledger, [step.charge for step in steps.values()]),
        "open_risks": tuple(dict.fromkeys(open_risks(run, steps))),
        "decisions": tuple(dict.fromkeys(decisions(run, steps))),
        "next_command": next_command(run),
        "records": tuple(run.records),
    }


def decisions(run: PlanRun, steps: Mapping[str, StepRun]) -> Iterator[str]:
    """Titles of the decision records."""
    for each in (run, *steps.values()):
        for record in each.records:
            if record.event.name == "decision:recorded":
                yield str(getattr(record.event, "title", ""))


def open_risks(run: PlanRun, steps: Mapping[str, StepRun]) -> Iterator[str]:
    """What is open: why steps wait, what their reviewers noted, and conditions that no follow-up has met yet."""
    for step_id, step in steps.items():
        review = None if step.reviewed is None else review_in(step.reviewed.review)
        if step.state in (StepState.BLOCKED, StepState.FAILED):
            yield f"step {step_id}: {step.reason}"
        elif review is not None:
            yield from (f"step {step_id}: {text}" for text in review.diff_risk_notes)
        if review is not None and run.followed.get(step_id) not in run.completed:
            yield from (f"step {step_id}: {text}" for text in review.conditions)


def standing(run: PlanRun, step_id: str, step: StepRun | None) -> StepStanding:
    """Where a step is."""
    if step is None:
        return StepStanding(id=step_id, state=StepState.PENDING.value)
    done = [work.finished for work in step.works.values() if work.finished is not None]
    return StepStanding(
        id=step_id,
        state=step.state,
        model=worker_of(step),
        reviewer=step.reviewed.reviewer if step.reviewed is not None else "",
        executions=step.number,
        failures=step.failures,
        reason=step.reason if step.state in (StepState.BLOCKED, StepState.FAILED) else "",
        followup=run.followed.get(step_id, ""),
        duration_us=sum(each.duration_us for each in done),
    )


def worker_of(step: StepRun) -> str:
    """Whose the last output is, of two compared the chosen one's; while an execution is under way, who began it."""
    if step.executed is not None and step.made_in == step.number:
        return step.executed.model
    return step.begun.model if step.begun is not None else ""


def trace_page(run: PlanRun, steps: Iterable[StepRun]) -> str:
    """The execution trace as Markdown: every fact with its time and who it is of (contract 5)."""
    return "\n".join([f"# Execution trace of {span(run.run_id)}", "", *trace_table(run, steps)]) + "\n"


def trace_table(run: PlanRun, steps: Iterable[StepRun]) -> Iterator[str]:
    """The table of the trace, a fact a row, in the order of time."""
    told = [each for execution in (run, *steps) for each in attributed(execution.records)]
    yield "| time (UTC) | run | fact | who | what |"
    yield "|---|---|---|---|---|"
    yield from (row(*each) for each in sorted(told, key=lambda each: (each[0].at, each[0].run_id, each[0].sequence)))


def attributed(records: Iterable[Record]) -> Iterator[tuple[Record, str]]:
    """The facts of a run that a trace tells, each with who it is of; what no model and no person did, we did."""
    judge = EVALS
    for record in records:
        event = record.event
        if isinstance(event, StepStarted):
            judge = EVALS
        elif isinstance(event, WorkFinished) and event.purpose == "comparison":
            judge = event.model
        if event.name in TOLD:
            yield record, judge if isinstance(event, StepCompared) else who_of(event)


def who_of(event: Event) -> str:
    """Who a fact is of: a model in its role, a person, or the gates' checks."""
    match event:
        case StepVerified():
            kinds = ", ".join(dict.fromkeys(str(each.kind) for each in evidence_in(event.evidence)))
            return f"{kinds} gate" if kinds else OURSELVES
        case ApprovalAnswered():
            return "the approver"
        case _:
            who, role = first_of(event, ("model", "primary", "reviewer", "by")), str(getattr(event, "role", ""))
            return (f"{who} as {role}" if role else who) or OURSELVES


def row(record: Record, who: str) -> str:
    """One fact as a row."""
    event = record.event
    at = datetime.fromtimestamp(record.at / 1_000_000, UTC).isoformat(timespec="milliseconds")
    what = first_of(event, ("purpose", "outcome", "rule", "title", "path", "error", "followup", "reason"))
    if isinstance(event, StepSettled):
        what = f"{event.step} {event.state}"
    shown = [cell(text) for text in (record.run_id, event.name, who, what)]
    return f"| {at} | {' | '.join(shown)} |"


def first_of(event: object, names: Iterable[str]) -> str:
    """The first of these fields that says something."""
    return next((str(value) for name in names if (value := getattr(event, name, ""))), "")


def cell(text: str) -> str:
    """Text that stays in its cell."""
    return span(text, 200).replace("|", "\\|") if text else ""
