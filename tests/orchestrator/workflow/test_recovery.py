"""The state file and the journal: the journal is the truth, and nothing of anybody's is lost or used unasked."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from orchestrator.resuming import ResumeRefusedError
from orchestrator.workflow import ChoiceError, StateFile


@pytest.fixture
def paused(bench: Any, make_outcome: Any) -> Any:
    """A workflow that waits in its second phase, which will succeed when it is executed again."""
    bench.phases.script["01-work"] = [ValueError("no network"), make_outcome("02-check")]
    bench.workflow().run()
    return bench


def test_not_found(paused: Any) -> None:
    """A resume without the file asks whether to start fresh or to be given the state; the journal has it, too."""
    paused.file().unlink()
    result = paused.workflow().resume("epic-1", "retry")
    assert result.decision.about == "state not found"
    assert result.decision.options == ("start fresh", "provide state", "use journal", "abort")
    assert "State file not found. Cannot resume." in result.lines
    done = paused.workflow().resume("epic-1", "use journal")
    assert (done.status, json.loads(paused.file().read_text())) == ("done", done.state)


def test_start_fresh(paused: Any) -> None:
    """A fresh start is a new run; the old one is aborted and what its file held is kept."""
    paused.file().write_text("{")
    paused.workflow().resume("epic-1", "retry")
    fresh = paused.workflow().resume("epic-1", "start fresh")
    aside = [path.name for path in paused.file().parent.iterdir() if path.read_text() == "{"]
    assert (fresh.status, fresh.executions, len(aside)) == ("done", {"00-init": 1, "01-work": 1, "02-check": 1}, 1)


@pytest.mark.parametrize("content", ["{", "[]", "", "\x00", '{"phase": "01-work"}', '{"phase": 1, "workflow_id": 2}'])
def test_corrupt(paused: Any, content: str) -> None:
    """A corrupt file is shown as it is, and never taken for a fresh start."""
    paused.file().write_text(content)
    result = paused.workflow().resume("epic-1", "retry")
    assert result.decision.about == "state corrupt"
    place = result.lines.index("State corrupted. Outputting raw for recovery.")
    event = next(each.event for each in result.records if each.event.name == "state:unreadable")
    begin = place + 1 + len(event.message.splitlines())
    shown = result.lines[begin:][: len(content.splitlines())]
    assert (event.raw.text, shown) == (content, tuple(content.splitlines()))


def test_bytes_that_are_no_text(paused: Any) -> None:
    """Bytes that are no UTF-8 are shown escaped."""
    paused.file().write_bytes(b"\xff\xfe")
    result = paused.workflow().resume("epic-1", "retry")
    assert (result.decision.about, "\\xff\\xfe" in result.lines) == ("state corrupt", True)


def test_a_link(paused: Any, tmp_path: Any) -> None:
    """A link in the place of the file is not followed."""
    text = paused.file().read_text()
    paused.file().unlink()
    (tmp_path / "elsewhere").write_text(text)
    paused.file().symlink_to(tmp_path / "elsewhere")
    assert paused.workflow().resume("epic-1", "retry").decision.about == "state corrupt"


def test_an_edited_file(paused: Any) -> None:
    """A file that somebody edited is an error with both versions shown, until somebody says which one holds."""
    edited = json.loads(paused.file().read_text()) | {"note": "by hand"}
    paused.file().write_text(json.dumps(edited))
    result = paused.workflow().resume("epic-1", "retry")
    assert (result.decision.about, result.decision.options[:2]) == ("state mismatch", ("use file", "use journal"))
    assert {json.dumps(edited), '  "retry_count": 1'} <= set(result.lines)
    done = paused.workflow().resume("epic-1", "use file")
    read = [each.event.source for each in done.records if each.event.name == "state:read"]
    assert (done.status, done.state["note"], "edited by a person" in read) == ("done", "by hand", True)


def test_the_journal_holds(paused: Any) -> None:
    """The edit that somebody decides against is kept beside the file."""
    before = paused.file().read_text()
    paused.file().write_text(
        '{"phase": "02-check", "workflow_id": "epic-1", "last_updated": "2026-01-01", "error": null}'
    )
    mine = paused.file().read_text()
    paused.workflow().resume("epic-1", "retry")
    paused.phases.script["01-work"] = [ValueError("stop here")]
    result = paused.workflow().resume("epic-1", "use journal")
    assert (result.phase, "note" in result.state) == ("01-work", False)
    kept = [each.event for each in result.records if each.event.name == "state:unreadable"]
    assert [(each.raw.text, each.expected.text) for each in kept] == [(mine, before)]


def test_another_spelling(paused: Any) -> None:
    """A file with other white space or another order of keys says the same."""
    state = json.loads(paused.file().read_text())
    paused.file().write_text(json.dumps(dict(sorted(state.items()))))
    assert paused.workflow().resume("epic-1", "retry").status == "done"


def test_a_provided_state(paused: Any) -> None:
    """A state that somebody provides enters as an event and is written."""
    paused.file().unlink()
    state = paused.workflow().resume("epic-1", "retry").state
    done = paused.workflow().resume("epic-1", state={**state, "phase": "02-check", "error": None, "note": "mine"})
    read = [each.event.source for each in done.records if each.event.name == "state:read"]
    assert (done.status, done.state["note"], "provided" in read) == ("done", "mine", True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"phase": "03-nowhere"}, "there are 00-init, 01-work, 02-check, done"),
        ({"workflow_id": "epic-2"}, "does not change"),
        ({"last_updated": "yesterday"}, "no time in ISO 8601"),
        ({"error": 7}, "expected a string or null"),
        ({"schema_version": 2}, "another release"),
    ],
)
def test_a_state_that_cannot_be(paused: Any, change: dict[str, Any], said: str) -> None:
    """A provided state is checked, and an unknown phase names the choices; nothing is written for one that fails."""
    paused.file().unlink()
    state = paused.workflow().resume("epic-1", "retry").state
    with pytest.raises(ChoiceError, match=said):
        paused.workflow().resume("epic-1", "provide state", {**state, **change})
    assert not paused.file().exists()


def test_edited_while_the_phase_ran(bench: Any) -> None:
    """A file that changes while a phase is executed is not overwritten."""

    def meddle(state: dict[str, Any], _: object) -> Any:
        bench.file().write_text(json.dumps(state | {"note": "by hand"}))
        return {"next_phase": "02-check", "state_updates": {}, "output": ""}

    bench.phases.script["01-work"] = [meddle]
    result = bench.workflow().run()
    assert (result.decision.about, json.loads(bench.file().read_text())["note"]) == ("state mismatch", "by hand")
    done = bench.workflow().resume("epic-1", "use journal")
    assert (done.status, done.executions["01-work"]) == ("done", 1)


def test_cannot_be_written(bench: Any) -> None:
    """A write that fails puts the whole state out; once it can be written, the workflow goes on after the phase."""

    def lock(_: object, __: object) -> Any:
        bench.file("workflow-new").parent.rename(bench.directory / "moved")
        (bench.directory / "state").write_text("in the way")
        return {"next_phase": "01-work", "state_updates": {"workflow_id": "epic-1"}, "output": "parsed"}

    bench.phases.script["00-init"] = [lock]
    result = bench.workflow().run()
    assert (result.decision.about, result.decision.options) == ("write failed", ("retry", "abort"))
    assert {"Failed to persist state", '  "phase": "01-work",'} <= set(result.lines)
    (bench.directory / "state").unlink()
    (bench.directory / "moved").rename(bench.directory / "state")
    done = bench.workflow().resume("epic-1", "retry")
    assert (done.status, done.executions["00-init"], "parsed" in done.lines) == ("done", 1, True)


def test_the_last_write_fails(bench: Any) -> None:
    """A workflow whose last state could not be written is done as soon as it can be, and executes nothing."""

    def lock(_: object, __: object) -> Any:
        bench.file().unlink()
        bench.file().mkdir()
        return {"next_phase": "done", "state_updates": {}, "output": "fine"}

    bench.phases.script["02-check"] = [lock]
    assert bench.workflow().run().decision.about == "write failed"
    bench.file().rmdir()
    result = bench.workflow().resume("epic-1", "retry")
    assert result.decision.about == "state not found"
    done = bench.workflow().resume("epic-1", "use journal")
    assert (done.status, done.lines[-2:]) == ("done", ("fine", "Workflow complete!"))


def test_an_id_that_is_taken(bench: Any) -> None:
    """The file of another workflow with the same id is not overwritten."""
    bench.file().parent.mkdir()
    bench.file().write_text("theirs")
    result = bench.workflow().run()
    assert (result.decision.about, bench.file().read_text()) == ("write failed", "theirs")
    os.remove(bench.file())
    assert bench.workflow().resume("epic-1", "retry").status == "done"


def test_two_new_ones(bench: Any) -> None:
    """A new workflow does not take the file of another that has no id yet."""
    bench.phases.script["00-init"].insert(0, ValueError("no network"))
    first = bench.workflow().run()
    text = bench.file("workflow-new").read_text()
    second = bench.workflow().run()
    assert (second.status, bench.file("workflow-new").read_text()) == ("done", text)
    assert bench.workflow().resume(first.run_id, "retry").status == "done"


def test_a_phase_that_is_gone(paused: Any) -> None:
    """A workflow whose phase its domain no longer has is refused with the phase and those that there are."""
    domain = paused.domain_with(phases=("00-init", "02-check", "done"))
    calls = {name: call for name, call in paused.phases.calls().items() if name != "01-work"}
    with pytest.raises(ResumeRefusedError, match="its phase '01-work' is unknown: there are 00-init, 02-check, done"):
        paused.workflow(domain=domain, phases=calls).resume("epic-1", "retry")


def test_a_state_is_written_durably(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The temporary file is synchronised before it takes the name, and the directory after that."""
    file, seen = StateFile(tmp_path, "epic-1"), []
    fsync, replace = os.fsync, os.replace

    def watched_fsync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        seen.append((f"fsync {kind}", os.readlink(f"/proc/self/fd/{descriptor}"), before_of(file)))
        fsync(descriptor)

    def watched_replace(source: Path, target: Path) -> None:
        seen.append(("rename", str(source), before_of(file)))
        replace(source, target)
        assert target == file.path

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "replace", watched_replace)
    file.write("{}\n")
    temporary = str(tmp_path / f".epic-1-state.json.{os.getpid()}.new")
    assert seen == [
        ("fsync file", temporary, ""),
        ("rename", temporary, ""),
        ("fsync directory", str(tmp_path), "{}\n"),
    ]


def before_of(file: StateFile) -> str:
    """What the file holds at this moment; empty when it is not there."""
    return file.read() or ""


def test_a_long_phase_file_warns(bench: Any) -> None:
    """A phase file beyond a hundred lines warns at the beginning of a run and of a resume."""
    folder = bench.directory / "phases"
    folder.mkdir()
    (folder / "01-work.md").write_text("line\n" * 101)
    domain = bench.domain_with(phase_directory=folder)
    bench.phases.script["01-work"] = [ValueError("no network")]
    lines = [bench.workflow(domain=domain).run().lines, bench.workflow(domain=domain).resume("epic-1", "retry").lines]
    expected = f"{folder / '01-work.md'}: 101 lines; a phase performs bounded work in about 100: split the phase"
    assert [each[0] for each in lines] == [expected, expected]
