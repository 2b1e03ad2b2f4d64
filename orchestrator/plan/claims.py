"""What a plan's file says of its own lifecycle: the journal keeps that, and a file may claim no more than it."""

from __future__ import annotations

from orchestrator.faults import Fault
from orchestrator.plan.plan import Plan, PlanError
from orchestrator.plan.planrun import PlanRun
from orchestrator_events.plan import PlanAmended
from orchestrator_states.plan import PLAN

__all__ = ["refuse_claim"]

DRAFT = "draft"
REMEDY = "leave the key out, since the journal keeps it, or use the journal that knows"


def refuse_claim(plan: Plan, run: PlanRun | None) -> None:
    """Raise PlanError for a lifecycle that the plan, as it is now, never had in the journal (contract 5).

    One that it has left behind is no claim: nobody has to follow the lifecycle in the file by hand.
    """
    if plan.lifecycle in states_of(run):
        return
    state = "nothing is recorded of the plan there" if run is None else f"the plan is {run.state} there"
    message = f"says {plan.lifecycle}, which the journal does not know of, {state}: {REMEDY}"
    raise PlanError(f"plan {plan.plan_id}", (Fault("$.lifecycle", message),))


def states_of(run: PlanRun | None) -> set[str]:
    """The states that a plan had since it was drafted or amended last; a draft it is in its file all along."""
    found = {DRAFT}
    for record in () if run is None else run.records:
        if record.lifecycle == PLAN.name:
            found = {DRAFT} if isinstance(record.event, PlanAmended) else found
            found.add(str(record.target))
    return found
