"""Going on with a workflow where it was left: found by either of its names, folded, and what changed recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.faults import closest_name
from orchestrator.history import UnknownRunError, load_execution
from orchestrator.reopening import ResumeRefusedError, begin_again, refuse_other_identity
from orchestrator.workflow.executing import lost_charge
from orchestrator.workflow.messages import resuming_from
from orchestrator.workflow.running import WorkflowRun
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.journal import Journal
from orchestrator_events.workflow import PhaseAbandoned
from orchestrator_states.workflow import WORKFLOW, WorkflowState

if TYPE_CHECKING:
    from orchestrator.workflow.engine import Workflow

__all__ = ["find_workflow", "load_workflow", "reopen"]

S = WorkflowState


async def find_workflow(journal: Journal, name: str, domain: str = "") -> str:
    """The run of a workflow: by the run's own id, by the workflow's id, or as `workflow-new` before it has one.

    Of several, the newest that is not over, else the newest. `domain` leaves out those of other domains. Raises
    UnknownRunError.
    """
    ids = await journal.run_ids()
    if name in ids:
        return name
    fitting: list[tuple[bool, str]] = []
    names: list[str] = []
    for run_id in reversed(ids):
        try:
            run = await load_workflow(journal, run_id)
        except OrchestratorError:
            continue  # damaged, or no workflow: none that could be resumed by this name
        if domain and run.phases.table.name != domain:
            continue
        names.append(run.name)
        if run.name == name:
            fitting.append((run.state in (S.DONE, S.ABORTED, S.FAILED), run_id))
    if not fitting:
        raise UnknownRunError(name, closest_name(name, [*names, *ids]))
    return min(fitting, key=lambda each: each[0])[1]


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
    refuse_other_identity(run, workflow.identity())
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
