"""The parts that compute and touch nothing: outcomes, merges, the window, the to-do list, schemas; and the file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.workflow import CascadeRule, Domain, PhaseOutcome, StateFile, todos_of
from orchestrator.workflow.cascade import failures_in_window, is_cascade
from orchestrator.workflow.jsonshape import schema_faults, value_faults
from orchestrator.workflow.merging import initial_state, merged
from orchestrator.workflow.phases import PhaseOutcomeError, outcome_of, outcome_of_answer
from orchestrator.workflow.statefile import StateFileError
from orchestrator.workflow.statetext import is_same, read_given_state, read_state, written
from orchestrator.workflow.todos import Todo, read_todos, written_todos
from orchestrator.workflow.updating import update_faults

NEW_YEAR = 1_767_225_600_000_000
STATE = {"phase": "b", "workflow_id": "x", "last_updated": "2026-01-01T00:00:00Z", "error": None, "a": {"b": 1}}
DOMAIN = Domain(name="demo", phases=("a", "b", "c", "done"), title="Demo")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(st.booleans()), st.integers(1, 6), st.integers(0, 4))
def test_the_window_slides(outcomes: list[bool], threshold: int, more: int) -> None:
    """A cascade is so many failures among the last outcomes, whatever came before; a success ends none begins one."""
    rule = CascadeRule(threshold, threshold + more)
    last = outcomes[max(0, len(outcomes) - rule.window) :]
    assert failures_in_window(outcomes, rule) == sum(not each for each in last)
    assert is_cascade(outcomes, rule) == (sum(not each for each in last) >= threshold and not last[-1])


@pytest.mark.parametrize(("threshold", "window"), [(0, 5), (6, 5), (True, 5), (3, 0), (2.0, 5)])
def test_windows_that_are_none(threshold: Any, window: Any) -> None:
    """A window that can never be reached, or is no number, is refused."""
    with pytest.raises(ValueError, match=r"threshold|window"):
        CascadeRule(threshold, window)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
def test_outcomes_survive(updates: dict[str, Any]) -> None:
    """Plain JSON updates come through a check and through an answer as they are."""
    updates.pop("error", None)
    data = {"next_phase": "b", "state_updates": updates, "output": "x"}
    assert outcome_of(data) == PhaseOutcome("b", updates, "x") == outcome_of_answer(json.dumps(data))


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        (None, "returned NoneType"),
        (PhaseOutcome("b", {"x": {1, 2}}), "not a JSON value"),
        (PhaseOutcome("b", {"x": float("nan")}), "not finite"),
        (PhaseOutcome("b", {"x": 2**60}), "beyond 2"),
        (PhaseOutcome("b", {"x": "\ud800"}), "lone surrogate"),
        (PhaseOutcome("b", {}, "\ud800"), "lone surrogate"),
        (PhaseOutcome("b", {}, "x" * 100_001), "at most 100000"),
        (PhaseOutcome("b", {"x": "y" * 1_000_000}), "more than 900000 bytes"),
        (PhaseOutcome(3), "expected a string, found int"),  # type: ignore[arg-type]
        ({"next_phase": "b", "state_updates": {}, "output": "", "more": 1}, "unknown key"),
        ({"next_phase": "b", "state_updates": {"error": 7}, "output": ""}, "a string or null"),
    ],
)
def test_outcomes_that_are_none(returned: object, said: str) -> None:
    """Whatever leaves a phase is checked, and refused in words."""
    with pytest.raises(PhaseOutcomeError, match=said):
        outcome_of(returned)


def test_a_shallow_merge() -> None:
    """A merge replaces whole fields, says which changed, and stamps the time."""
    result = merged(STATE, {"a": {"c": 2}, "phase": "c", "same": None}, NEW_YEAR + 1_000_000)
    assert result.state["a"] == {"c": 2}
    assert result.state["last_updated"] == "2026-01-01T00:00:01Z"
    assert result.fields_updated == ("a", "last_updated", "phase", "same", "schema_version")


def test_true_is_not_one() -> None:
    """A field that changes from 1 to true has changed."""
    assert "n" in merged({**STATE, "n": 1}, {"n": True}, NEW_YEAR).fields_updated
    assert not is_same('{"n": 1}', '{"n": true}')


@pytest.mark.parametrize(
    "name", ["phase", "last_updated", "workflow_id", "schema_version", "cascade_detected", "retry_count", "parameters"]
)
def test_the_engines_fields(name: str) -> None:
    """Fields that the engine keeps are refused in a phase's updates."""
    assert [fault.path for fault in update_faults(DOMAIN, STATE, {name: "y"})] == [f"$.state_updates.{name}"]


@pytest.mark.parametrize(
    ("metrics", "path"),
    [
        (None, ""),
        ([], ""),
        ({}, ".workflow_version"),
        ({"workflow_version": "2.0", "start_time": "x"}, ".workflow_version"),
        ({"workflow_version": "1.0", "start_time": "y", "more": 1}, ".start_time"),
    ],
)
def test_the_metrics_of_every_state(metrics: object, path: str) -> None:
    """A phase may add to the metrics, and neither lose nor change what the initial state has in them (contract 4)."""
    begun = {"workflow_version": "1.0", "start_time": "x"}
    state = {**STATE, "metrics": begun}
    assert list(update_faults(DOMAIN, state, {"metrics": {**begun, "more": 1}})) == []
    first = next(iter(update_faults(DOMAIN, state, {"metrics": metrics})))
    assert first.path == f"$.state_updates.metrics{path}"


@pytest.mark.parametrize("workflow_id", ["../x", "", None, 7, "workflow-new", "last", "a b", "con", []])
def test_ids_that_are_none(workflow_id: object) -> None:
    """An id that could not name a file is refused, even from the phase that may set it."""
    new = {**STATE, "workflow_id": None}
    assert list(update_faults(DOMAIN, new, {"workflow_id": "epic-1"})) == []
    assert len(list(update_faults(DOMAIN, new, {"workflow_id": workflow_id}))) == 1


@pytest.mark.parametrize(
    ("workflow_id", "said"),
    [
        ("last", "'last' is what the newest run is called: choose another"),
        ("workflow-new", "'workflow-new' is what a workflow without an id is called: choose another"),
        ("ünï", "'ünï' cannot be a workflow's id: use at most 128 of the letters A-Z"),
        ("a\u202e", r"'a\u202e' cannot be a workflow's id"),
    ],
)
def test_what_is_said_of_ids_that_are_none(workflow_id: str, said: str) -> None:
    """An id is shown as it was written, as far as a terminal can show it, and is no word that means another run."""
    (fault,) = update_faults(DOMAIN, {**STATE, "workflow_id": None}, {"workflow_id": workflow_id})
    assert fault.message.startswith(said)


def test_the_domains_own_fields() -> None:
    """Every merge is checked against the schema that the domain declares."""
    schema = {"type": "object", "properties": {"queue": {"type": "array", "items": {"type": "string"}}}}
    domain = Domain(name="demo", phases=("a", "done"), state={**schema, "additionalProperties": False})
    faults = list(update_faults(domain, STATE | {"a": None}, {"queue": ["x", 1], "other": 1}))
    assert [fault.path for fault in faults] == [
        "$.state_updates.a",
        "$.state_updates.queue[1]",
        "$.state_updates.other",
    ]


def test_schemas() -> None:
    """A schema with what is not checked is refused; one without says everything that does not fit."""
    assert len(list(schema_faults({"typ": 1, "type": "text", "items": [], "required": "x"}, "$"))) == 4
    schema = {"required": ["a"], "properties": {"b": {"enum": [1, "x"]}}, "additionalProperties": {"type": "integer"}}
    faults = [str(fault) for fault in value_faults({"b": True, "c": 1.5}, schema)]
    assert faults == [
        "$.a: required key is missing",
        "$.b: expected one of 1, 'x'",
        "$.c: expected integer, found number",
    ]


def test_names_of_required_keys_are_strings() -> None:
    """A schema that requires what is no name is refused when it is loaded, and says where."""
    faults = [str(fault) for fault in schema_faults({"items": {"required": ["a", [1], True]}}, "$")]
    assert [fault.partition(":")[0] for fault in faults] == ["$.items.required[1]", "$.items.required[2]"]


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (1.0, {"type": "integer"}, True),
        (1.5, {"type": "integer"}, False),
        (True, {"type": "integer"}, False),
        (1.0, {"enum": [1]}, True),
        ([True], {"enum": [[1]]}, False),
        ({"a": {"b": 1}}, {"enum": [{"a": {"b": True}}]}, False),
        ({"a": [1, {"b": False}]}, {"enum": [{"a": [1.0, {"b": False}]}]}, True),
        (0, {"enum": [False]}, False),
    ],
)
def test_values_are_compared_as_json_schema_does(value: object, schema: dict[str, Any], fits: bool) -> None:
    """1.0 is an integer and is 1; true is neither, however deep it stands."""
    assert (not list(value_faults(value, schema))) is fits


def test_the_list() -> None:
    """Phases before the current one are completed, those after it pending, and the item is under way."""
    view = todos_of(DOMAIN, {**STATE, "current_item": "login page"})
    assert (view.title, view.todos) == (
        "Workflow: x - Demo",
        (
            Todo("Phase: a", "completed"),
            Todo("Phase: b", "in_progress"),
            Todo("Item: login page", "in_progress"),
            Todo("Phase: c", "pending"),
            Todo("Phase: done", "pending"),
        ),
    )
    assert read_todos(written_todos(view)) == view


def test_the_list_of_a_finished_one() -> None:
    """Of a finished workflow everything is completed."""
    view = todos_of(DOMAIN, {**STATE, "phase": "done"})
    assert {todo.status for todo in view.todos} == {"completed"}


@given(st.dictionaries(st.text(), VALUES, max_size=4))
def test_states_survive(own: dict[str, Any]) -> None:
    """A state is read as it was written."""
    own = {name: value for name, value in own.items() if name not in {*STATE, "schema_version"}}
    assert read_state(written({**STATE, **own}), "x") == {**STATE, **own}


def test_the_initial_state() -> None:
    """The initial state needs neither a time nor an error field; a later one does."""
    state = initial_state("a", NEW_YEAR, {})
    assert read_state(written(state), "x") == state
    with pytest.raises(Exception, match="last_updated"):
        read_state(written({**state, "workflow_id": "x"}), "x")


def test_a_given_state() -> None:
    """A state that somebody gives may be as the initial one is, also with an id; what it has is checked."""
    state = {**initial_state("a", NEW_YEAR, {}), "workflow_id": "x"}
    assert read_given_state(written(state), "x") == state
    with pytest.raises(Exception, match="no time in ISO 8601"):
        read_given_state(written({**state, "last_updated": "yesterday"}), "x")


def test_the_file(tmp_path: Path) -> None:
    """A write replaces the file and keeps what was there; the same text again changes nothing."""
    file = StateFile(tmp_path / "state", "x")
    assert file.read() is None
    for text in ("one", "two", "two"):
        file.write(text)
    assert (file.read(), file.previous.read_text()) == ("two", "one")
    assert sorted(path.name for path in file.directory.iterdir()) == ["x-state.json", "x-state.json.previous"]
    assert file.path.stat().st_mode & 0o777 == 0o600


def test_a_rename(tmp_path: Path) -> None:
    """A file gets its id in one step, and never the place of another."""
    file = StateFile(tmp_path)
    file.write("one")
    renamed = file.rename("x")
    assert (file.is_there, renamed.read()) == (False, "one")
    file.write("two")
    with pytest.raises(StateFileError, match="another workflow has this id"):
        file.rename("x")
    assert (file.read(), renamed.read()) == ("two", "one")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_write_that_fails(tmp_path: Path) -> None:
    """A write that fails leaves the file as it was."""
    file = StateFile(tmp_path, "x")
    file.write("one")
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(StateFileError, match="cannot be written"):
            file.write("two")
    finally:
        tmp_path.chmod(0o700)
    assert file.read() == "one"


def test_what_is_no_file(tmp_path: Path) -> None:
    """A directory, a link and a file that is too large are refused, not read."""
    for kind in ("directory", "link", "large"):
        file = StateFile(tmp_path, kind)
        if kind == "directory":
            file.path.mkdir()
        elif kind == "link":
            file.path.symlink_to(tmp_path)
        else:
            file.path.write_bytes(b"x" * 1_000_001)
        with pytest.raises(StateFileError):
            file.read()
