"""A step of a plan in memory: the fold of its records."""

from __future__ import annotations

import json

import attrs

from orchestrator.charges import charged_by
from orchestrator.execution import changes_of
from orchestrator.plan.parentrun import CHILDREN, ParentRun
from orchestrator.plan.plan import Step
from orchestrator.plan.planrun import read_step
from orchestrator_events.budget import Charge
from orchestrator_events.execution import (
    ApprovalAnswered,
    BudgetRaised,
    ExecutionResumed,
    ExecutionStart,
)
from orchestrator_events.plan import (
    ArtifactPublished,
    StepBlocked,
    StepCompared,
    StepEscalated,
    StepExecuted,
    StepFailed,
    StepFaltered,
    StepReviewed,
    StepRouted,
    StepStarted,
    StepUnblocked,
    StepVerified,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.run import BudgetOverrun
from orchestrator_states.plan import STEP

__all__ = ["StepRun", "Work"]


@attrs.define
class Work:
    """One run inside the step."""

    started: WorkStarted
    finished: WorkFinished | None = None


@attrs.define(eq=False, kw_only=True)
class StepRun(ParentRun):
    """A step: what it was asked, who worked on it, and what came of that."""

    step: Step
    failures: int = 0
    """Failures of the implementer since the step began, or began anew: executions that faltered, verifications that
    did not pass, reviews that asked for changes."""
    number: int = 0
    """Number of the last execution, fixes included."""
    route: StepRouted | None = None
    begun: StepStarted | None = None
    """The execution under way, or the last one."""
    is_executed: bool = True
    """Whether the last execution has an outcome."""
    works: dict[str, Work] = attrs.Factory(dict[str, Work])
    """Runs inside it, by their run id, oldest first."""
    executed: StepExecuted | None = None
    """The last output."""
    made_in: int = 0
    """Number of the execution that it is of."""
    compared: StepCompared | None = None
    verified: StepVerified | None = None
    """What QA and security found in the last output; None before they looked."""
    reviewed: StepReviewed | None = None
    """The last review."""
    faltered: StepFaltered | None = None
    """Why the last execution gave nothing; None when it gave something."""
    escalated: StepEscalated | None = None
    approvals: list[ApprovalAnswered] = attrs.Factory(list[ApprovalAnswered])
    """Answers of a person since the last output."""
    artifacts: dict[str, ArtifactPublished] = attrs.Factory(dict[str, ArtifactPublished])
    """By path, as published last."""
    reason: str = ""
    """Why it is blocked, or failed."""
    unblocked_by: str = ""
    """Digest of the plan that let it begin anew."""

    def work_of(self, purpose: str, number: int) -> Work | None:
        """The last run of this purpose in an execution."""
        found = [
            work for work in self.works.values() if work.started.purpose == purpose and work.started.number == number
        ]
        return found[-1] if found else None

    @property
    def charge(self) -> Charge:
        """What it was charged so far, what is still out in full."""
        return charged_by(self)


def began(run: StepRun, event: ExecutionStart) -> None:
    """An invocation: its clock starts, and the step is what the plan in force says of it."""
    run.invocation = event.invocation
    run.ledger.started_us = run.clock.monotonic()
    run.step = read_step(event.prompt)
    run.ended.clear()


def resumed(run: StepRun, event: ExecutionResumed) -> None:
    """A step that had ended without success begins anew; its earlier failures are no longer held against it."""
    if event.into == STEP.initial:
        run.failures, run.escalated, run.reason = 0, None, ""
        run.faltered, run.verified, run.reviewed = None, None, None
        run.is_executed = True


def routed(run: StepRun, event: StepRouted) -> None:
    """Who works on it is decided."""
    run.route = event


def started(run: StepRun, event: StepStarted) -> None:
    """An execution."""
    run.begun, run.number, run.is_executed = event, event.number, False
    run.compared = None


def work_started(run: StepRun, event: WorkStarted) -> None:
    """A run inside it; what it may cost is held."""
    run.works[event.child_id] = Work(event)
    run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1


def work_finished(run: StepRun, event: WorkFinished) -> None:
    """It is over, and charged."""
    work = run.works.get(event.child_id)
    if work is not None:
        work.finished = event
    run.ledger.settle(event.key, event.charge)


def executed(run: StepRun, event: StepExecuted) -> None:
    """There is an output."""
    run.executed, run.is_executed, run.made_in = event, True, run.number
    run.faltered, run.verified, run.reviewed = None, None, None
    run.approvals.clear()


def faltered(run: StepRun, event: StepFaltered) -> None:
    """There is none: a failure of the implementer."""
    run.faltered, run.is_executed = event, True
    run.failures += 1


def compared(run: StepRun, event: StepCompared) -> None:
    """One of two candidates was chosen."""
    run.compared = event


def verified(run: StepRun, event: StepVerified) -> None:
    """QA and security have looked; what did not pass is a failure of the implementer."""
    run.verified = event
    run.failures += not event.has_passed


def reviewed(run: StepRun, event: StepReviewed) -> None:
    """The reviewer has decided; changes requested are a failure of the implementer."""
    run.reviewed = event
    run.failures += event.outcome == "changes_requested"
    if event.outcome == "blocked":
        told = json.loads(event.review.text or "{}")
        notes = [*told.get("diff_risk_notes", ()), *told.get("required_fixes", ())]
        run.reason = f"the review blocked it: {'; '.join(map(str, notes))}"


def escalated(run: StepRun, event: StepEscalated) -> None:
    """A stronger model takes over."""
    run.escalated = event


def ended_without_success(run: StepRun, event: StepBlocked | StepFailed) -> None:
    """It waits for the plan to be amended."""
    run.reason = event.reason


def unblocked(run: StepRun, event: StepUnblocked) -> None:
    """An amended plan lets it begin anew."""
    run.unblocked_by = event.digest


def answered(run: StepRun, event: ApprovalAnswered) -> None:
    """A person has answered."""
    run.approvals.append(event)


def published(run: StepRun, event: ArtifactPublished) -> None:
    """An output is on the bus."""
    run.artifacts[event.path] = event


def overran(run: StepRun, event: BudgetOverrun) -> None:
    """Nothing more is bought."""
    run.ledger.overruns += event.limits


def raised(run: StepRun, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()


StepRun.changes = changes_of(
    {
        ApprovalAnswered: answered,
        ArtifactPublished: published,
        BudgetOverrun: overran,
        BudgetRaised: raised,
        **CHILDREN,
        ExecutionResumed: resumed,
        ExecutionStart: began,
        StepBlocked: ended_without_success,
        StepCompared: compared,
        StepEscalated: escalated,
        StepExecuted: executed,
        StepFailed: ended_without_success,
        StepFaltered: faltered,
        StepReviewed: reviewed,
        StepRouted: routed,
        StepStarted: started,
        StepUnblocked: unblocked,
        StepVerified: verified,
        WorkFinished: work_finished,
        WorkStarted: work_started,
    }
)
