"""Plans: what was locked is what was reviewed, what is executed is what was locked, and steps wait for each other."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.plan.difference import difference
from orchestrator.plan.plan import Plan
from orchestrator.plan.planrun import PlanRun, awaited, read_step, recorded_plan
from orchestrator.plan.recorded import review_in, step_run_id
from orchestrator.plan.review import Review, ReviewStatus, read_review
from orchestrator.plan.vocabulary import Risk
from orchestrator_events.blob import Blob
from orchestrator_events.execution import ChildStarted, ExecutionStart
from orchestrator_events.plan import (
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
from orchestrator_events.record import Record
from orchestrator_states.plan import STEP, PlanState

__all__ = ["PlanLife"]


@attrs.define(eq=False)
class PlanLife:
    """Follows a plan's life (contract 5): the plan in force is derived again from its texts, never from its digests."""

    opening: str = ""
    """The plan's text with which the run began."""
    answer: Blob | None = None
    """What a model said of the plan in this invocation."""
    name: str = attrs.field(default="plan", init=False)

    def look(self, run: PlanRun, record: Record) -> Iterator[str]:
        """What a record says that does not follow from those before it."""
        match record.event:
            case ExecutionStart() as event:
                self.opening, self.answer = self.opening or text_of(event.prompt), None
            case PlanDrafted() | PlanAmended() as event:
                yield from self.changes(run, event)
            case PlanReviewed() | PlanRejected() as event:
                yield from self.judges(run, event)
            case PlanLocked() as event:
                yield from locks(run, event)
            case PlanStarted() as event:
                if event.digest != run.locked_digest or event.digest != run.current.digest:
                    yield f"starts {event.digest:.80}; locked is {run.locked_digest:.80}, in force {run.current.digest}"
            case WorkStarted() | WorkFinished() as event:
                yield from self.accounts(run, event)
            case ChildStarted() | StepSettled() | FollowUpAdded() as event:
                yield from steps(run, event)
            case PlanCompleted() | ReleasePrepared() | PlanAbandoned() as event:
                yield from ends(run, event)
            case _:
                pass

    def end(self, run: PlanRun) -> Iterator[str]:
        """A plan that is locked with another text than it has."""
        if run.locked_digest and run.plan is not None and run.locked_digest != run.plan.digest:
            yield f"the plan in force is {run.plan.digest}, locked was {run.locked_digest:.80}"

    def changes(self, run: PlanRun, event: PlanDrafted | PlanAmended) -> Iterator[str]:
        """The plan is written as its digest wants it, is the same plan, and differs as it is said to."""
        plan = recorded_plan(event.plan)
        if plan.canonical != text_of(event.plan):
            yield "holds a plan that is not RFC 8785 JSON, so that its digest is of another text"
        if run.plan is None:
            if text_of(event.plan) != self.opening:
                yield "drafts another plan than the run was begun with"
            return
        if plan.plan_id != run.plan.plan_id:
            yield f"is of plan {plan.plan_id!r:.80}, the run is of {run.plan.plan_id!r:.80}"
        if isinstance(event, PlanAmended):
            yield from amends(run, event, run.plan, plan)

    def judges(self, run: PlanRun, event: PlanReviewed | PlanRejected) -> Iterator[str]:
        """A plan is reviewed by an approval, and by nothing else; a model's review is the one that it gave."""
        review = review_in(event.review)
        if (review.status is ReviewStatus.APPROVED) != isinstance(event, PlanReviewed):
            yield f"{event.name} with a review that says {review.status}"
        if self.answer is not None and given(self.answer, run.current) != review:
            yield "is another review than the model gave"
        if not event.reviewer:
            yield "is a review by nobody"

    def accounts(self, run: PlanRun, event: WorkStarted | WorkFinished) -> Iterator[str]:
        """What the review of the plan itself costs is held before, and settled after."""
        if isinstance(event, WorkFinished):
            self.answer = event.output
            if event.key not in run.ledger.holds:
                yield f"charges {event.key!r:.80}, which is not in flight"
        elif event.reservation.key in run.ledger.holds:
            yield f"holds for {event.reservation.key!r:.80}, which is in flight already"


def locks(run: PlanRun, event: PlanLocked) -> Iterator[str]:
    """The lock is over the text that was reviewed."""
    if event.digest != run.current.digest:
        yield f"locks {event.digest:.80}, the plan in force is {run.current.digest}: it was changed unseen"
    if not run.reviewer:
        yield "locks a plan that nobody approved"
    if not event.by:
        yield "is locked by nobody"


def amends(run: PlanRun, event: PlanAmended, old: Plan, new: Plan) -> Iterator[str]:
    """The recorded difference is the one between the plans, and nothing that is completed is changed."""
    change = difference(old, new)
    if change.is_empty:
        yield "amends nothing"
    if text_of(event.difference) != "\n".join(change.lines()):
        yield "tells another difference than there is between the plans"
    if not event.by or not event.reason.strip():
        yield "is an amendment by nobody, or for no reason"
    touched = {*change.removed, *(each.step_id for each in change.changed)} & set(run.completed)
    if touched:
        yield f"changes {', '.join(sorted(touched)):.200}, which is completed"


def steps(run: PlanRun, event: ChildStarted | StepSettled | FollowUpAdded) -> Iterator[str]:
    """What the plan says of its steps."""
    match event:
        case ChildStarted():
            yield from begins(run, event)
        case StepSettled():
            yield from settles(run, event)
        case FollowUpAdded():
            yield from follows(run, event)


def begins(run: PlanRun, event: ChildStarted) -> Iterator[str]:
    """A step of the plan in force begins, while it is executed, and after all that it depends on."""
    if event.lifecycle != STEP.name:
        return
    step = next((each for each in run.effective.steps if step_run_id(run.run_id, each.id) == event.child_id), None)
    if step is None:
        yield f"begins {event.child_id!r:.80}, which is no step of the plan in force"
        return
    if run.state != PlanState.EXECUTING:
        yield f"begins step {step.id} of a plan that is {run.state}"
    missing = [each for each in awaited(run, step) if each not in run.completed]
    if missing:
        yield f"begins step {step.id} before {', '.join(missing):.200}"


def settles(run: PlanRun, event: StepSettled) -> Iterator[str]:
    """A step of the plan rests; it is completed once, and after all that it depends on."""
    step = run.effective.by_id.get(event.step)
    if step is None:
        yield f"settles {event.step!r:.80}, which is no step of the plan in force"
        return
    if event.state != "completed":
        return
    if event.step in run.completed:
        yield f"completes step {event.step} again"
    missing = [each for each in step.depends_on if each not in run.completed]
    if missing:
        yield f"completes step {event.step} before {', '.join(missing):.200}"


def follows(run: PlanRun, event: FollowUpAdded) -> Iterator[str]:
    """A follow-up is the step that it is called, and of one that is completed."""
    step = read_step(event.definition)
    if step.id != event.followup:
        yield f"adds step {step.id}, called {event.followup!r:.80}"
    if event.step and event.step not in run.completed:
        yield f"follows up step {event.step!r:.80}, which is not completed"


def ends(run: PlanRun, event: PlanCompleted | ReleasePrepared | PlanAbandoned) -> Iterator[str]:
    """Every step is completed, in the order told, and what is prepared was published; or somebody gave the plan up."""
    if isinstance(event, PlanAbandoned):
        if not event.by:
            yield "is given up by nobody"
        return
    if isinstance(event, ReleasePrepared):
        unpublished = [path for path in event.paths if path not in run.artifacts]
        if unpublished:
            yield f"prepares {', '.join(unpublished):.200}, which was never published"
        return
    if list(event.steps) != run.completed:
        yield f"says that {', '.join(event.steps):.200} were completed; it was {', '.join(run.completed):.200}"
    missing = [step.id for step in run.effective.steps if step.id not in run.completed]
    if missing:
        yield f"completes the plan without {', '.join(missing):.200}"


def given(answer: Blob, plan: Plan) -> Review:
    """The review that a model gave of a plan; ReviewError for an answer that is none."""
    return read_review(text_of(answer), step_id=plan.plan_id, risk=Risk.LOW)


def text_of(blob: Blob) -> str:
    """A text that a record names; EventError where it is not there."""
    return blob.data.decode()
