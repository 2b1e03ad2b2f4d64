"""The table form: what building refuses, all at once, and what a table exports."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from orchestrator_events.execution import ApprovalAnswered, ExecutionFailed, ExecutionStart
from orchestrator_events.run import AttemptFailed, AttemptPassed, PromptReady
from orchestrator_states import RUN, Lifecycle, LifecycleError, Note, Row, StateName, note, on
from orchestrator_states.table_json import to_json

Build = Callable[[], Lifecycle]


def state(name: str) -> StateName:
    """A state's name with its type."""
    return StateName(name)


def door(*more: Row, notes: tuple[Note, ...] = (), resting: tuple[str, ...] = ("open",)) -> Lifecycle:
    """A door that opens once, with rows and notes added to it."""
    return Lifecycle(
        name="door",
        states=[state("shut"), state("open")],
        initial=state("shut"),
        resting=[state(name) for name in resting],
        rows=[on(AttemptPassed, "shut", "open"), *more],
        notes=notes,
    )


def unreachable() -> Lifecycle:
    """A table with a state that nothing leads to."""
    rows = [on(AttemptPassed, "shut", "open"), on(AttemptFailed, "lost", "open")]
    states = [state("shut"), state("open"), state("lost")]
    return Lifecycle(name="door", states=states, initial=state("shut"), resting=[state("open")], rows=rows)


def stuck() -> Lifecycle:
    """A table with an open state that leads nowhere."""
    rows = [on(AttemptPassed, "shut", "open"), on(AttemptFailed, "shut", "stuck")]
    states = [state("shut"), state("open"), state("stuck")]
    return Lifecycle(name="door", states=states, initial=state("shut"), resting=[state("open")], rows=rows)


def twice() -> Lifecycle:
    """A table that declares a state twice."""
    states = [state("shut"), state("open"), state("open")]
    rows = [on(AttemptPassed, "shut", "open")]
    return Lifecycle(name="door", states=states, initial=state("shut"), resting=[state("open")], rows=rows)


FAULTY: dict[str, tuple[Build, str]] = {
    "a state twice": (twice, "a state is declared twice"),
    "an unknown target": (
        lambda: door(on(AttemptFailed, "shut", "ajar")),
        "row attempt:failed names the unknown state 'ajar'",
    ),
    "an unknown source": (
        lambda: door(on(AttemptFailed, "ajar", "open")),
        "row attempt:failed names the unknown state 'ajar'",
    ),
    "an unknown resting state": (
        lambda: door(resting=("open", "ajar")),
        "resting names the unknown state 'ajar'",
    ),
    "an unknown noted state": (
        lambda: door(notes=(note(PromptReady, "ajar"),)),
        "note prompt:ready names the unknown state 'ajar'",
    ),
    "an unknown field": (
        lambda: door(on(AttemptFailed, "shut", "open", where={"mood": "bad"})),
        "row attempt:failed asks for the field 'mood', which the event does not have",
    ),
    "an unknown event": (
        lambda: door(Row("door:kicked", (state("shut"),), state("open"))),
        "unknown event 'door:kicked': the record comes from a newer release, or is not ours",
    ),
    "two rows that both match": (
        lambda: door(on(AttemptPassed, "shut", "shut")),
        "two rows of attempt:passed both match in shut",
    ),
    "a row that is a case of another": (
        lambda: door(on(AttemptPassed, "shut", "shut", where={"attempt": 1})),
        "two rows of attempt:passed both match in shut",
    ),
    "an event that moves and notes": (
        lambda: door(notes=(note(AttemptPassed, "shut"),)),
        "attempt:passed both moves and notes in shut",
    ),
    "an event noted twice": (
        lambda: door(notes=(note(PromptReady, "shut"), note(PromptReady, ("shut", "open")))),
        "an event is noted twice in one state",
    ),
    "an unreachable state": (unreachable, "nothing leads to lost"),
    "an open state without a way to rest": (stuck, "stuck leads to no resting state"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_building_refuses_a_faulty_table(fault: str) -> None:
    """Each kind of fault is refused, and the message says what and where."""
    build, message = FAULTY[fault]
    with pytest.raises(LifecycleError) as caught:
        build()
    assert (caught.value.lifecycle, caught.value.faults) == ("door", (message,))


def test_all_faults_are_told_at_once() -> None:
    """One error lists everything that is wrong with a table, so that it is mended in one go."""
    with pytest.raises(LifecycleError) as caught:
        door(
            on(AttemptPassed, "shut", "shut"),
            on(AttemptFailed, "shut", "open", where={"mood": "bad"}),
            notes=(note(PromptReady, "shut"), note(PromptReady, "shut")),
        )
    assert caught.value.faults == (
        "row attempt:failed asks for the field 'mood', which the event does not have",
        "two rows of attempt:passed both match in shut",
        "an event is noted twice in one state",
    )
    assert str(caught.value) == "lifecycle 'door': " + "; ".join(caught.value.faults)


def test_rows_of_one_event_may_differ_in_a_field() -> None:
    """Two rows of one event in one state are fine when a field tells them apart."""
    answered = door(
        on(ApprovalAnswered, "shut", "open", where={"is_approved": True}),
        on(ApprovalAnswered, "shut", "shut", where={"is_approved": False}),
    )
    assert answered.allowed("shut") == ("approval:answered", "attempt:passed")


@pytest.mark.parametrize(
    "table",
    [RUN, door(on(ApprovalAnswered, "shut", "open", where={"is_approved": True}))],
    ids=["run", "door"],
)
def test_json_round_trip_keeps_table_and_digest(table: Lifecycle) -> None:
    """A table that went through JSON text is equal to the one that was written, digest included."""
    read = Lifecycle.from_json(json.loads(to_json(table)))
    assert (read, read.digest, to_json(read)) == (table, table.digest, to_json(table))


def test_json_of_a_table_is_plain_and_stable() -> None:
    """The export is indented ASCII with sorted keys, and names sources, target and conditions of each row."""
    table = door(notes=(note(ExecutionStart, ("shut", "open")),))
    assert json.loads(to_json(table)) == {
        "initial": "shut",
        "name": "door",
        "notes": [{"event": "execution:start", "states": ["shut", "open"]}],
        "resting": ["open"],
        "rows": [{"event": "attempt:passed", "sources": ["shut"], "target": "open", "where": {}}],
        "states": ["shut", "open"],
    }
    assert to_json(table).startswith('{\n  "initial": "shut",\n  "name": "door",\n')


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"name": "door"},
        {**door().as_json(), "rows": "shut"},
        {**door().as_json(), "rows": [{"event": "attempt:passed"}]},
        {**door().as_json(), "states": 3},
    ],
    ids=["empty", "only a name", "rows as text", "row without states", "states as number"],
)
def test_malformed_json_is_a_lifecycle_error(data: dict[str, object]) -> None:
    """Reading a table that is no table answers with one kind of error, never with a bare KeyError."""
    with pytest.raises(LifecycleError, match="malformed table"):
        Lifecycle.from_json(data)


def test_equal_tables_have_one_digest_and_any_change_another() -> None:
    """The digest depends on the table alone, and on all of it."""
    digests = {
        door().digest,
        door(notes=(note(PromptReady, "shut"),)).digest,
        door(on(ExecutionFailed, "shut", "open")).digest,
        door(on(AttemptFailed, "shut", "open", where={"stage": "generation"})).digest,
        door(on(AttemptFailed, "shut", "open", where={"stage": "evaluation"})).digest,
    }
    assert (len(digests), door().digest) == (5, door().digest)


def test_allowed_names_what_moves_and_what_is_noted() -> None:
    """`allowed` lists the events of rows and notes of a state, sorted, and nothing for a stranger."""
    table = door(notes=(note(ExecutionStart, "shut"),))
    assert {name: table.allowed(name) for name in ("shut", "open", "ajar")} == {
        "shut": ("attempt:passed", "execution:start"),
        "open": (),
        "ajar": (),
    }


def test_the_run_rests_for_good_only_in_passed() -> None:
    """Of the run's resting states only `passed` has no way out."""
    left = {source for row in RUN.rows for source in row.sources}
    assert [name for name in RUN.resting if name not in left] == ["passed"]
