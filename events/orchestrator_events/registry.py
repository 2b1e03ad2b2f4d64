"""Wire name to event class, resolved at first use so that importing the engine loads one family only."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from orchestrator_events.errors import EventError
from orchestrator_events.event import Event

__all__ = ["event_class", "event_names"]

EXECUTION = "orchestrator_events.execution"
RUN = "orchestrator_events.run"

REGISTRY: dict[str, str] = {
    "approval:answered": f"{EXECUTION}:ApprovalAnswered",
    "approval:requested": f"{EXECUTION}:ApprovalRequested",
    "attempt:failed": f"{RUN}:AttemptFailed",
    "attempt:passed": f"{RUN}:AttemptPassed",
    "budget:exhausted": f"{RUN}:BudgetExhausted",
    "budget:overrun": f"{RUN}:BudgetOverrun",
    "budget:raised": f"{EXECUTION}:BudgetRaised",
    "candidate:generated": f"{RUN}:CandidateGenerated",
    "child:ended": f"{EXECUTION}:ChildEnded",
    "child:started": f"{EXECUTION}:ChildStarted",
    "evaluation:requested": f"{RUN}:EvaluationRequested",
    "evaluation:started": f"{RUN}:EvaluationStarted",
    "execution:cancelled": f"{EXECUTION}:ExecutionCancelled",
    "execution:end": f"{EXECUTION}:ExecutionEnd",
    "execution:failed": f"{EXECUTION}:ExecutionFailed",
    "execution:interrupted": f"{EXECUTION}:ExecutionInterrupted",
    "execution:resumed": f"{EXECUTION}:ExecutionResumed",
    "execution:start": f"{EXECUTION}:ExecutionStart",
    "generation:abandoned": f"{RUN}:GenerationAbandoned",
    "generation:requested": f"{RUN}:GenerationRequested",
    "generation:started": f"{RUN}:GenerationStarted",
    "orchestrator:complete": f"{EXECUTION}:OrchestratorComplete",
    "prompt:ready": f"{RUN}:PromptReady",
    "prompt:refined": f"{RUN}:PromptRefined",
    "refinement:requested": f"{RUN}:RefinementRequested",
    "subscriber:failed": f"{EXECUTION}:SubscriberFailed",
}


def event_names() -> tuple[str, ...]:
    """Every wire name, sorted."""
    return tuple(sorted(REGISTRY))


@cache
def event_class(name: str) -> type[Event]:
    """The class behind a wire name; raises EventError for a name no release of ours has written."""
    place = REGISTRY.get(name)
    if place is None:
        raise EventError(f"unknown event {name!r}: the record comes from a newer release, or is not ours")
    module, _, attribute = place.partition(":")
    found: type[Event] = getattr(import_module(module), attribute)
    return found
