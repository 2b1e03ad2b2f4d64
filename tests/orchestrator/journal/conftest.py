"""Batches to journal, as a run would make them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.event import Event
from orchestrator_events.execution import ExecutionEnd
from orchestrator_events.journal import Batch
from orchestrator_events.record import Record
from orchestrator_events.run import CandidateGenerated, EvaluationStarted

BatchOf = Callable[..., Batch]


@pytest.fixture
def batch_of() -> BatchOf:
    """`batch_of(run_id, first, *texts, epoch=0, ends=False)`: candidates that are evaluated, and the end."""
    return make_batch


def make_batch(run_id: str, first: int, *texts: str, epoch: int = 0, ends: bool = False) -> Batch:
    """Two records a text, one for the end."""
    events: list[Event] = []
    for text in texts:
        events += [candidate(text), EvaluationStarted(attempt=1)]
    if ends:
        events.append(ExecutionEnd(response="", status="completed"))
    records = [
        Record(run_id, sequence, 1_700_000_000_000_000 + sequence, "run", "generating", "evaluating", event)
        for sequence, event in enumerate(events, first)
    ]
    return Batch(run_id, tuple(records), epoch)


def candidate(text: str) -> Event:
    """A candidate of this text."""
    return CandidateGenerated(
        attempt=1, key="key", candidate=Blob(text), form="text", charge=Charge(input_tokens=3), duration_us=5
    )
