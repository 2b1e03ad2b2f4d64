"""The end of a plan: the release manager prepares the rollout, and the plan is completed (contract 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.planrun import PlanRun, with_steps, written_step
from orchestrator.plan.recorded import review_in, text_of
from orchestrator.plan.release import Release, StepOutcome, prepare_release
from orchestrator.plan.verifying import results_of
from orchestrator.plan.vocabulary import Risk, TaskType
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.plan import ArtifactPublished, FollowUpAdded, PlanCompleted, ReleasePrepared

if TYPE_CHECKING:
    from orchestrator.plan.driver import Conductor

__all__ = ["RELEASE_MANAGER", "release", "release_step"]

RELEASE_MANAGER: Final = "release-manager"
"""Id of the step in which the release manager works."""
TASK: Final = (
    "All steps of the plan are completed. Check the release notes, the rollout plan and the rollback plan among the "
    "inputs, say what is unclear or missing, and give the order in which the rollout is announced and done. Nothing is "
    "deployed without a rollback plan."
)
CRITERIA: Final = (
    "Every step that changes something is named in the rollout, in an order that its dependencies allow.",
    "For every such step it is said how it is rolled back, and when.",
)
NAMES: Final = ("release_notes.md", "rollout_plan.md", "rollback_plan.md")


async def release(it: Conductor) -> None:
    """Prepare release notes, rollout and rollback plan, and complete the plan, in one transaction."""
    from orchestrator.plan.driver import conclude_plan

    run = it.run
    prepared = prepare_release(without_manager(run), outcomes(it))
    paths = paths_of(it)
    run.fire(PlanCompleted(plan_id=run.current.plan_id, steps=tuple(run.completed)))
    for path, text in zip(paths, documents(prepared), strict=True):
        run.fire(ArtifactPublished(step="", path=path, content=Blob(text), standing="unreviewed"))
    run.fire(ReleasePrepared(paths=paths, missing=prepared.missing))
    await conclude_plan(it)


async def release_step(it: Conductor) -> bool:
    """Notify the release manager: lay out what is known, and add his step or go on with it; False without one.

    His step may have been blocked before the plan was amended: what he is shown is then laid out anew.
    """
    run = it.run
    known = run.followups.get(RELEASE_MANAGER)
    if known is None and (not it.has_release_manager or RELEASE_MANAGER in run.effective.by_id):
        return False
    if RELEASE_MANAGER in run.completed:
        return False
    plan = without_manager(run)
    step = managers_step(plan, paths_of(it))
    texts = zip(step.inputs, documents(prepare_release(plan, outcomes(it))), strict=True)
    events: list[Event] = [
        ArtifactPublished(step="", path=path, content=Blob(text), standing="unreviewed")
        for path, text in texts
        if path not in run.artifacts or text_of(run.artifacts[path].content) != text
    ]
    if step != known:
        events.append(FollowUpAdded(step="", followup=step.id, definition=written_step(step)))
    await it.tell(*events)
    return True


def managers_step(plan: Plan, documents: tuple[str, ...]) -> Step:
    """The step in which the release manager works."""
    return Step(
        id=RELEASE_MANAGER,
        role="Release Manager",
        title="Prepare the rollout",
        task=TASK,
        task_type=TaskType.PLANNING,
        risk_level=Risk.LOW,
        acceptance_criteria=CRITERIA,
        depends_on=tuple(step.id for step in plan.steps),
        inputs=documents,
    )


def paths_of(it: Conductor) -> tuple[str, ...]:
    """Where the three documents lie, below the studio."""
    return tuple(it.studio.bus.run_path(it.run.run_id, name) for name in NAMES)


def without_manager(run: PlanRun) -> Plan:
    """The plan whose rollout is prepared; one without follow-ups is, to its digest, the plan that was locked."""
    current = attrs.evolve(run.current, steps=tuple(each for each in run.current.steps if each.id != RELEASE_MANAGER))
    added = [step for step in run.followups.values() if step.id not in {RELEASE_MANAGER, *current.by_id}]
    return with_steps(current, added) if added else current


def documents(prepared: Release) -> tuple[str, str, str]:
    """The three documents."""
    return prepared.notes, prepared.rollout, prepared.rollback


def outcomes(it: Conductor) -> list[StepOutcome]:
    """How each step ended."""
    found: list[StepOutcome] = []
    for step_id in it.run.completed:
        if step_id == RELEASE_MANAGER:
            continue
        step = it.steps[step_id]
        found.append(
            StepOutcome(
                step_id=step_id,
                is_completed=True,
                model="" if step.executed is None else step.executed.model,
                attempts=step.number,
                review=None if step.reviewed is None else review_in(step.reviewed.review),
                gates=results_of(step),
                met_by=followup if (followup := it.run.followed.get(step_id, "")) in it.run.completed else "",
                output_path=f"{it.studio.bus.prefix(it.run.run_id, step_id)}_output.md",
            )
        )
    return found
