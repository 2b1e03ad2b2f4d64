"""Step 4, as data: the initial state, what an outcome changes in a state, and the shallow merge of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

import attrs

from orchestrator.jsondata import JSON
from orchestrator.workflow.statetext import SCHEMA_VERSION, State, iso
from orchestrator_events.workflow import PhaseFailed, PhaseFinished

__all__ = [
    "WORKFLOW_VERSION",
    "Merged",
    "initial_state",
    "merged",
    "same",
    "summary_of",
    "updates_after",
]

WORKFLOW_VERSION: Final = "1.0"
MISSING: Final = object()


@attrs.frozen
class Merged:
    """A state with updates in it, and the names of the fields that changed, sorted."""

    state: dict[str, JSON]
    fields_updated: tuple[str, ...]


def initial_state(first: str, at: int, parameters: Mapping[str, JSON]) -> dict[str, JSON]:
    """The state of a new workflow (contract 4); what it was started with is in it where there is any."""
    state: dict[str, JSON] = {
        "phase": first,
        "workflow_id": None,
        "metrics": {"workflow_version": WORKFLOW_VERSION, "start_time": iso(at)},
    }
    return {**state, "parameters": dict(parameters)} if parameters else state


def merged(state: State, updates: Mapping[str, JSON], at: int) -> Merged:
    """The state with the updates over it, key by key and no deeper, and the time of the change."""
    base = {"schema_version": SCHEMA_VERSION, "error": None}
    result: dict[str, JSON] = {**state, **{name: state.get(name, value) for name, value in base.items()}}
    result |= {**updates, "last_updated": iso(at)}
    changed = (name for name in result if not same(state.get(name, MISSING), result[name]))
    return Merged(result, tuple(sorted(changed)))


def updates_after(state: State, outcome: PhaseFinished | PhaseFailed, *, is_cascade: bool) -> dict[str, JSON]:
    """What an outcome changes in a state: success clears the error, failure says what and how often, and stays."""
    updates: dict[str, JSON] = json.loads(outcome.updates.text or "{}") if outcome.updates is not None else {}
    if isinstance(outcome, PhaseFailed):
        updates |= {"phase": outcome.phase, "error": outcome.error, "retry_count": outcome.retry_count}
    else:
        updates |= {"phase": outcome.next_phase, "error": None}
        if "retry_count" in state:
            updates["retry_count"] = 0
    if is_cascade or "cascade_detected" in state:
        updates["cascade_detected"] = is_cascade
    return updates


def summary_of(outcome: PhaseFinished | PhaseFailed) -> str:
    """What people are told of an outcome (contract 4)."""
    text = outcome.output.text or "" if outcome.output is not None else ""
    return f"Error encountered: {outcome.error}" if isinstance(outcome, PhaseFailed) and not text else text


def same(value: JSON, other: JSON) -> bool:
    """Whether two values are one in JSON, where true is not 1."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(same(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(same, value, other))
    return type(value) is type(other) and bool(value == other)
