"""The end of a plan: the release manager prepares the rollout, and the plan is completed (contract 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.plan.correcting import review_in
from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.planrun import PlanRun, written_step
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
    paths = paths_of(run.run_id)
    run.fire(PlanCompleted(plan_id=run.current.plan_id, steps=tuple(run.completed)))
    for path, text in zip(paths, documents(prepared), strict=True):
        run.fire(ArtifactPublished(step="", path=path, content=Blob(text), standing="unreviewed"))
    run.fire(ReleasePrepared(paths=paths, missing=prepared.missing))
    await conclude_plan(it)


async def release_step(it: Conductor) -> bool:
    """Notify the release manager: lay out what is known, and add the step in which he works; False without one."""
    run = it.run
    if not it.has_release_manager or RELEASE_MANAGER in run.effective.by_id:
        return False
    paths = paths_of(run.run_id)
    texts = documents(prepare_release(run.effective, outcomes(it)))
    events: list[Event] = [
        ArtifactPublished(step="", path=path, content=Blob(text), standing="unreviewed")
        for path, text in zip(paths, texts, strict=True)
    ]
    step = Step(
        id=RELEASE_MANAGER,
        role="Release Manager",
        title="Prepare the rollout",
        task=TASK,
        task_type=TaskType.PLANNING,
        risk_level=Risk.LOW,
        acceptance_criteria=CRITERIA,
        depends_on=tuple(step.id for step in run.effective.steps),
        inputs=paths,
    )
    await it.tell(*events, FollowUpAdded(step="", followup=step.id, definition=written_step(step)))
    return True


def paths_of(run_id: str) -> tuple[str, ...]:
    """Where the three documents lie, below the studio."""
    return tuple(f"RUNS/{run_id}/{name}" for name in NAMES)


def without_manager(run: PlanRun) -> Plan:
    """The plan whose rollout is prepared."""
    steps = tuple(step for step in run.effective.steps if step.id != RELEASE_MANAGER)
    return attrs.evolve(run.effective, steps=steps)


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
                output_path=f"{it.studio.bus.prefix(it.run.run_id, step_id)}_output.md",
            )
        )
    return found
