"""Going on with a workflow where it was left: found by either of its names, folded, and what changed recorded."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.faults import closest_name
from orchestrator.history import UnknownRunError, load_execution
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_identity
from orchestrator.workflow.executing import lost_charge
from orchestrator.workflow.messages import resuming_from
from orchestrator.workflow.phasedifference import phase_differences
from orchestrator.workflow.running import WorkflowRun
from orchestrator.workflow.statetext import NEW
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.journal import Journal
from orchestrator_events.workflow import PhaseAbandoned
from orchestrator_states.workflow import WORKFLOW, WorkflowState

if TYPE_CHECKING:
    from orchestrator.workflow.engine import Workflow

__all__ = ["find_workflow", "holder_of", "load_workflow", "reopen"]

S = WorkflowState
OVER = (S.DONE, S.ABORTED, S.FAILED)


async def find_workflow(journal: Journal, name: str, domain: str = "") -> str:
    """The run of a workflow: by the run's own id, by the workflow's id, or as `workflow-new`, which all begin as.

    Of several, the newest that is not over, else the newest; those that go by the name come before those that did,
    or whose file could not take it. `domain` leaves out those of other domains. Raises UnknownRunError.
    """
    ids = await journal.run_ids()
    if name in ids:
        return name
    fitting: list[tuple[bool, bool, str]] = []
    names: list[str] = []
    async for run in workflows_in(journal, ids):
        if domain and run.phases.table.name != domain:
            continue
        names.append(run.name)
        if name in (run.name, run.workflow_id, NEW):
            fitting.append((run.state in OVER, run.name != name, run.run_id))
    if not fitting:
        raise UnknownRunError(name, closest_name(name, [*names, *ids]))
    return min(fitting, key=lambda each: each[:2])[2]


async def holder_of(journal: Journal, path: Path, besides: str) -> WorkflowRun | None:
    """The workflow whose state file that is, one that is not over before others; None where the journal has none."""
    over = None
    async for run in workflows_in(journal, await journal.run_ids()):
        known = run.file_path or run.released_path
        if run.run_id == besides or not known or not is_one_place(path, known):
            continue
        if run.state not in OVER:
            return run
        over = over or run
    return over


def is_one_place(path: Path, known: str) -> bool:
    """Whether two paths name one file."""
    return os.path.abspath(path) == os.path.abspath(known)


async def workflows_in(journal: Journal, ids: Sequence[str]) -> AsyncIterator[WorkflowRun]:
    """The workflows of a journal, newest first; none that is damaged."""
    for run_id in reversed(ids):
        try:
            run = await load_workflow(journal, run_id)
        except OrchestratorError:
            continue
        yield run


async def load_workflow(journal: Journal, run_id: str) -> WorkflowRun:
    """The workflow that its records fold into; ResumeRefusedError for a run of another lifecycle."""
    async for entry in journal.read(run_id):
        if entry.record.lifecycle != WORKFLOW.name:
            raise ResumeRefusedError(run_id, f"it is a {entry.record.lifecycle}, not a workflow")
        break
    run = await load_execution(journal, run_id)
    if not isinstance(run, WorkflowRun):
        raise ResumeRefusedError(run_id, f"it is a {run.lifecycle}, not a workflow")
    return run


async def reopen(workflow: Workflow, run_id: str) -> WorkflowRun:
    """The workflow as its journal tells it, with the records that open a new invocation in its outbox.

    Raises ResumeRefusedError, UnknownRunError and JournalError (a damaged journal is never started afresh).
    """
    run = await load_workflow(workflow.journal, run_id)
    refuse_unknown_phase(run, workflow)  # before the tables are compared: it says what to do about it
    differing = phase_differences(run.phases.table, workflow.domain.lifecycle)
    refuse_other_identity(run, workflow.identity(), besides=frozenset({"tables"}), more=differing)
    if run.state == S.DONE:
        raise ResumeRefusedError(run_id, "it is done: there is nothing left to do")
    into = S.READING.value if run.state in (S.ABORTED, S.FAILED) else run.state
    phase = workflow.domain.first if run.phase == run.phases.table.initial else run.phase
    begin_again(run, workflow.clock, workflow.budget, into, reason=resuming_from(phase))
    abandon_lost_phase(run)
    return run


def refuse_unknown_phase(run: WorkflowRun, workflow: Workflow) -> None:
    """Refuse a state whose phase the domain does not have (contract 4: validate state has valid phase)."""
    phase, is_of_domain = run.current.get("phase"), run.phases.table.name == workflow.domain.name
    if is_of_domain and phase is not None and phase not in workflow.domain.ids:
        choices = ", ".join(workflow.domain.ids)
        raise ResumeRefusedError(run.run_id, f"its phase {phase!r:.80} is unknown: there are {choices}")


def abandon_lost_phase(run: WorkflowRun) -> None:
    """A phase in flight at a crash: its outcome is unknown, what it had out is charged, it is executed again."""
    if run.is_in_flight and run.started is not None:
        run.fire(
            PhaseAbandoned(
                phase=run.started.phase,
                number=run.started.number,
                reason="it was being executed when the run was cut off; it is executed again",
                charge=lost_charge(run),
            )
        )
