"""What people are told, word for word: the contract's literal messages are pinned here."""

from __future__ import annotations

import pytest

from orchestrator.workflow import lines_of
from orchestrator.workflow.messages import Line, grounds_in, marked_lines_of
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionResumed
from orchestrator_events.record import Record
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    PhaseAbandoned,
    PhaseEntered,
    StateRead,
    StateUnreadable,
    StateUnwritable,
    SummaryReported,
    WorkflowCompleted,
)

PLACE = {"path": "state/x-state.json", "message": "state/x-state.json was changed"}


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (WorkflowCompleted(phase="done"), ["Workflow complete!"]),
        (ExecutionResumed(into="paused", reason="Resuming from phase: b"), ["Resuming from phase: b"]),
        (
            DecisionNeeded(about="phase error", message="Error: no network", options=("retry", "skip", "abort")),
            ["Error: no network", "retry, skip, or abort?"],
        ),
        (
            StateUnreadable(problem="not found", path="x", message="there is no x", raw=Blob("")),
            ["State file not found. Cannot resume.", "there is no x"],
        ),
        (
            StateUnreadable(problem="corrupt", path="x", message="x: no JSON", raw=Blob("{\nhalf")),
            ["State corrupted. Outputting raw for recovery.", "x: no JSON", "{", "half"],
        ),
        (
            StateUnreadable(problem="mismatch", raw=Blob("theirs\n"), expected=Blob("ours\n"), **PLACE),
            [
                "The state file is not what the journal says, and nobody explained why.",
                "state/x-state.json was changed",
                "In the file:",
                "theirs",
                "In the journal:",
                "ours",
            ],
        ),
        (
            StateUnwritable(path="x", message="x: disk full", state=Blob('{\n  "phase": "b"\n}\n')),
            ["Failed to persist state", "x: disk full", "{", '  "phase": "b"', "}"],
        ),
        (SummaryReported(phase="b", output=Blob("one\ntwo")), ["one", "two"]),
        (
            CascadeDetected(
                failures_in_window=3, threshold=3, window=5, diagnosis="The network.", recommendation="Wait."
            ),
            ["Cascade detected: 3 failures in a window of 5 outcomes.", "The network.", "Wait."],
        ),
        (
            PhaseAbandoned(phase="b", number=1, reason="it was cut off", charge=Charge()),
            ["The outcome of phase b is unknown: it was cut off"],
        ),
        (BudgetExhausted(limit="attempts", detail="5 of 5"), ["The budget's limit 'attempts' is reached: 5 of 5"]),
        (PhaseEntered(phase="b"), []),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else "",
)
def test_lines(event: Event, lines: list[str]) -> None:
    """Each event is told in these lines and no others."""
    assert list(lines_of(event)) == lines


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (
            SummaryReported(phase="b", output=Blob("one\ntwo")),
            [Line("one", is_theirs=True), Line("two", is_theirs=True)],
        ),
        (
            DecisionNeeded(about="phase error", message="Error: x\x1cretry?\u2028y", options=("retry", "abort")),
            [Line("Error: x"), Line("retry?", is_theirs=True), Line("y", is_theirs=True), Line("retry, or abort?")],
        ),
        (
            StateUnreadable(problem="mismatch", raw=Blob("theirs"), expected=Blob("ours"), **PLACE),
            [
                Line("The state file is not what the journal says, and nobody explained why."),
                Line("state/x-state.json was changed"),
                Line("In the file:"),
                Line("theirs", is_theirs=True),
                Line("In the journal:"),
                Line("ours"),
            ],
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else "",
)
def test_text_of_others_is_marked(event: Event, lines: list[Line]) -> None:
    """A line that is all text of others can be told from ours, wherever a line may end."""
    assert list(marked_lines_of(event)) == lines


NEEDED = DecisionNeeded(about="x", message="x", options=("a", "b"))
BROKEN = StateUnreadable(problem="not found", path="x", message="there is no x", raw=Blob(""))


@pytest.mark.parametrize(
    ("events", "grounds"),
    [
        ([BROKEN, NEEDED], ["State file not found. Cannot resume.", "there is no x"]),
        ([BROKEN, NEEDED, ExecutionResumed(into="paused", reason="again")], [*lines_of(BROKEN)]),
        ([BROKEN, NEEDED, StateRead(phase="b", state=Blob("{}"), source="file"), NEEDED], []),
        ([BROKEN, NEEDED, BudgetExhausted(limit="attempts", detail="5 of 5")], []),
        ([NEEDED], []),
        ([], []),
    ],
)
def test_grounds(events: list[Event], grounds: list[str]) -> None:
    """What the last decision rests on is found again, and nothing that an earlier one did."""
    records = [Record("run", number, 0, "workflow", "checking", "paused", event) for number, event in enumerate(events)]
    assert [line.text for line in grounds_in(records)] == grounds
