"""The workflow's state as text: what its file holds, byte for byte, and how it is read back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, TypeAlias

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.history import LAST
from orchestrator.jsondata import JSON
from orchestrator.paths import UnsafeRunIdError, refuse_unsafe_run_id

__all__ = [
    "LARGEST_STATE",
    "NEW",
    "SCHEMA_VERSION",
    "State",
    "StateDocumentError",
    "id_fault",
    "is_same",
    "iso",
    "metrics_faults",
    "read_given_state",
    "read_state",
    "state_faults",
    "written",
]

State: TypeAlias = Mapping[str, JSON]

LARGEST_STATE: Final = 900_000
"""Largest state, bytes of its file; a little below what is read of one."""
SCHEMA_VERSION: Final = 1
"""Version of the state's own form, in `schema_version` of every state but the initial one."""
METRICS: Final = ("workflow_version", "start_time")
"""What the field `metrics` holds of every state."""
NEW: Final = "workflow-new"
"""What a workflow is called as long as it has no id."""
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class StateDocumentError(DocumentError):
    """A state cannot be read; `faults` lists everything that is wrong with it."""


def written(state: State) -> str:
    """The state as its file holds it: JSON with an indentation of two, ending in a line feed."""
    return json.dumps(dict(state), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def read_state(text: str, source: str) -> dict[str, JSON]:
    """The state in a text; StateDocumentError with every fault when it holds none."""
    return without_faults(text, source, is_given=False)


def read_given_state(text: str, source: str) -> dict[str, JSON]:
    """A state that somebody gives: it may lack `last_updated` and `error`, as the initial one does (contract 4)."""
    return without_faults(text, source, is_given=True)


def without_faults(text: str, source: str, *, is_given: bool) -> dict[str, JSON]:
    """The state in a text; StateDocumentError with every fault."""
    try:
        data = parse_document(text, ".json", source)
    except DocumentError as error:
        raise StateDocumentError(source, error.faults) from None
    faults = tuple(state_faults(data, is_given=is_given))
    if faults:
        raise StateDocumentError(source, faults)
    state: dict[str, JSON] = data
    return state


def state_faults(data: JSON, *, is_given: bool = False) -> Iterator[Fault]:
    """What is wrong with the fields that every state has (contract 4): phase, workflow_id, last_updated, error.

    The initial state has neither `last_updated` nor `error`, and one that is given needs neither.
    """
    if not isinstance(data, dict):
        yield Fault("$", f"expected an object, found {type(data).__name__}")
        return
    if not isinstance(data.get("phase"), str):
        yield Fault("$.phase", "required key is missing, or is no string")
    yield from id_faults(data)
    is_initial = data.get("workflow_id") is None and "last_updated" not in data
    if not is_initial:
        yield from stamp_faults(data, is_given=is_given)
    error = data.get("error")
    if error is not None and not isinstance(error, str):
        yield Fault("$.error", f"expected a string or null, found {type(error).__name__}")
    version = data.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION or isinstance(version, bool):
        yield Fault("$.schema_version", f"{version!r:.40} is not {SCHEMA_VERSION}: the state is of another release")


def id_faults(data: State) -> Iterator[Fault]:
    """What is wrong with the id of the workflow."""
    if "workflow_id" not in data:
        yield Fault("$.workflow_id", "required key is missing: give null where there is no id yet")
    elif data["workflow_id"] is not None and (fault := id_fault(data["workflow_id"])):
        yield Fault("$.workflow_id", fault)


def id_fault(workflow_id: JSON) -> str:
    """Why this cannot be a workflow's id, which names a file; empty when it can."""
    try:
        refuse_unsafe_run_id(workflow_id)
    except UnsafeRunIdError as error:
        return str(error).replace("a run id", "a workflow's id")
    taken = {NEW: "what a workflow without an id is called", LAST: "what the newest run is called"}
    return f"{workflow_id!r} is {taken[workflow_id]}: choose another" if workflow_id in taken else ""


def stamp_faults(data: State, *, is_given: bool) -> Iterator[Fault]:
    """What is wrong with the time of the last change and with what a later state always has."""
    stamp = data.get("last_updated")
    if "error" not in data and not is_given:
        yield Fault("$.error", "required key is missing: give null where there is no error")
    if "last_updated" not in data and is_given:
        return
    if not isinstance(stamp, str):
        yield Fault("$.last_updated", "required key is missing, or is no string")
        return
    try:
        datetime.fromisoformat(stamp)
    except ValueError:
        yield Fault("$.last_updated", f"{stamp!r:.40} is no time in ISO 8601")


def metrics_faults(metrics: JSON, path: str, begun: JSON = None) -> Iterator[Fault]:
    """What the metrics lack that a state has from the first one on (contract 4), and what is not as in `begun`."""
    if not isinstance(metrics, dict):
        yield Fault(path, f"expected an object with {' and '.join(METRICS)}, found {type(metrics).__name__}")
        return
    known = begun if isinstance(begun, dict) else {}
    for name in METRICS:
        if name not in metrics:
            yield Fault(step(path, name), "required key is missing: a field is replaced as a whole, so give all of it")
        elif metrics[name] != known.get(name, metrics[name]):
            yield Fault(step(path, name), f"it is {known[name]!r:.80} and does not change")


def is_same(text: str, other: str) -> bool:
    """Whether two texts hold the same JSON value; indentation and order of keys do not matter."""
    if text == other:
        return True
    try:
        return bool(canonical(text) == canonical(other))
    except (ValueError, RecursionError):
        return False


def canonical(text: str) -> str:
    """A JSON text in one form; true is not 1 in it."""
    return json.dumps(json.loads(text), sort_keys=True)


def iso(at: int) -> str:
    """A time in microseconds since the Unix epoch as ISO 8601 in UTC."""
    return (EPOCH + timedelta(microseconds=at)).isoformat().replace("+00:00", "Z")
