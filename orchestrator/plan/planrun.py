"""A plan in memory: the fold of its records, whatever its steps do in streams of their own."""

from __future__ import annotations

import json

import attrs

from orchestrator.charges import spent, total
from orchestrator.documents import parse_document
from orchestrator.execution import changes_of
from orchestrator.plan.dumping import dumped
from orchestrator.plan.parentrun import CHILDREN, ParentRun
from orchestrator.plan.plan import Plan, Step, read_plan
from orchestrator.plan.vocabulary import output_name
from orchestrator.structuring import structure
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.execution import BudgetRaised, ExecutionResumed
from orchestrator_events.plan import (
    ArtifactPublished,
    DecisionRecorded,
    FollowUpAdded,
    PlanAbandoned,
    PlanAmended,
    PlanCompleted,
    PlanDrafted,
    PlanLocked,
    PlanRejected,
    PlanReviewed,
    PlanStarted,
    ReleasePrepared,
    StepSettled,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.run import BudgetExhausted

__all__ = ["PlanRun", "awaited", "read_step", "with_steps", "written_step"]


@attrs.define(eq=False, kw_only=True)
class PlanRun(ParentRun):
    """A plan: what it says now, where its steps are, and what was decided on the way."""

    plan: Plan | None = None
    """As it was drafted or amended last; None before the first draft."""
    locked_digest: str = ""
    """Digest of the plan that was locked last; empty before, and again once it is amended."""
    started_at: int = 0
    """Number of the record with which the execution of the plan as it is began; 0 before any."""
    settled_at: dict[str, int] = attrs.Factory(dict[str, int])
    """Numbers of the records that tell how each step ended last."""
    reviewer: str = ""
    """Who approved the plan as it is."""
    rejection: str = ""
    """What a reviewer asks to change, a JSON object; empty when nothing is."""
    settled: dict[str, StepSettled] = attrs.Factory(dict[str, StepSettled])
    """How each step ended last."""
    completed: list[str] = attrs.Factory(list[str])
    """Steps in the order they were completed."""
    followups: dict[str, Step] = attrs.Factory(dict[str, Step])
    """Steps that carry the conditions of an approval, by id."""
    followed: dict[str, str] = attrs.Factory(dict[str, str])
    """The follow-up of each step that has one."""
    decisions: list[DecisionRecorded] = attrs.Factory(list[DecisionRecorded])
    artifacts: dict[str, ArtifactPublished] = attrs.Factory(dict[str, ArtifactPublished])
    """The plan's own, by path."""
    amendments: list[PlanAmended] = attrs.Factory(list[PlanAmended])
    released: ReleasePrepared | None = None
    exhausted: BudgetExhausted | None = None
    given_up: str = ""
    """Why it was abandoned."""

    @property
    def current(self) -> Plan:
        """The plan; there is one as soon as the first batch is committed."""
        assert self.plan is not None
        return self.plan

    @property
    def effective(self) -> Plan:
        """The plan with the follow-up steps that approvals added."""
        missing = [step for step in self.followups.values() if step.id not in self.current.by_id]
        return with_steps(self.current, missing) if missing else self.current

    @property
    def charged(self) -> Charge:
        """What the settled steps, and the plan's own work, were charged."""
        return total([spent(self.ledger), *(each.charge for each in self.settled.values())])


def awaited(run: PlanRun, step: Step) -> list[str]:
    """What has to be completed before a step: all it depends on, and the follow-ups of these.

    A follow-up may make the files anew that the step reads, which must not depend on who is faster.
    """
    followups = [run.followed[name] for name in step.depends_on if name in run.followed]
    return [*step.depends_on, *(each for each in followups if each != step.id)]


def with_steps(plan: Plan, steps: list[Step]) -> Plan:
    """The plan with steps more; what they read of the studio need not be there before the plan starts."""
    made = {name for step in (*plan.steps, *steps) for name in step.outputs or (output_name(step.id),)}
    read = {name for step in steps for name in step.inputs if name not in made}
    context = (*plan.context_requirements, *sorted(read - set(plan.context_requirements)))
    return attrs.evolve(plan, steps=(*plan.steps, *steps), context_requirements=context)


def written_step(step: Step) -> Blob:
    """A step as RFC 8785 JSON."""
    from rfc8785 import dumps

    return Blob(dumps(dumped(step)).decode())


def read_step(blob: Blob) -> Step:
    """The step that a record names; DocumentError for one of another release."""
    source = "a recorded step"
    return structure(parse_document(blob.text or blob.data.decode(), ".json", source), Step, source)


def recorded_plan(blob: Blob) -> Plan:
    """The plan that a record names; PlanError for one of another release."""
    return read_plan(json.loads(blob.text or blob.data.decode()), "a recorded plan")


def drafted(run: PlanRun, event: PlanDrafted) -> None:
    """The plan is what the draft says."""
    run.plan, run.rejection = recorded_plan(event.plan), ""


def reviewed(run: PlanRun, event: PlanReviewed) -> None:
    """Somebody approved it."""
    run.reviewer, run.rejection = event.reviewer, ""


def rejected(run: PlanRun, event: PlanRejected) -> None:
    """Somebody asks for changes."""
    run.rejection = event.review.text or ""


def locked(run: PlanRun, event: PlanLocked) -> None:
    """It cannot change unseen from here on."""
    run.locked_digest = event.digest


def started(run: PlanRun, _: PlanStarted) -> None:
    """Steps may begin."""
    run.started_at = run.sequence


def amended(run: PlanRun, event: PlanAmended) -> None:
    """It is another plan, to be reviewed and locked again."""
    run.plan, run.locked_digest, run.reviewer, run.rejection = recorded_plan(event.plan), "", "", ""
    run.amendments.append(event)


def settled(run: PlanRun, event: StepSettled) -> None:
    """A step rests."""
    run.settled[event.step], run.settled_at[event.step] = event, run.sequence
    if event.state == "completed" and event.step not in run.completed:
        run.completed.append(event.step)


def followed(run: PlanRun, event: FollowUpAdded) -> None:
    """A step more."""
    run.followups[event.followup] = read_step(event.definition)
    run.followed[event.step] = event.followup


def decided(run: PlanRun, event: DecisionRecorded) -> None:
    """A decision that outlives the plan."""
    run.decisions.append(event)


def published(run: PlanRun, event: ArtifactPublished) -> None:
    """An artifact of the plan's own."""
    run.artifacts[event.path] = event


def work_started(run: PlanRun, event: WorkStarted) -> None:
    """A model works for the plan itself."""
    run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1


def work_finished(run: PlanRun, event: WorkFinished) -> None:
    """It is done."""
    run.ledger.settle(event.key, event.charge)


def exhausted(run: PlanRun, event: BudgetExhausted) -> None:
    """A limit is reached."""
    run.exhausted = event


def resumed(run: PlanRun, _: ExecutionResumed) -> None:
    """What ended the last invocation no longer does."""
    run.exhausted = None
    run.ended.clear()


def raised(run: PlanRun, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()


def abandoned(run: PlanRun, event: PlanAbandoned) -> None:
    """It is given up."""
    run.given_up = event.reason


def completed(run: PlanRun, _: PlanCompleted) -> None:
    """Every step is completed."""
    run.exhausted = None


def released(run: PlanRun, event: ReleasePrepared) -> None:
    """The rollout is prepared."""
    run.released = event


PlanRun.changes = changes_of(
    {
        ArtifactPublished: published,
        BudgetExhausted: exhausted,
        BudgetRaised: raised,
        **CHILDREN,
        DecisionRecorded: decided,
        ExecutionResumed: resumed,
        FollowUpAdded: followed,
        PlanAbandoned: abandoned,
        PlanAmended: amended,
        PlanCompleted: completed,
        PlanDrafted: drafted,
        PlanLocked: locked,
        PlanRejected: rejected,
        PlanReviewed: reviewed,
        PlanStarted: started,
        ReleasePrepared: released,
        StepSettled: settled,
        WorkFinished: work_finished,
        WorkStarted: work_started,
    }
)
