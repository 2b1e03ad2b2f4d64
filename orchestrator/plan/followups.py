"""The step that carries the conditions of an approval: a follow-up (contract 5)."""

from __future__ import annotations

from typing import Final

import attrs

from orchestrator.plan.plan import PlanError, Step
from orchestrator.plan.planrun import PlanRun, with_steps
from orchestrator.plan.review import Review
from orchestrator.plan.vocabulary import is_identifier, output_name

__all__ = ["followup_of"]

ENDING: Final = "-followup"


def followup_of(run: PlanRun, step: Step, review: Review) -> Step | None:
    """The follow-up of a step that was approved with conditions.

    None for a step that is a follow-up itself: what a second reviewer asks beyond is an open risk that keeps the
    release from being ready, or a plan would grow for ever. It makes the step's files anew, unless another step does.
    """
    if step.id in run.followups or step.id in run.followed:
        return None
    followup = attrs.evolve(
        step,
        id=followup_id(run, step.id),
        title=f"Conditions of step {step.id}",
        task=f"Step {step.id} was approved with conditions: meet them, no more.\n\nIts task was: {step.task}",
        acceptance_criteria=review.conditions,
        depends_on=(step.id,),
        inputs=step.outputs or (output_name(step.id),),
        ambiguity=False,
    )
    for candidate in (followup, attrs.evolve(followup, outputs=())):
        try:
            with_steps(run.effective, [candidate])
        except PlanError:
            continue
        return candidate
    return None


def followup_id(run: PlanRun, step_id: str) -> str:
    """An id that no step has."""
    taken = {step.id.casefold() for step in run.effective.steps}
    number = 1
    while True:
        ending = ENDING if number == 1 else f"{ENDING}-{number}"
        found = f"{step_id[: 100 - len(ending)]}{ending}"
        if found.casefold() not in taken and is_identifier(found):
            return found
        number += 1
