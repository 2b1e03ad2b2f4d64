"""Steps 1 and 5 at the file: it is compared with the journal, and brought to what the journal says.

The journal is the truth, the file its copy. What the file holds beyond what the journal explains is never used and
never overwritten without somebody's decision.
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import attrs

from orchestrator.workflow.comparing import compared, found_file, known_file, unexplained
from orchestrator.workflow.domain import DONE
from orchestrator.workflow.invocation import Invocation
from orchestrator.workflow.merging import initial_state
from orchestrator.workflow.resuming import holder_of
from orchestrator.workflow.running import WorkflowRun, id_in
from orchestrator.workflow.statefile import IdTakenError, StateFile, StateFileError
from orchestrator.workflow.statetext import StateDocumentError, is_same, read_state, written
from orchestrator_events.blob import Blob
from orchestrator_events.workflow import StateRead, StateUnreadable, StateUnwritable, StateWritten
from orchestrator_states.workflow import WorkflowState

__all__ = ["read_step", "release_file", "write_step"]

FINISHED = "finished"
"""What is behind the name of a finished workflow's file that has made room for the next one's."""


class ChangedError(Exception):
    """The file holds what the journal does not explain."""

    def __init__(self, file: StateFile, found: str) -> None:
        super().__init__(str(file.path))
        self.file = file
        self.found = found


async def read_step(it: Invocation) -> None:
    """Step 1: have the state at hand, and the file the same as the journal; StateRead, or what is wrong.

    What had to be decided before a changed file was, and still has to be, is asked again in the place of StateRead.
    """
    run = it.run
    await it.commit()
    if not run.state_text:
        return await begin(it)
    source = source_of(run, it.parts.domain.state_directory)
    if isinstance(source, StateUnreadable):
        return it.fire(source)
    if not (source == "file" and is_in_its_place(run)) and not await put(it, run.state_text):
        return None
    state = run.current
    if run.postponed is not None and (state.get("error") is not None or state.get("cascade_detected")):
        return it.fire(run.postponed)
    return it.fire(StateRead(phase=str(state["phase"]), state=Blob(run.state_text), source=source))


def source_of(run: WorkflowRun, directory: Path) -> StateUnreadable | str:
    """Where the state comes from, or what is wrong with the file; one that was released is written anew."""
    if run.overwrites:
        return run.overwrites
    return compared(run, directory) if run.file_text else "derived from the journal"


def is_in_its_place(run: WorkflowRun) -> bool:
    """Whether the journal knows the file under the workflow's id."""
    return StateFile.at(run.file_path).workflow_id == run.workflow_id


async def begin(it: Invocation) -> None:
    """The state of a new workflow (contract 4, initialization), written before anything is done."""
    run, domain = it.run, it.parts.domain
    begun_at = next(iter((*run.records, *run.outbox))).at  # as the journal has it: a crash changes nothing
    text = written(initial_state(domain.first, begun_at, run.parameters))
    if await put(it, text):
        it.fire(StateRead(phase=domain.first, state=Blob(text), source="initial"))
        run.enter(domain.first)


async def write_step(it: Invocation) -> None:
    """Step 5: have the file hold the state; StateWritten moves on, or what is wrong does."""
    await it.commit()
    await put(it, it.run.state_text)


async def put(it: Invocation, text: str) -> bool:
    """Bring the file to this text and fire what came of it; whether it holds the text now."""
    run, directory = it.run, it.parts.domain.state_directory
    try:
        file = await replaced_or_released(run, directory, text)
    except ChangedError as error:
        it.fire(unexplained(run, error.file, error.found))
    except StateFileError as error:
        it.fire(StateUnwritable(path=str(error.path), message=str(error), state=Blob(text)))
    else:
        it.fire(StateWritten(path=str(file.path), state=Blob(text)))
        return True
    return False


async def replaced_or_released(run: WorkflowRun, directory: Path, text: str) -> StateFile:
    """As `replaced`; an id that is taken names its holder, unless that was aborted and only its file is left."""
    try:
        return replaced(run, directory, text)
    except IdTakenError as error:
        holder = await holder_of(run.journal, error.path, besides=run.run_id)
        if holder is None:
            advice = "go on with that one where it was started, or move the file away"
            raise IdTakenError(error.path, error.text, advice) from None
        if holder.state != WorkflowState.ABORTED or not is_same(holder.state_text, error.text):
            advice = f"it is run {holder.run_id}: go on with that one, or abort it"
            raise IdTakenError(error.path, error.text, advice) from None
        StateFile.at(str(error.path)).set_aside(holder.run_id)  # a crash came between its end and this
    return replaced(run, directory, text)


def replaced(run: WorkflowRun, directory: Path, text: str) -> StateFile:
    """The file with this text in it, under the workflow's id once it has one.

    Raises ChangedError where that would overwrite what nobody explained, StateFileError where it cannot be done.
    """
    target = target_of(run, directory, text)
    with target.alone():
        found = found_file(run, directory)
        if found is not None:
            refuse_changes(run, found, text)
        if found != target:
            target = with_room(run, target, text)
        if found is not None and found != target and target.workflow_id is not None:
            found.rename(target.workflow_id)
        target.write(text)
    return target


def target_of(run: WorkflowRun, directory: Path, text: str) -> StateFile:
    """The file in which a state belongs: of its id; without one, where it is already, or `workflow-new-state.json`."""
    workflow_id = id_in(json.loads(text))
    known = known_file(run, directory)
    return known if known is not None and known.workflow_id == workflow_id else StateFile(directory, workflow_id)


def refuse_changes(run: WorkflowRun, found: StateFile, text: str) -> None:
    """Raise ChangedError for what the journal does not explain, unless somebody decided that it makes room."""
    before = found.read()
    is_explained = before is None or is_same(before, text) or is_same(before, run.file_text)
    if not is_explained and not run.overwrites:
        raise ChangedError(found, before or "")


def with_room(run: WorkflowRun, target: StateFile, text: str) -> StateFile:
    """The file, for the workflow to take its name: that of a finished one makes room, and is kept.

    Beside another workflow without an id, it is a file of the run's own. Raises IdTakenError.
    """
    if target.workflow_id is None:
        own = attrs.evolve(target, run_id=run.run_id)
        if own.is_there:
            return own
    before = target.read() if target.is_there else None
    if before is None or (run.invocation > 1 and is_same(before, text)):  # the latter: of ours, which a crash cut off
        return target
    if is_finished(before):
        target.set_aside(FINISHED)
        return target
    if target.workflow_id is None:
        return own
    raise IdTakenError(target.path, before)


def is_finished(text: str) -> bool:
    """Whether this is the state of a workflow that is done: its file may make room, and is kept."""
    try:
        return str(read_state(text, "")["phase"]) == DONE
    except StateDocumentError:
        return False


def release_file(run: WorkflowRun, directory: Path) -> None:
    """Have the file of an aborted workflow make room for others; it is kept, named after the run."""
    if run.state != WorkflowState.ABORTED or not run.released_path:
        return
    file = attrs.evolve(StateFile.at(run.released_path), directory=directory)
    with suppress(StateFileError), file.alone():  # who wants its name finds in the journal that it is free
        file.set_aside(run.run_id)
