"""The state file compared with the journal: the same, explained by a decision, or what is wrong with it."""

from __future__ import annotations

from pathlib import Path

import attrs

from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statefile import StateFile, StateFileError
from orchestrator.workflow.statetext import StateDocumentError, is_same, read_state
from orchestrator_events.blob import Blob
from orchestrator_events.workflow import StateUnreadable, StateUnwritable
from orchestrator_states.workflow import WorkflowState

__all__ = ["compared", "found_file", "is_changed_meanwhile", "known_file", "unexplained"]


def compared(run: WorkflowRun, directory: Path) -> StateUnreadable | str:
    """What is wrong with the workflow's file; when nothing is, where the state comes from: the file, or a decision.

    The workflow has a file: not one that is new, or was released.
    """
    known = known_file(run, directory)
    assert known is not None
    try:
        found = found_file(run, directory)
        text = found.read() if found else None
    except StateFileError as error:
        return wrong(run, known, "corrupt", str(error), "")
    if text is None:
        return wrong(run, known, "not found", f"there is no {known.path}", "")
    if is_same(text, run.state_text):
        return "file"
    return "decided" if is_same(text, run.file_text) else unexplained(run, found or known, text)


def is_changed_meanwhile(run: WorkflowRun, directory: Path) -> bool:
    """Whether the file changed while the workflow waits for a decision, which is fired: it has to be decided first."""
    waits = run.state == WorkflowState.PAUSED and run.exhausted is None
    if not waits or not run.file_text or isinstance(run.trouble, StateUnwritable):
        return False
    event = compared(run, directory)
    if isinstance(event, str) or event == run.trouble:
        return False
    run.fire(event)
    return True


def known_file(run: WorkflowRun, directory: Path) -> StateFile | None:
    """The file as it was last seen; None for a workflow that has none."""
    return attrs.evolve(StateFile.at(run.file_path), directory=directory) if run.file_text else None


def found_file(run: WorkflowRun, directory: Path) -> StateFile | None:
    """The same where it is there, or as a rename that a crash cut off has left it; None where neither is."""
    known = known_file(run, directory)
    if known is None or known.is_there:
        return known
    # The id is new: a file of that name is ours only when it holds what ours held, or what ours shall hold.
    target = StateFile(directory, run.workflow_id)
    if run.workflow_id is None or target == known or not target.is_there:
        return None
    return target if any(is_same(target.read() or "", text) for text in (run.file_text, run.state_text)) else None


def unexplained(run: WorkflowRun, file: StateFile, found: str) -> StateUnreadable:
    """The file is not what the journal says: it is corrupt, or somebody changed it and did not say so."""
    try:
        state = read_state(found, str(file.path))
    except StateDocumentError as error:
        return wrong(run, file, "corrupt", str(error), found)
    message = f"{file.path} was changed"
    table = run.phases.table
    phases = [phase for phase in table.states if phase != table.initial]
    if state["phase"] not in phases:
        message += f"; its phase {state['phase']!r:.80} is unknown: there are {', '.join(phases)}"
    return wrong(run, file, "mismatch", message, found)


def wrong(run: WorkflowRun, file: StateFile, problem: str, message: str, found: str) -> StateUnreadable:
    """What is wrong with the file, all of its content, and what the journal says."""
    raw = found.encode(errors="surrogateescape").decode(errors="backslashreplace")
    expected = Blob(run.state_text) if run.state_text else None
    return StateUnreadable(problem=problem, path=str(file.path), message=message, raw=Blob(raw), expected=expected)
