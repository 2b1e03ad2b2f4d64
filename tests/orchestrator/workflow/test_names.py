"""Names: which workflow a state file and an id are of, who waits for them, and when they are free again."""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.workflow import WorkflowAborted, WorkflowDone
from orchestrator.workflow.resuming import find_workflow, load_workflow
from orchestrator_events.journal import Batch


@pytest.fixture
def lost(bench: Any) -> Any:
    """A workflow that waits before it has an id; its first phase will succeed when it is executed again."""
    bench.phases.script["00-init"].insert(0, ValueError("no network"))
    bench.end = bench.workflow().run(run_id="first")
    return bench


@pytest.fixture
def waiting(bench: Any) -> Any:
    """A workflow with the id epic-1 that waits in its second phase."""
    bench.phases.script["01-work"].insert(0, ValueError("no network"))
    bench.end = bench.workflow().run(run_id="first")
    return bench


def names(bench: Any) -> list[str]:
    """The files that are read, of those in the state directory."""
    return sorted(path.name for path in bench.file().parent.iterdir() if path.name.endswith("-state.json"))


def found(bench: Any, name: str) -> str:
    """The run that a name is of."""
    return asyncio.run(find_workflow(bench.journal, name))


def test_an_aborted_one_makes_room(lost: Any) -> None:
    """What is aborted before it has an id stands in nobody's way, and its state is kept under its run's id."""
    text = lost.file("workflow-new").read_text()
    lost.workflow().resume("first", "abort")
    kept = lost.file("workflow-new").with_name("workflow-new-state.json.first").read_text()
    second = lost.workflow(journal=MemoryJournal()).run()
    assert (names(lost), kept, second.status) == (["epic-1-state.json"], text, "done")


def test_the_id_of_an_aborted_one(waiting: Any) -> None:
    """The id of an aborted workflow can be used again, and means the one that uses it."""
    waiting.workflow().resume("epic-1", "abort")
    assert found(waiting, "epic-1") == "first"
    second = waiting.workflow().run(run_id="second")
    assert (second.status, second.workflow_id, found(waiting, "epic-1")) == ("done", "epic-1", "second")


def test_killed_before_it_made_room(waiting: Any) -> None:
    """A crash between the end of an aborted workflow and its file's making room blocks nobody either."""
    text = waiting.file().read_text()
    waiting.workflow().resume("epic-1", "abort")
    waiting.file().write_text(text)  # as a kill before the rename leaves it
    second = waiting.workflow().run()
    kept = waiting.file().with_name("epic-1-state.json.first").read_text()
    assert (second.status, kept) == ("done", text)


def test_an_aborted_one_is_taken_up_again(waiting: Any) -> None:
    """Its file is written anew from the journal, and the audit finds nothing."""
    waiting.workflow().resume("epic-1", "abort")
    done = waiting.workflow().resume("first")
    assert (done.status, json.loads(waiting.file().read_text())) == ("done", done.state)
    assert audit(parse_export(asyncio.run(export_json(waiting.journal, "first")))).findings == ()


def test_taken_up_too_late(waiting: Any) -> None:
    """An aborted workflow whose id another one has by now takes nothing from it, and says which run that is."""
    waiting.workflow().resume("epic-1", "abort")
    waiting.phases.script["01-work"].insert(1, ValueError("no network"))
    waiting.phases.executed.clear()
    waiting.clock.advance(1)
    waiting.workflow().run(run_id="second")
    text = waiting.file().read_text()
    late = waiting.workflow().resume("first")
    assert late.decision.about == "write failed"
    assert "it is run second: go on with that one, or abort it" in late.decision.message
    assert type(waiting.workflow().resume("first", "abort")) is WorkflowAborted
    assert (waiting.file().read_text(), found(waiting, "epic-1")) == (text, "second")


def test_two_without_an_id(lost: Any) -> None:
    """Beside another workflow without an id, a new one has a file of its own, and both come to their end."""
    lost.phases.script["00-init"].insert(1, ValueError("no network"))
    text = lost.file("workflow-new").read_text()
    second = lost.workflow().run(run_id="second")
    assert (second.decision.about, lost.file("workflow-new").read_text()) == ("phase error", text)
    assert names(lost) == ["workflow-new+second-state.json", "workflow-new-state.json"]
    ends = [lost.workflow().resume(run_id, "retry").status for run_id in ("second", "first")]
    assert (ends, names(lost)) == (["done", "done"], ["epic-1-state.json"])


def test_two_that_begin_at_once(bench: Any) -> None:
    """Two workflows of one domain that begin at the same moment have a file each, and both are done."""

    async def both() -> tuple[Any, Any]:
        meeting = asyncio.Barrier(2)

        def phases(workflow_id: str) -> dict[str, Any]:
            async def init(*_: object) -> object:
                await meeting.wait()
                return {"next_phase": "done", "state_updates": {"workflow_id": workflow_id}, "output": ""}

            return {**bench.phases.calls(), "00-init": init}

        runs = [bench.workflow(phases=phases(each)).arun() for each in ("red", "blue")]
        first, second = await asyncio.gather(*runs)
        return first, second

    assert [type(each) for each in asyncio.run(both())] == [WorkflowDone, WorkflowDone]
    assert names(bench) == ["blue-state.json", "red-state.json"]


def test_an_id_that_another_has(waiting: Any) -> None:
    """A second workflow with the id of one that is not over is refused by its run; the id goes on meaning the first."""
    waiting.phases.executed.clear()
    second = waiting.workflow().run(run_id="second")
    assert second.decision.message == (
        f"Failed to persist state: {waiting.file()}: is there already: another workflow has this id; "
        "it is run first: go on with that one, or abort it"
    )
    assert (second.workflow_id, found(waiting, "epic-1"), found(waiting, "workflow-new")) == (None, "first", "second")
    waiting.workflow().resume("second", "abort")
    assert waiting.workflow().resume("epic-1", "retry").run_id == "first"


def test_a_holder_elsewhere(waiting: Any) -> None:
    """The holder of an id that another journal knows is where it was started."""
    waiting.phases.executed.clear()
    second = waiting.workflow(journal=MemoryJournal()).run()
    assert "go on with that one where it was started, or move the file away" in second.decision.message


def test_either_name(waiting: Any) -> None:
    """A workflow is resumable as workflow-new, which all begin as, also once it has its id."""
    done = waiting.workflow().resume("workflow-new", "retry")
    assert (done.status, done.workflow_id) == ("done", "epic-1")


def test_a_kill_before_the_id_counts(bench: Any) -> None:
    """A workflow that is cut off before its file has its id is found by it all the same."""
    bench.phases.script["01-work"] = [ValueError("no network")]
    records = bench.workflow().run(run_id="first").records
    merged = [record.event.name for record in records].index("state:merged")
    bench.journal = MemoryJournal()
    asyncio.run(bench.journal.append(Batch("first", records[: merged + 1])))
    run = asyncio.run(load_workflow(bench.journal, "first"))
    assert (run.name, found(bench, "epic-1"), found(bench, "workflow-new")) == ("workflow-new", "first", "first")


def test_a_foreign_file_that_is_no_state(bench: Any) -> None:
    """A file of that name that is nobody's state is not overwritten, and the id counts once it is gone."""
    bench.file().parent.mkdir()
    bench.file().write_text("theirs")
    result = bench.workflow().run()
    assert (result.decision.about, result.workflow_id, bench.file().read_text()) == ("write failed", None, "theirs")
    os.remove(bench.file())
    assert bench.workflow().resume("epic-1", "retry").status == "done"
