"""What the phases of a workflow counted and learned: in words, as data, and as a file that other workflows take in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from orchestrator.cli.runplace import RunPlace
from orchestrator.cli.wording import count_of, duration
from orchestrator.documents import read_text
from orchestrator.workflow.components.learnings import store_of
from orchestrator.workflow.components.learningstore import LearningStore
from orchestrator.workflow.components.metrics import metrics_of
from orchestrator_events.record import Record

__all__ = ["collected_json", "collected_lines", "read_learnings"]


def collected_json(records: Sequence[Record]) -> dict[str, Any]:
    """Metrics of the whole workflow, and its learning records."""
    events = [record.event for record in records]
    found = metrics_of(events)
    return {
        "metrics": {
            "counts": dict(found.counts),
            "timings": {name: attrs.asdict(timing) for name, timing in found.timings.items()},
            "reported": attrs.asdict(found.reported),
            "estimated": attrs.asdict(found.estimated),
        },
        "learnings": [record.as_json() for record in store_of(events).records],
    }


def collected_lines(records: Sequence[Record], place: RunPlace, run_id: str) -> Iterator[str]:
    """What phases counted and timed, and how many failures were learned from; nothing where nothing was."""
    events = [record.event for record in records]
    found, store = metrics_of(events), store_of(events)
    if found.counts:
        yield "counts: " + ", ".join(f"{name} {value:,}" for name, value in found.counts.items())
    timed = {name: each for name, each in found.timings.items() if name != "phase"}
    if timed:
        times = (f"{name} {duration(each.total_us)} in {each.number:,}" for name, each in timed.items())
        yield f"times: {', '.join(times)}"
    if store.records:
        told = f"{count_of(len(store.records), 'learning record')}, {store.aggregate().resolved:,} resolved"
        yield f"{told}: {place.command('workflow learnings', run_id)}"


def read_learnings(path: Path | None) -> LearningStore | None:
    """The learning records in a file; DocumentError with every fault, None where no file is named."""
    return None if path is None else LearningStore.imported(read_text(path), str(path))
