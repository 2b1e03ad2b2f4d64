"""What a phase may change in a state, and what the state of its domain may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import attrs

from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON
from orchestrator.workflow.domain import Domain
from orchestrator.workflow.statetext import LARGEST_STATE, State, id_fault, written

__all__ = ["update_faults"]

KEPT_BY_THE_ENGINE: Final = ("phase", "last_updated", "schema_version", "cascade_detected", "retry_count", "parameters")


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
