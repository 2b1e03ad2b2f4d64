"""Steps 1 and 5 at the file: it is compared with the journal, and brought to what the journal says.

The journal is the truth, the file its copy. What the file holds beyond what the journal explains is never used and
never overwritten without somebody's decision.
"""

from __future__ import annotations

import json

from orchestrator.workflow.domain import DONE
from orchestrator.workflow.invocation import Invocation
from orchestrator.workflow.merging import initial_state
from orchestrator.workflow.running import WorkflowRun, id_in
from orchestrator.workflow.statefile import StateFile, StateFileError
from orchestrator.workflow.statetext import StateDocumentError, is_same, read_state, written
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event
from orchestrator_events.workflow import StateRead, StateUnreadable, StateUnwritable, StateWritten

__all__ = ["file_of", "read_step", "write_step"]

TAKEN = "is there already and belongs to a workflow without an id: resume that one, or move the file away"

FINISHED = "finished"
"""What is behind the name of a finished workflow's file that has made room for the next one's."""


class ChangedError(Exception):
    """The file holds what the journal does not explain."""

    def __init__(self, file: StateFile, found: str) -> None:
        super().__init__(str(file.path))
        self.file = file
        self.found = found


async def read_step(it: Invocation) -> None:
    """Step 1: have the state at hand, and the file the same as the journal; StateRead, or what is wrong."""
    run = it.run
    await it.commit()
    if not run.state_text:
        return begin(it)
    file, found = found_for(it)
    is_pending = not is_same(run.state_text, run.file_text)
    try:
        text = found.read() if found else None
    except StateFileError as error:
        text, unreadable = "", str(error)
    else:
        unreadable = ""
    if run.overwrites:
        source = run.overwrites
    elif unreadable:
        return it.fire(wrong(run, file, "corrupt", unreadable, ""))
    elif text is None:
        return it.fire(wrong(run, file, "not found", f"there is no {file.path}", ""))
    elif is_same(text, run.state_text):
        source = "file"
    elif is_pending and is_same(text, run.file_text):
        source = "decided"
    else:
        return it.fire(unexplained(it, file, text))
    if source != "file" and not put(it, run.state_text):
        return None
    return it.fire(StateRead(phase=str(run.current["phase"]), state=Blob(run.state_text), source=source))


def begin(it: Invocation) -> None:
    """The state of a new workflow (contract 4, initialization), written before anything is done."""
    run, domain = it.run, it.parts.domain
    begun_at = next(iter((*run.records, *run.outbox))).at  # as the journal has it: a crash changes nothing
    text = written(initial_state(domain.first, begun_at, run.parameters))
    if put(it, text):
        it.fire(StateRead(phase=domain.first, state=Blob(text), source="initial"))
        run.enter(domain.first)


async def write_step(it: Invocation) -> None:
    """Step 5: have the file hold the state; StateWritten moves on, or what is wrong does."""
    await it.commit()
    put(it, it.run.state_text)


def put(it: Invocation, text: str) -> bool:
    """Bring the file to this text and fire what came of it; whether it holds the text now."""
    try:
        file = replaced(it, text)
    except ChangedError as error:
        it.fire(unexplained(it, error.file, error.found))
    except StateFileError as error:
        it.fire(StateUnwritable(path=str(error.path), message=str(error), state=Blob(text)))
    else:
        it.fire(StateWritten(path=str(file.path), state=Blob(text)))
        return True
    return False


def replaced(it: Invocation, text: str) -> StateFile:
    """The file with this text in it, under the workflow's id once it has one.

    Raises ChangedError where that would overwrite what nobody explained, StateFileError where it cannot be done.
    """
    run = it.run
    file, found = found_for(it)
    target = file_of(it, text)
    before = found.read() if found else None
    is_ours = before is None or is_same(before, text) or bool(run.file_text and is_same(before, run.file_text))
    if not is_ours and not run.overwrites:
        if run.file_text:
            raise ChangedError(file, before or "")
        if not is_finished(before or ""):
            raise StateFileError(file.path, TAKEN)
        file.set_aside(FINISHED)
    if target != file:
        if target.is_there and not is_finished(target.read() or ""):
            raise StateFileError(target.path, "is there already: another workflow has this id")
        target.set_aside(FINISHED)
        if found is not None and target.workflow_id is not None:
            file.rename(target.workflow_id)
    target.write(text)
    return target


def is_finished(text: str) -> bool:
    """Whether this is the state of a workflow that is done: its file may make room, and is kept."""
    try:
        return str(read_state(text, "")["phase"]) == DONE
    except StateDocumentError:
        return False


def found_for(it: Invocation) -> tuple[StateFile, StateFile | None]:
    """The file as it was last seen, or as a rename that a crash cut off has left it; and the same where it is there."""
    run = it.run
    last, target = file_of(it, run.file_text), file_of(it, run.state_text)
    if last == target or last.is_there:
        return last, last if last.is_there else None
    # The id is new: a file of that name is ours only when it holds what ours held, or what ours shall hold.
    if target.is_there and any(is_same(target.read() or "", text) for text in (run.file_text, run.state_text)):
        return target, target
    return last, None


def file_of(it: Invocation, text: str) -> StateFile:
    """The file in which a state belongs."""
    return StateFile.of(it.parts.domain.state_directory, id_in(json.loads(text or "{}")))


def unexplained(it: Invocation, file: StateFile, found: str) -> Event:
    """The file is not what the journal says: it is corrupt, or somebody changed it and did not say so."""
    try:
        state = read_state(found, str(file.path))
    except StateDocumentError as error:
        return wrong(it.run, file, "corrupt", str(error), found)
    message = f"{file.path} was changed"
    if state["phase"] not in it.parts.domain.ids:
        message += f"; its phase {state['phase']!r:.80} is unknown: there are {', '.join(it.parts.domain.ids)}"
    return wrong(it.run, file, "mismatch", message, found)


def wrong(run: WorkflowRun, file: StateFile, problem: str, message: str, found: str) -> StateUnreadable:
    """What is wrong with the file, all of its content, and what the journal says."""
    raw = found.encode(errors="surrogateescape").decode(errors="backslashreplace")
    expected = Blob(run.state_text) if run.state_text else None
    return StateUnreadable(problem=problem, path=str(file.path), message=message, raw=Blob(raw), expected=expected)
