"""Events of the plan orchestrator (contract 5): the life of a plan, and of each of its steps."""

from __future__ import annotations

from typing import Annotated, ClassVar

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Fact, Gate

__all__ = [
    "ArtifactPublished",
    "DecisionRecorded",
    "FollowUpAdded",
    "PlanAbandoned",
    "PlanAmended",
    "PlanCompleted",
    "PlanDrafted",
    "PlanLocked",
    "PlanRejected",
    "PlanReviewed",
    "PlanStarted",
    "ReleasePrepared",
    "StepBlocked",
    "StepCompared",
    "StepEscalated",
    "StepExecuted",
    "StepFailed",
    "StepFaltered",
    "StepRequested",
    "StepReviewed",
    "StepRouted",
    "StepSettled",
    "StepStarted",
    "StepUnblocked",
    "StepVerified",
    "WorkFinished",
    "WorkStarted",
]


@attrs.frozen(kw_only=True)
class StepRequested(Gate):
    """May this step be executed?"""

    name: ClassVar[str] = "step:requested"
    step: Annotated[str, "Id of the step."]
    prompt: Annotated[str, "The step prompt."]


@attrs.frozen(kw_only=True)
class PlanDrafted(Fact):
    """A plan was loaded, or a draft of it was changed."""

    name: ClassVar[str] = "plan:drafted"
    plan_id: Annotated[str, "Id of the plan."]
    plan: Annotated[Blob, "The plan as RFC 8785 JSON."]


@attrs.frozen(kw_only=True)
class PlanRejected(Fact):
    """A review asks for changes to the plan."""

    name: ClassVar[str] = "plan:rejected"
    review: Annotated[Blob, "The review, a JSON object."]
    reviewer: Annotated[str, "Who reviewed."]


@attrs.frozen(kw_only=True)
class PlanReviewed(Fact):
    """A review approved the plan."""

    name: ClassVar[str] = "plan:reviewed"
    review: Annotated[Blob, "The review, a JSON object."]
    reviewer: Annotated[str, "Who reviewed."]


@attrs.frozen(kw_only=True)
class PlanLocked(Fact):
    """The plan is locked: from here on its content cannot change unseen."""

    name: ClassVar[str] = "plan:locked"
    digest: Annotated[str, "SHA-256 of the plan as RFC 8785 JSON."]
    by: Annotated[str, "Who locked it."]


@attrs.frozen(kw_only=True)
class PlanStarted(Fact):
    """The locked plan is being executed."""

    name: ClassVar[str] = "plan:started"
    digest: Annotated[str, "SHA-256 of the plan that is executed."]


@attrs.frozen(kw_only=True)
class PlanAmended(Fact):
    """The plan was changed; it has to be reviewed and locked again."""

    name: ClassVar[str] = "plan:amended"
    reason: Annotated[str, "Why, in words."]
    difference: Annotated[Blob, "What changed, in words."]
    plan: Annotated[Blob, "The plan as RFC 8785 JSON."]
    by: Annotated[str, "Who amended it."]


@attrs.frozen(kw_only=True)
class PlanCompleted(Fact):
    """Every step is completed; the release manager is told."""

    name: ClassVar[str] = "plan:completed"
    plan_id: Annotated[str, "Id of the plan."]
    steps: Annotated[tuple[str, ...], "Ids of the completed steps, in the order they were completed."]


@attrs.frozen(kw_only=True)
class PlanAbandoned(Fact):
    """The plan is given up."""

    name: ClassVar[str] = "plan:abandoned"
    reason: Annotated[str, "Why, in words."]
    by: Annotated[str, "Who gave it up."]


@attrs.frozen(kw_only=True)
class StepSettled(Fact):
    """A step of the plan came to rest."""

    name: ClassVar[str] = "step:settled"
    step: Annotated[str, "Id of the step."]
    state: Annotated[str, "completed, blocked or failed."]
    charge: Annotated[Charge, "What the step was charged so far, with all runs inside it."] = attrs.Factory(Charge)
    reason: Annotated[str, "Why it is not completed; empty when it is."] = ""


@attrs.frozen(kw_only=True)
class FollowUpAdded(Fact):
    """A step was approved with conditions: a follow-up step carries them."""

    name: ClassVar[str] = "followup:added"
    step: Annotated[str, "Id of the step that was approved."]
    followup: Annotated[str, "Id of the follow-up step."]
    definition: Annotated[Blob, "The follow-up step, a JSON object."]


@attrs.frozen(kw_only=True)
class DecisionRecorded(Fact):
    """A decision that outlives the plan; an architecture decision record holds it."""

    name: ClassVar[str] = "decision:recorded"
    title: Annotated[str, "The decision in a line."]
    record: Annotated[Blob, "The record, Markdown."]
    path: Annotated[str, "Where it stands, below the context bus."]


@attrs.frozen(kw_only=True)
class ArtifactPublished(Fact):
    """An output is on the context bus."""

    name: ClassVar[str] = "artifact:published"
    step: Annotated[str, "Id of the step it comes from; empty for the plan's own."]
    path: Annotated[str, "Where it stands, below the context bus."]
    content: Annotated[Blob, "What it holds."]
    standing: Annotated[str, "unreviewed, reviewed or rejected."]


@attrs.frozen(kw_only=True)
class ReleasePrepared(Fact):
    """Release notes, rollout and rollback plan are prepared."""

    name: ClassVar[str] = "release:prepared"
    paths: Annotated[tuple[str, ...], "Where they stand, below the context bus."]
    missing: Annotated[tuple[str, ...], "What a deployment still lacks, in words."] = ()


@attrs.frozen(kw_only=True)
class StepRouted(Fact):
    """The routing policy chose who works on the step."""

    name: ClassVar[str] = "step:routed"
    step: Annotated[str, "Id of the step."]
    rule: Annotated[str, "Rule that matched."]
    reason: Annotated[str, "Why it matched, in words."]
    primary: Annotated[str, "Name of the primary model."]
    secondary: Annotated[str, "Name of the secondary model; empty without one."]
    reviewer: Annotated[str, "Name of the reviewer."]
    mode: Annotated[str, "single, dual-run or post-pass."]
    reviews: Annotated[tuple[str, ...], "Looks beside the reviewer's that the policy requires."] = ()
    failures: Annotated[int, "Failures of the implementer so far."]


@attrs.frozen(kw_only=True)
class StepStarted(Fact):
    """The intent to execute a step, committed before it is."""

    name: ClassVar[str] = "step:started"
    step: Annotated[str, "Id of the step."]
    number: Annotated[int, "Number of this execution, fixes included, from 1."]
    model: Annotated[str, "Name of the model."]
    role: Annotated[str, "Role it has."]
    executor: Annotated[str, "generator, agent or conformance."]
    prompt: Annotated[Blob, "The step prompt as sent."]


@attrs.frozen(kw_only=True)
class WorkStarted(Fact):
    """A run inside the step is about to start, with one model; committed, with what it may cost, before it does."""

    name: ClassVar[str] = "work:started"
    step: Annotated[str, "Id of the step."]
    child_id: Annotated[str, "Run id of what does the work."]
    purpose: Annotated[str, "primary, secondary, post-pass, comparison, qa, security or review."]
    number: Annotated[int, "Number of the execution it belongs to, fixes included, from 1."]
    model: Annotated[str, "Name of the model."]
    role: Annotated[str, "Role it has."]
    executor: Annotated[str, "generator, agent or conformance."]
    prompt: Annotated[Blob, "The prompt as sent."]
    reservation: Annotated[Reservation, "What of the plan's budget is set aside for it."]
    again: Annotated[str, "Why the same is asked again, as an answer could not be read; empty the first time."] = ""
    decisions: Annotated[tuple[DecisionTaken, ...], "What subscribers changed in the request."] = ()


@attrs.frozen(kw_only=True)
class WorkFinished(Fact):
    """A run inside the step is over: what it gave, and what it cost the plan."""

    name: ClassVar[str] = "work:finished"
    step: Annotated[str, "Id of the step."]
    key: Annotated[str, "Key of the reservation that this settles."]
    child_id: Annotated[str, "Run id of what did the work."]
    purpose: Annotated[str, "primary, secondary, post-pass, comparison, qa, security or review."]
    model: Annotated[str, "Name of the model."]
    output: Annotated[Blob | None, "What it gave, exactly as it came; None where it gave nothing."] = None
    form: Annotated[str, "text, or files: a JSON object of path to text."] = "text"
    answer: Annotated[Blob | None, "What it said of its files; None where the output is the answer."] = None
    error: Annotated[str, "Why it gave nothing; empty where it gave something."] = ""
    charge: Annotated[Charge, "What it was charged, with whatever it started."]
    duration_us: Annotated[int, "Time it took, microseconds."]


@attrs.frozen(kw_only=True)
class StepExecuted(Fact):
    """The step has an output."""

    name: ClassVar[str] = "step:executed"
    step: Annotated[str, "Id of the step."]
    model: Annotated[str, "Name of the model."]
    output: Annotated[Blob, "The output, exactly as it came."]
    form: Annotated[str, "text, or files: a JSON object of path to text."] = "text"
    charge: Annotated[Charge, "What it was charged, itself and whatever it started."]
    duration_us: Annotated[int, "Time it took, microseconds."]


@attrs.frozen(kw_only=True)
class StepFaltered(Fact):
    """An execution gave no output: it counts as a failure of the implementer."""

    name: ClassVar[str] = "step:faltered"
    step: Annotated[str, "Id of the step."]
    error: Annotated[str, "Why."]
    charge: Annotated[Charge, "What it was charged, itself and whatever it started."]


@attrs.frozen(kw_only=True)
class StepCompared(Fact):
    """Both candidates of a dual run were compared, evals first, then the reviewer; both are kept."""

    name: ClassVar[str] = "step:compared"
    step: Annotated[str, "Id of the step."]
    candidates: Annotated[tuple[Blob, ...], "The outputs, primary first."]
    chosen: Annotated[int, "Number of the chosen one, from 0."]
    reason: Annotated[str, "Why it was chosen."]


@attrs.frozen(kw_only=True)
class StepVerified(Fact):
    """QA and security looked at real captured output."""

    name: ClassVar[str] = "step:verified"
    step: Annotated[str, "Id of the step."]
    has_passed: Annotated[bool, "Whether every required gate passed."]
    evidence: Annotated[Blob, "JSON list of what was run and what it wrote, by digest."]
    failed: Annotated[tuple[str, ...], "Gates that did not pass."] = ()


@attrs.frozen(kw_only=True)
class StepReviewed(Fact):
    """The reviewer judged output and artifacts."""

    name: ClassVar[str] = "step:reviewed"
    step: Annotated[str, "Id of the step."]
    outcome: Annotated[str, "approved, changes_requested or blocked; approved with conditions is approved."]
    review: Annotated[Blob, "The review, a JSON object."]
    reviewer: Annotated[str, "Name of the reviewer."]
    has_conditions: Annotated[bool, "True when a follow-up step carries conditions."] = False


@attrs.frozen(kw_only=True)
class StepEscalated(Fact):
    """The implementer failed twice: a stronger model takes over, with the task to refactor."""

    name: ClassVar[str] = "step:escalated"
    step: Annotated[str, "Id of the step."]
    failures: Annotated[int, "Failures of the implementer so far."]
    model: Annotated[str, "Name of the model that takes over."]


@attrs.frozen(kw_only=True)
class StepBlocked(Fact):
    """The step cannot go on until the plan is amended."""

    name: ClassVar[str] = "step:blocked"
    step: Annotated[str, "Id of the step."]
    reason: Annotated[str, "Why."]


@attrs.frozen(kw_only=True)
class StepFailed(Fact):
    """The last fix failed, too."""

    name: ClassVar[str] = "step:failed"
    step: Annotated[str, "Id of the step."]
    reason: Annotated[str, "Why."]


@attrs.frozen(kw_only=True)
class StepUnblocked(Fact):
    """The step begins anew: the plan was amended, or somebody has mended what stood in its way."""

    name: ClassVar[str] = "step:unblocked"
    step: Annotated[str, "Id of the step."]
    digest: Annotated[str, "SHA-256 of the plan that is locked."]
    reason: Annotated[str, "What was mended, in words; empty where the plan was amended."] = ""
    by: Annotated[str, "Who lets it begin anew; empty where the plan was amended."] = ""
