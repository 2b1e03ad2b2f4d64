"""The course of a run: visits, moves, and time that is nobody's between two invocations."""

from __future__ import annotations

from orchestrator.course import course_of
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionEnd, ExecutionResumed, ExecutionStart
from orchestrator_events.record import Record
from orchestrator_events.run import PromptReady, PromptRefined
from orchestrator_states.path import PathOverlay

START = ExecutionStart(table_digest="", prompt=Blob("{}"), identity="{}", budget=Budget())
END = ExecutionEnd(response="", status="error")
READY = PromptReady(attempt=1, prompt=Blob("p"), strategy="s", parameters="{}")


def walk(*steps: tuple[int, Event, str]) -> list[Record]:
    """Records that lead from state to state."""
    records: list[Record] = []
    for number, (at, event, target) in enumerate(steps, 1):
        source = records[-1].target if records else "ready"
        records.append(Record("7f3a", number, at, "run", source, target, event))
    return records


def test_downtime_is_nobodys_time() -> None:
    """What lies between an end, or a crash, and the next start is in no state; resting states have no time."""
    records = walk(
        (0, START, "prompting"),
        (5, READY, "generating"),
        (25, END, "generating"),
        (1_000, START, "generating"),
        (1_001, ExecutionResumed(into="generating"), "generating"),
        (1_011, PromptRefined(attempt=2, feedback="details"), "prompting"),
        (9_000, START, "prompting"),
        (9_002, READY, "passed"),
        (9_005, END, "passed"),
    )
    assert course_of(records) == PathOverlay(
        visits={"ready": 1, "prompting": 2, "generating": 1, "passed": 1},
        moves={
            ("ready", "execution:start", "prompting"): 1,
            ("prompting", "prompt:ready", "generating"): 1,
            ("generating", "prompt:refined", "prompting"): 1,
            ("prompting", "prompt:ready", "passed"): 1,
        },
        times_us={"prompting": 5 + 2, "generating": 20 + 11},
    )


def test_nothing_recorded() -> None:
    """No records, no course."""
    assert course_of([]) == PathOverlay()


def test_a_clock_that_goes_back_costs_nothing() -> None:
    """A clock that was set back between two records takes no time away."""
    records = walk((50, START, "prompting"), (10, READY, "generating"), (15, END, "generating"))
    assert course_of(records).times_us == {"prompting": 0, "generating": 5}
