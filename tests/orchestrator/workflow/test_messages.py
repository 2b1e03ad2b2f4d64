"""What people are told, word for word: the contract's literal messages are pinned here."""

from __future__ import annotations

import pytest

from orchestrator.workflow import lines_of
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionResumed
from orchestrator_events.run import BudgetExhausted
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    PhaseAbandoned,
    PhaseEntered,
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
            ["Cascade detected: 3 of the last 5 outcomes are failures.", "The network.", "Wait."],
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
