"""A workflow's events in words, for `show` and `replay`."""

from __future__ import annotations

import pytest

import orchestrator_events.workflow as events
from orchestrator.narration import told
from orchestrator.workflownarration import TOLD
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.event import Event, Fact

DIGITS = Charge(input_tokens=5, output_tokens=2)


def test_every_event_is_told() -> None:
    """No event of a workflow is left without words."""
    classes = [getattr(events, name) for name in events.__all__]
    assert {each.name for each in classes if issubclass(each, Fact)} == set(TOLD)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (events.PhaseStarted(phase="b", number=2, executor="callable"), "b, execution 2, by callable"),
        (
            events.PhaseFailed(phase="b", error="no fire", retry_count=2, charge=DIGITS),
            "b failed, 2 in a row: no fire",
        ),
        (
            events.PhaseFinished(
                phase="b", next_phase="c", updates=Blob("{}"), output=Blob(""), duration_us=1, charge=DIGITS
            ),
            "b finished, next is c, charged 5 + 2 tokens, 0 micro-units",
        ),
        (
            events.StateMerged(phase="c", fields_updated=("error", "phase"), state=Blob("{}")),
            "in c; changed: error, phase",
        ),
        (
            events.DecisionNeeded(about="cascade", message="Fix\nit.", options=("fix", "skip")),
            "cascade: Fix it. (fix, skip)",
        ),
        (
            events.DecisionTakenByUser(choice="skip", goes_on=True, by="person", phase="c", state=Blob("{}")),
            "person chose skip; on with c; with another state",
        ),
        (
            events.RetryAttempted(operation="test", attempt=2, limit=3, is_success=False, error="red", fix="paint"),
            "test: attempt 2 of 3 failed: red; after the fix: paint",
        ),
        (
            events.TodosUpdated(todos=Blob('[{"content": "Phase: b", "status": "in_progress"}, 7]')),
            "Phase: b",
        ),
        (events.TodosUpdated(todos=Blob("{")), ""),
        (events.TodosUpdated(todos=Blob("[]")), "nothing in progress"),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else "",
)
def test_told(event: Event, words: str) -> None:
    """Which phase, state or decision it was, and why; what is damaged is told as far as it goes."""
    assert told(event) == words
