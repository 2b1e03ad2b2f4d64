"""What a plan records of steps that rest, at once or, where it was cut off before it could, as soon as it is opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from orchestrator.plan.executors import Workroom
from orchestrator.plan.followups import followup_of
from orchestrator.plan.planrun import PlanRun, written_step
from orchestrator.plan.recorded import review_in
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.workshop import end_of
from orchestrator_events.event import Event
from orchestrator_events.plan import FollowUpAdded, StepSettled
from orchestrator_states.plan import PlanState, StepState

__all__ = ["REST", "UNSUCCESSFUL", "has_ended_under", "is_untold", "settled", "untold"]

UNSUCCESSFUL = (StepState.BLOCKED.value, StepState.FAILED.value)
REST = (StepState.COMPLETED.value, *UNSUCCESSFUL)


def has_ended_under(run: PlanRun, step: StepRun) -> bool:
    """Whether a step is blocked or failed under the plan in force, and was not so before an amendment already."""
    told = run.settled_at.get(step.step.id, 0)
    is_new = not told or told > run.started_at or step.unblocked_by == run.locked_digest
    return step.state in UNSUCCESSFUL and is_new


def is_untold(run: PlanRun, step: StepRun) -> bool:
    """Whether a plan that was cut off could not say how a step ended the last time."""
    told = run.settled.get(step.step.id)
    is_old = told is None or run.settled_at[step.step.id] < run.started_at
    return is_old or told is None or (told.reason, told.charge) != (step.reason, step.charge)


def untold(run: PlanRun, steps: Mapping[str, StepRun]) -> Iterator[StepRun]:
    """Steps that rest, of which a plan that was cut off could not say so."""
    if run.state != PlanState.EXECUTING:
        return
    for step_id, step in steps.items():
        is_late = is_untold(run, step) and has_ended_under(run, step)
        if is_late or (step.state == StepState.COMPLETED and step_id not in run.completed):
            yield step


async def settled(room: Workroom, run: PlanRun, step: StepRun) -> list[Event]:
    """What is to be recorded of a step that rests, with the follow-up of its conditions; nothing of any other."""
    if step.state not in REST:
        return []
    events: list[Event] = []
    if step.run_id not in run.ended:
        ending = await end_of(room, step.run_id)
        events += [] if ending is None else [ending]
    reason = "" if step.state == StepState.COMPLETED else step.reason
    events.append(StepSettled(step=step.step.id, state=step.state, charge=step.charge, reason=reason))
    reviewed = step.reviewed
    if step.state == StepState.COMPLETED and reviewed is not None and reviewed.has_conditions:
        followup = followup_of(run, step.step, review_in(reviewed.review))
        if followup is not None:
            definition = written_step(followup)
            events.append(FollowUpAdded(step=step.step.id, followup=followup.id, definition=definition))
    return events
