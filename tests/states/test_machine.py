"""The machine that runs a table: it moves, notes or refuses, and offers no other way to move."""

from __future__ import annotations

import attrs
import pytest

from orchestrator_events.event import Event
from orchestrator_events.execution import (
    ApprovalAnswered,
    ExecutionFailed,
    ExecutionResumed,
    SubscriberFailed,
)
from orchestrator_events.run import AttemptPassed, BudgetExhausted
from orchestrator_states import RUN, IllegalTransitionError, Lifecycle, StateName, machine_of, note, on

PASSED = AttemptPassed(attempt=1, passed=("a",), duration_us=1, is_pinned=True)
FAILED = ExecutionFailed(reason="OSError: disk")
NOTED = SubscriberFailed(subscriber="log", event="prompt:ready", error="ValueError: x")


@attrs.define(eq=False)
class Walker:
    """A model that goes where it is told and remembers what it was told."""

    state: str
    seen: list[tuple[Event, str]] = attrs.Factory(list[tuple[Event, str]])

    def moved(self, event: Event, target: str) -> None:
        """Go to the target."""
        self.seen.append((event, target))
        self.state = target


def gate() -> Lifecycle:
    """A table with a condition on a boolean field."""
    return Lifecycle(
        name="gate",
        states=[StateName("waiting"), StateName("in"), StateName("out")],
        initial=StateName("waiting"),
        resting=[StateName("in"), StateName("out")],
        rows=[
            on(ApprovalAnswered, "waiting", "in", where={"is_approved": True, "answer": "yes"}),
            on(ApprovalAnswered, "waiting", "out", where={"is_approved": False}),
        ],
        notes=[note(SubscriberFailed, ("waiting", "in"))],
    )


def test_a_row_moves_the_model() -> None:
    """An event that has a row moves the model to the row's target, once."""
    walker = Walker("evaluating")
    machine_of(RUN).fire(walker, PASSED)
    assert (walker.state, walker.seen) == ("passed", [(PASSED, "passed")])


def test_a_note_keeps_the_state() -> None:
    """A noted event reaches the model with the state it is in as target."""
    walker = Walker("refining")
    machine_of(RUN).fire(walker, NOTED)
    assert (walker.state, walker.seen) == ("refining", [(NOTED, "refining")])


@pytest.mark.parametrize("into", ["prompting", "generating", "evaluating", "refining"])
@pytest.mark.parametrize("ended", ["exhausted", "cancelled", "failed"])
def test_where_picks_the_row(ended: str, into: str) -> None:
    """Of several rows of an event the one whose condition equals the event's field decides."""
    walker = Walker(ended)
    machine_of(RUN).fire(walker, ExecutionResumed(into=into))
    assert walker.state == into


@pytest.mark.parametrize(
    ("answered", "reached"),
    [
        (ApprovalAnswered(gate="g", is_approved=True, answer="yes"), "in"),
        (ApprovalAnswered(gate="g", is_approved=False, answer="yes"), "out"),
        (ApprovalAnswered(gate="g", is_approved=True, answer="maybe"), "waiting"),
    ],
    ids=["all fields equal", "other value", "one field differs"],
)
def test_every_field_of_where_must_be_equal(answered: ApprovalAnswered, reached: str) -> None:
    """A row with several conditions matches when all of them hold; without a match nothing moves."""
    walker = Walker("waiting")
    try:
        machine_of(gate()).fire(walker, answered)
    except IllegalTransitionError:
        assert walker.seen == []
    assert walker.state == reached


@pytest.mark.parametrize(
    ("state", "event"),
    [
        ("ready", PASSED),
        ("generating", PASSED),
        ("passed", FAILED),
        ("passed", ExecutionResumed(into="refining")),
        ("exhausted", ExecutionResumed(into="passed")),
        ("nonsense", PASSED),
    ],
    ids=[
        "too early",
        "wrong stage",
        "after the end",
        "resuming success",
        "resuming into rest",
        "no such state",
    ],
)
def test_an_illegal_event_is_refused_and_moves_nothing(state: str, event: Event) -> None:
    """An event without row or note raises with the culprit and what would be allowed, and nothing moved."""
    walker = Walker(state)
    with pytest.raises(IllegalTransitionError) as caught:
        machine_of(RUN).fire(walker, event)
    error = caught.value
    assert (error.lifecycle, error.state, error.event, error.allowed) == (
        "run",
        state,
        event,
        RUN.allowed(state),
    )
    assert (walker.state, walker.seen) == (state, [])


def test_an_event_that_the_table_never_names_is_refused() -> None:
    """An event of another lifecycle is refused like any other illegal one."""
    walker = Walker("waiting")
    with pytest.raises(IllegalTransitionError, match="budget:exhausted is illegal in state 'waiting'"):
        machine_of(gate()).fire(walker, BudgetExhausted(limit="tokens", detail=""))
    assert (walker.state, walker.seen) == ("waiting", [])


def test_the_message_names_what_is_allowed() -> None:
    """The error's text says what the state would have taken."""
    with pytest.raises(IllegalTransitionError) as caught:
        machine_of(gate()).fire(Walker("in"), PASSED)
    assert str(caught.value) == "gate: attempt:passed is illegal in state 'in'; allowed there: subscriber:failed"


def test_a_model_that_raises_stops_the_move() -> None:
    """What the model raises comes out as it is; the machine keeps no state of its own that could differ."""

    class Stubborn(Walker):
        def moved(self, event: Event, target: str) -> None:
            raise RuntimeError(f"{event.name} to {target}")

    stubborn = Stubborn("evaluating")
    with pytest.raises(RuntimeError, match="attempt:passed to passed"):
        machine_of(RUN).fire(stubborn, PASSED)
    assert stubborn.state == "evaluating"


def test_equal_tables_share_one_machine() -> None:
    """One machine is built per table digest, however often the table is built."""
    assert machine_of(gate()) is machine_of(gate())
    assert machine_of(gate()) is not machine_of(RUN)


def test_the_machine_knows_the_events_of_its_table_and_no_others() -> None:
    """There are no automatic transitions: no event leads anywhere that the table does not name."""
    machine = machine_of(RUN)
    named = {row.event for row in RUN.rows} | {each.event for each in RUN.notes}
    assert (set(machine.events), set(machine.states)) == (named, {str(state) for state in RUN.states})


def test_models_are_not_registered() -> None:
    """Firing leaves no trace of a model in the shared machine, so thousands of runs can use one."""
    machine = machine_of(RUN)
    machine.fire(Walker("evaluating"), PASSED)
    assert machine.models == []
