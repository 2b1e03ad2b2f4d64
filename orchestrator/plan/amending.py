"""Amendments: a plan is changed where anybody can see it, and is reviewed and locked again (contract 5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from orchestrator.plan.decisionrecords import DecisionRecord
from orchestrator.plan.difference import AmendmentError, difference
from orchestrator.plan.plan import Plan
from orchestrator.plan.planrun import PlanRun, with_steps
from orchestrator.plan.releasing import RELEASE_MANAGER
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.studio import Studio
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.plan import PlanAmended
from orchestrator_states.plan import StepState

__all__ = ["amended"]

S = StepState
UNDER_WAY = (S.EXECUTING, S.VERIFYING, S.REVIEWING, S.FIXING)


def amended(
    run: PlanRun, steps: Mapping[str, StepRun], new: Plan, reason: str, by: str, studio: Studio
) -> Iterator[Event]:
    """The amendment and its decision record.

    Raises AmendmentError for another plan, for no change, for a change of what is completed or under way, and while
    the release manager works: what he was shown would no longer be the plan.
    """
    old = run.current
    if new.plan_id != old.plan_id:
        raise AmendmentError(f"the plan is {old.plan_id}, the amendment is of {new.plan_id}: keep the plan's id")
    change = difference(old, new)
    if change.is_empty:
        raise AmendmentError(
            "the amendment changes nothing: change the plan first, or, where what stood in a step's way is mended, "
            "retry the step: `plan resume --retry`"
        )
    if not reason.strip():
        raise AmendmentError("an amendment needs a reason: say why the plan is changed")
    change.require_untouched(run.completed)
    managers = run.followups.keys() & {RELEASE_MANAGER}
    require_at_rest((*change.removed, *(each.step_id for each in change.changed), *managers), steps)
    require_not_released(managers, steps)
    for step in run.followups.values():  # an id of an added step may be taken by a follow-up
        if step.id in new.by_id:
            raise AmendmentError(f"there is a follow-up step {step.id} already: choose another id", step.id)
    lines = "\n".join(change.lines())
    with_steps(new, list(run.followups.values()))  # raises PlanError where the two do not fit
    yield PlanAmended(reason=reason, difference=Blob(lines), plan=Blob(new.canonical), by=by)
    record = DecisionRecord(
        title=f"Amendment {len(run.amendments) + 1} of plan {old.plan_id}",
        context=reason,
        decision=lines,
        consequences="The plan is reviewed and locked again before it goes on; completed steps stay as they are.",
    )
    yield studio.decided(record)


def require_at_rest(touched: Iterable[str], steps: Mapping[str, StepRun]) -> None:
    """Raise AmendmentError when a step is touched in the middle of its execution."""
    for step_id in touched:
        known = steps.get(step_id)
        if known is not None and known.state in UNDER_WAY:
            message = (
                f"step {step_id} is under way ({known.state}): resume the plan until it rests, or leave it as it is"
            )
            raise AmendmentError(message, step_id)


def require_not_released(managers: Iterable[str], steps: Mapping[str, StepRun]) -> None:
    """Raise AmendmentError when the release manager is done, so that nothing but the plan's completion is left."""
    for step_id in managers:
        known = steps.get(step_id)
        if known is not None and known.state == S.COMPLETED:
            message = f"step {step_id} is completed: resume the plan, which completes it, and put changes in another"
            raise AmendmentError(message, step_id)
