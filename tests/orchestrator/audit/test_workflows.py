"""The audit of a workflow: what does not follow from the records before it is found, each by the named check."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import read_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock
from orchestrator.workflow import Domain, PhaseOutcome, Policy, Workflow
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.journal import Batch
from orchestrator_events.record import Record

Change = Callable[[Any], Event]


@pytest.fixture
def records(tmp_path: Path) -> tuple[Record, ...]:
    """A workflow that failed into a cascade, was fixed, and is done."""
    fails = [ValueError("no network")] * 3

    def work(*_: object) -> PhaseOutcome:
        if fails:
            raise fails.pop()
        return PhaseOutcome("done", {"files": ["a.py"]}, "Worked.")

    calls = {"a": lambda *_: PhaseOutcome("b", {"workflow_id": "x"}, "Parsed."), "b": work}
    domain = Domain(name="demo", phases=("a", "b", "done"), state_directory=tmp_path / "state")
    journal, policy = MemoryJournal(), Policy(phase_error="retry")
    workflow = Workflow(domain, phases=calls, journal=journal, clock=ManualClock(), policy=policy)
    workflow.run()
    return workflow.resume("x", "fix").records


def test_taken_up_again(tmp_path: Path) -> None:
    """A workflow that was aborted while it waited, and is resumed, goes on where its table says."""
    calls: dict[str, Any] = {"a": lambda *_: {}}
    domain = Domain(name="demo", phases=("a", "done"), state_directory=tmp_path / "state")
    workflow = Workflow(domain, phases=calls, journal=MemoryJournal(), clock=ManualClock())
    run_id = workflow.run().run_id
    workflow.resume(run_id, "abort")
    assert findings(workflow.resume(run_id).records, tmp_path) == ()


def test_what_is_asked_again(tmp_path: Path) -> None:
    """What was put off while the file was decided on is asked again as it was, and nothing else is."""

    def fails(*_: object) -> PhaseOutcome:
        raise ValueError("no network")

    domain = Domain(name="demo", phases=("a", "done"), state_directory=tmp_path / "state")
    workflow = Workflow(domain, phases={"a": fails}, journal=MemoryJournal(), clock=ManualClock())
    run_id = workflow.run().run_id
    file = workflow.state_file(None).path
    file.write_text(file.read_text().replace("network", "net"))
    workflow.resume(run_id)
    records = workflow.resume(run_id, "use file").records
    place = max(index for index, record in enumerate(records) if record.event.name == "decision:needed")
    forged = records[place]._replace(event=evolved(options=("skip", "abort"))(records[place].event))
    said = [finding.message for finding in findings((*records[:place], forged, *records[place + 1 :]), tmp_path)]
    assert (findings(records, tmp_path), len(said)) == ((), 1)
    assert "asks about 'phase error' before a step was taken, which was not put off" in said[0]


def findings(records: tuple[Record, ...], folder: Path) -> tuple[Any, ...]:
    """What the audit finds in records, with their chain made to fit."""
    journal = MemoryJournal()
    run_id = records[0].run_id
    asyncio.run(journal.append(Batch(run_id, records)))
    path = folder / "export.json"
    path.write_text(asyncio.run(export_json(journal, run_id)))
    return audit(read_export(path)).findings


def altered(text: Blob, **fields: Any) -> Blob:
    """A JSON object with other fields."""
    state = json.loads(text.text or "{}") | fields
    return Blob(json.dumps(state, indent=2) + "\n")


def evolved(**fields: Any) -> Change:
    """A change of these fields."""
    return lambda event: attrs.evolve(event, **fields)


CHANGES: list[tuple[str, int, Change, str]] = [
    ("phase:started", 2, evolved(number=3), "is execution 3 of 'b', expected 2"),
    ("phase:started", 1, evolved(phase="a"), "begins phase 'a', but the workflow is in 'b'"),
    ("phase:failed", 1, evolved(retry_count=1), "is failure 1 in a row, expected 2"),
    ("phase:failed", 0, evolved(error="nothing"), "does not follow from the phase's updates: error"),
    ("phase:finished", 1, evolved(updates=Blob("{}")), "does not follow from the phase's updates: files"),
    ("phase:finished", 1, evolved(phase="a"), "ends phase 'a', but the workflow is in 'b'"),
    ("state:merged", 0, lambda event: attrs.evolve(event, state=altered(event.state, more=1)), "follow"),
    ("state:merged", 0, evolved(fields_updated=("phase",)), "says it updated phase; it updated"),
    ("state:merged", 0, evolved(phase="a"), "says phase 'a', its state 'b'"),
    ("state:written", 0, lambda event: attrs.evolve(event, state=altered(event.state, more=1)), "another state"),
    ("state:written", 3, lambda event: attrs.evolve(event, state=altered(event.state, more=1)), "another state"),
    ("state:read", 0, lambda event: attrs.evolve(event, state=altered(event.state, phase="b")), "another state"),
    ("state:read", 2, lambda event: attrs.evolve(event, state=altered(event.state, error=None)), "another state"),
    ("summary:reported", 0, evolved(output=Blob("All is well.")), "tells another summary"),
    ("cascade:detected", 0, evolved(failures_in_window=2), "counts 2 failures in its window of 5; there are 3"),
    ("cascade:detected", 0, evolved(threshold=4), "there are 3"),
    ("decision:taken", 2, evolved(choice="retry"), "chooses 'retry', which was no option"),
]


def test_nothing_to_find(records: tuple[Record, ...], tmp_path: Path) -> None:
    """A workflow as it was recorded has nothing to find."""
    assert findings(records, tmp_path) == ()


@pytest.mark.parametrize(("name", "position", "change", "said"), CHANGES, ids=[f"{c[0]}-{c[3][:20]}" for c in CHANGES])
def test_what_does_not_follow(
    records: tuple[Record, ...], tmp_path: Path, name: str, position: int, change: Change, said: str
) -> None:
    """A record that says something else than follows is found, though its chain fits."""
    place = [index for index, record in enumerate(records) if record.event.name == name][position]
    changed = records[place]._replace(event=change(records[place].event))
    found = findings((*records[:place], changed, *records[place + 1 :]), tmp_path)
    assert any(finding.check == "workflow" and said in finding.message for finding in found), found
