"""What a phase may change in a state, what the state of its domain may hold, and where the phase may go on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from orchestrator.faults import Fault, closest_name, step
from orchestrator.jsondata import JSON
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.phases import PhaseOutcome
from orchestrator.workflow.statetext import LARGEST_STATE, State, id_fault, metrics_faults, written

__all__ = ["outcome_faults", "update_faults"]

KEPT_BY_THE_ENGINE: Final = ("phase", "last_updated", "schema_version", "cascade_detected", "retry_count", "parameters")


def outcome_faults(domain: Domain, phase: str, state: State, outcome: PhaseOutcome) -> Iterator[Fault]:
    """What of an outcome cannot be taken; a phase that reports an error stays where it is, whatever it names."""
    yield from update_faults(domain, state, outcome.state_updates)
    if outcome.state_updates.get("error") is None:
        yield from next_faults(domain, phase, outcome.next_phase)


def next_faults(domain: Domain, phase: str, next_phase: str) -> Iterator[Fault]:
    """A next phase that is none, or may not follow; the fault names the choices."""
    choices = domain.choices_after(phase)
    if next_phase not in choices:
        kind = "may not follow" if next_phase in domain.ids else "is unknown after"
        message = f"next_phase {next_phase!r:.80} {kind} {phase}: choose one of {', '.join(choices)}"
        yield Fault("", message, closest_name(next_phase, choices))


def update_faults(domain: Domain, state: State, updates: Mapping[str, JSON]) -> Iterator[Fault]:
    """What a phase may not change, and what the state would then hold that its domain does not allow.

    A phase that reports an error may say how often it tried; the engine's own count stands.
    """
    allowed = ("retry_count",) if updates.get("error") is not None else ()
    for name in updates:
        path = step("$.state_updates", name)
        if name in KEPT_BY_THE_ENGINE and name not in allowed:
            yield Fault(path, "the engine keeps this field itself: leave it out")
    if "workflow_id" in updates:
        yield from identity_faults(state, updates["workflow_id"])
    if "metrics" in updates:
        yield from metrics_faults(updates["metrics"], "$.state_updates.metrics", state.get("metrics"))
    result = {**state, **updates}
    for fault in domain.state_faults(result):
        yield attrs.evolve(fault, path="$.state_updates" + fault.path.removeprefix("$"))
    size = len(written(result).encode())
    if size > LARGEST_STATE:
        yield Fault("$.state_updates", f"the state would have {size} bytes, at most {LARGEST_STATE} are kept")


def identity_faults(state: State, workflow_id: JSON) -> Iterator[Fault]:
    """The id is set once, by the phase that finds it."""
    known = state.get("workflow_id")
    if known is not None:
        yield Fault("$.state_updates.workflow_id", f"it is {known!r} and does not change: leave it out")
    elif fault := id_fault(workflow_id):
        yield Fault("$.state_updates.workflow_id", fault)
