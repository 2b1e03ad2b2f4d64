"""A state file that changes while its workflow waits: which state holds is decided before anything else."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.workflow import ChoiceError, Policy


@pytest.fixture
def paused(bench: Any) -> Any:
    """A workflow that waits in its second phase, and whose file somebody edits."""
    bench.phases.script["01-work"].insert(0, ValueError("no network"))
    bench.workflow().run(run_id="first")
    edit(bench, note="by hand")
    return bench


def edit(bench: Any, **fields: Any) -> None:
    """Change fields in the file."""
    bench.file().write_text(json.dumps(json.loads(bench.file().read_text()) | fields))


def events(result: Any) -> list[str]:
    """What was decided, and what had to be."""
    told = [each.event for each in result.records if each.event.name in ("decision:needed", "decision:taken")]
    return [each.about if each.name == "decision:needed" else each.choice for each in told]


def test_skipped_and_edited(paused: Any) -> None:
    """A skip is not taken while the file differs; what is offered is the file as it stands; the skip comes after."""
    changed = paused.workflow().resume("epic-1", "skip")
    assert (changed.decision.about, changed.phase) == ("state mismatch", "01-work")
    again = paused.workflow().resume("epic-1", "use file")
    assert (again.decision.about, again.phase, again.state["note"]) == ("phase error", "01-work", "by hand")
    done = paused.workflow().resume("epic-1", "skip")
    assert (done.status, done.state["note"], done.executions) == (
        "done",
        "by hand",
        {"00-init": 1, "01-work": 1, "02-check": 1},
    )
    assert events(done) == ["phase error", "state mismatch", "use file", "phase error", "skip"]
    assert audit(parse_export(asyncio.run(export_json(paused.journal, "first")))).findings == ()


def test_resumed_without_a_choice(paused: Any) -> None:
    """A resume reads the file first (contract 4: "Read state from state/{{workflow_id}}-state.json")."""
    changed = paused.workflow().resume("epic-1")
    assert changed.decision.about == "state mismatch"
    assert paused.workflow().resume("epic-1", "use journal").decision.about == "phase error"
    assert "note" not in json.loads(paused.file().read_text())


def test_mended_by_hand(paused: Any) -> None:
    """A file in which the error is gone, when it is taken, has answered what was to be decided."""
    edit(paused, error=None, phase="02-check")
    paused.workflow().resume("epic-1", "skip")
    done = paused.workflow().resume("epic-1", "use file")
    assert (done.status, done.executions) == ("done", {"00-init": 1, "01-work": 1, "02-check": 1})


def test_edited_again(paused: Any) -> None:
    """What was shown is what is taken: a file that changed since is shown anew."""
    paused.workflow().resume("epic-1", "skip")
    edit(paused, note="once more")
    shown = paused.workflow().resume("epic-1", "use file")
    assert (shown.decision.about, shown.state.get("note")) == ("state mismatch", None)
    assert paused.workflow().resume("epic-1", "use file").state["note"] == "once more"


def test_a_cascade_is_asked_again(paused: Any) -> None:
    """A cascade that was to be decided is still one after the file was."""
    paused.phases.script["01-work"][1:] = [ValueError("no network")]
    policy = Policy(phase_error="retry")
    paused.workflow().resume("epic-1")
    cascade = paused.workflow(policy=policy).resume("epic-1", "use journal")
    assert cascade.decision.about == "cascade"
    edit(paused, note="by hand")
    paused.workflow().resume("epic-1", "fix")
    again = paused.workflow().resume("epic-1", "use journal")
    assert (again.decision.about, again.state["cascade_detected"]) == ("cascade", True)
    done = paused.workflow().resume("epic-1", "skip")
    assert (done.status, done.state["cascade_detected"]) == ("done", False)


def test_a_policy_waits_too(paused: Any) -> None:
    """No policy skips a phase over a file that was edited."""
    changed = paused.workflow(policy=Policy(phase_error="skip")).resume("epic-1")
    assert (changed.decision.about, changed.phase) == ("state mismatch", "01-work")


def test_an_abort_needs_no_file(paused: Any) -> None:
    """Whoever aborts is not asked which state holds; what was edited is kept."""
    text = paused.file().read_text()
    aborted = paused.workflow().resume("epic-1", "abort")
    kept = paused.file().with_name("epic-1-state.json.first").read_text()
    assert (aborted.status, kept, paused.file().exists()) == ("aborted", text, False)


def test_no_option(paused: Any) -> None:
    """What is no option is refused before the file is looked at, and writes nothing."""
    before = asyncio.run(paused.journal.head("first"))
    with pytest.raises(ChoiceError, match="choose one of retry, skip, abort"):
        paused.workflow().resume("epic-1", "use file")
    assert asyncio.run(paused.journal.head("first")) == before


def test_a_state_of_the_initial_form(paused: Any) -> None:
    """A state may be provided as the contract's initial one is: with neither a time nor an error field."""
    state = {"phase": "02-check", "workflow_id": "epic-1", "metrics": {"workflow_version": "1.0", "start_time": "x"}}
    paused.workflow().resume("epic-1")
    done = paused.workflow().resume("epic-1", "provide state", state)
    assert (done.status, done.state["error"], done.state["metrics"]) == ("done", None, state["metrics"])


@pytest.mark.parametrize("metrics", [None, {}, {"workflow_version": "1.0"}])
def test_a_state_without_its_metrics(paused: Any, metrics: object) -> None:
    """A state without what the contract's initial one has cannot be provided."""
    state = paused.workflow().resume("epic-1").state
    with pytest.raises(ChoiceError, match=r"\$\.metrics"):
        paused.workflow().resume("epic-1", "provide state", {**state, "metrics": metrics})
