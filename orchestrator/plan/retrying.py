"""Trying a step again under the plan as it is: what stood in its way was no fault of the plan, and is mended."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from orchestrator.plan.errors import RetryError
from orchestrator.plan.planrun import PlanRun
from orchestrator.plan.settling import has_ended_under
from orchestrator.plan.steprun import StepRun
from orchestrator_states.plan import PlanState

__all__ = ["Retry", "require_retriable"]


@attrs.frozen(kw_only=True)
class Retry:
    """Steps that somebody lets begin anew, who it is, and why."""

    steps: frozenset[str] = frozenset()
    reason: str = ""
    by: str = ""


def require_retriable(retry: Retry, run: PlanRun, steps: Mapping[str, StepRun]) -> None:
    """Raise RetryError unless every step is blocked or has failed under the plan in force, and a reason is given.

    What a reviewer blocked waits for an amendment (contract 5): the plan is what he found wanting.
    """
    if retry.steps and not retry.reason.strip():
        raise RetryError("a retry needs a reason: say what stood in the way and is mended")
    for step_id in sorted(retry.steps):
        known = steps.get(step_id)
        if run.state != PlanState.EXECUTING or known is None or not has_ended_under(run, known):
            ended = [name for name, each in steps.items() if has_ended_under(run, each)]
            able = ", ".join(ended) if ended and run.state == PlanState.EXECUTING else "none"
            what = "pending" if known is None else known.state
            raise RetryError(
                f"step {step_id!a:.120} is {what}: only blocked and failed steps are retried: {able}", step_id
            )
        if known.reviewed is not None and known.reviewed.outcome == "blocked":
            raise RetryError(f"step {step_id} was blocked by its reviewer: amend the plan", step_id)
