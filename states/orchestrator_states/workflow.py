"""The lifecycle of a phased workflow (contract 4), and the one made of a domain's phases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from orchestrator_events.execution import (
    ApprovalAnswered,
    ApprovalRequested,
    BudgetRaised,
    ChildEnded,
    ChildStarted,
    ExecutionCancelled,
    ExecutionEnd,
    ExecutionFailed,
    ExecutionInterrupted,
    ExecutionResumed,
    ExecutionStart,
    IsolationEstablished,
    OrchestratorComplete,
    SubscriberFailed,
)
from orchestrator_events.run import BudgetExhausted, BudgetOverrun
from orchestrator_events.workflow import (
    CascadeDetected,
    DecisionNeeded,
    DecisionTakenByUser,
    LearningRecorded,
    MetricRecorded,
    PhaseAbandoned,
    PhaseAnswered,
    PhaseAsked,
    PhaseEntered,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    RetryAttempted,
    RetryExhausted,
    StateMerged,
    StateRead,
    StateUnreadable,
    StateUnwritable,
    StateWritten,
    SubagentFinished,
    SubagentSpawned,
    SummaryReported,
    TodosUpdated,
    WorkflowCompleted,
    WorkflowContinued,
)
from orchestrator_states.lifecycle import Lifecycle, note, on

__all__ = ["WORKFLOW", "WorkflowState", "phases_lifecycle"]


class WorkflowState(StrEnum):
    """Where a workflow is: the seven steps of its loop, and where it waits or ends."""

    READY = "ready"
    READING = "reading"
    PLANNING = "planning"
    EXECUTING = "executing"
    MERGING = "merging"
    WRITING = "writing"
    REPORTING = "reporting"
    CHECKING = "checking"
    PAUSED = "paused"
    DONE = "done"
    ABORTED = "aborted"
    FAILED = "failed"


S = WorkflowState
STEPS = (S.READING, S.PLANNING, S.EXECUTING, S.MERGING, S.WRITING, S.REPORTING, S.CHECKING)
OPEN = (*STEPS, S.PAUSED)
ENDED_WITHOUT_SUCCESS = (S.ABORTED, S.FAILED)
STARTED = (*OPEN, S.DONE, *ENDED_WITHOUT_SUCCESS)
WORKFLOW = Lifecycle(
    name="workflow",
    states=tuple(WorkflowState),
    initial=S.READY,
    resting=(S.PAUSED, S.DONE, *ENDED_WITHOUT_SUCCESS),
    rows=(
        on(ExecutionStart, S.READY, S.READING),
        on(StateRead, S.READING, S.PLANNING),
        on(StateUnreadable, (S.READING, S.WRITING, S.PAUSED), S.CHECKING),
        on(TodosUpdated, S.PLANNING, S.EXECUTING),
        on(PhaseFinished, S.EXECUTING, S.MERGING),
        on(PhaseFailed, S.EXECUTING, S.MERGING),
        on(StateMerged, S.MERGING, S.WRITING),
        on(StateWritten, S.WRITING, S.REPORTING),
        on(StateUnwritable, (S.READING, S.WRITING), S.CHECKING),
        on(SummaryReported, S.REPORTING, S.CHECKING),
        on(WorkflowContinued, S.CHECKING, S.READING),
        on(WorkflowCompleted, (S.EXECUTING, S.CHECKING), S.DONE),
        on(DecisionNeeded, (S.CHECKING, S.READING), S.PAUSED),
        on(DecisionTakenByUser, S.PAUSED, S.READING, where={"goes_on": True}),
        on(DecisionTakenByUser, S.PAUSED, S.ABORTED, where={"goes_on": False}),
        on(BudgetExhausted, STEPS, S.PAUSED),
        on(ExecutionCancelled, OPEN, S.ABORTED),
        on(ExecutionFailed, OPEN, S.FAILED),
        on(ExecutionResumed, ENDED_WITHOUT_SUCCESS, S.READING),
    ),
    notes=(
        note(ExecutionStart, (*OPEN, *ENDED_WITHOUT_SUCCESS)),
        note(ExecutionResumed, OPEN),
        note(ExecutionInterrupted, OPEN),
        note(OrchestratorComplete, STARTED),
        note(ExecutionEnd, STARTED),
        note(IsolationEstablished, OPEN),
        note(PhaseStarted, S.EXECUTING),
        note(PhaseAsked, S.EXECUTING),
        note(PhaseAnswered, S.EXECUTING),
        note(PhaseAbandoned, S.EXECUTING),
        note(StateWritten, S.READING),
        note(SummaryReported, S.PLANNING),
        note(CascadeDetected, S.CHECKING),
        note(RetryAttempted, S.EXECUTING),
        note(RetryExhausted, S.EXECUTING),
        note(MetricRecorded, (S.EXECUTING, S.CHECKING)),
        note(LearningRecorded, (S.EXECUTING, S.MERGING, S.CHECKING, S.PAUSED)),
        note(SubagentSpawned, S.EXECUTING),
        note(SubagentFinished, S.EXECUTING),
        note(BudgetOverrun, OPEN),
        note(BudgetRaised, (*OPEN, *ENDED_WITHOUT_SUCCESS)),
        note(SubscriberFailed, OPEN),
        note(ApprovalRequested, OPEN),
        note(ApprovalAnswered, OPEN),
        note(ChildStarted, OPEN),
        note(ChildEnded, OPEN),
    ),
)


def phases_lifecycle(domain: str, phases: Sequence[str], following: Mapping[str, Sequence[str]]) -> Lifecycle:
    """The lifecycle of a domain: its phases in order, from each to those that may follow it.

    `following` names the allowed next phases of a phase; one that it does not name may be followed by any phase,
    itself included. The last phase is terminal. Raises LifecycleError with every fault.
    """
    *working, terminal = phases
    before = {target: [phase for phase in working if target in following.get(phase, phases)] for target in phases}
    before[phases[0]].insert(0, "begun")
    rows = [on(PhaseEntered, before[phase], phase, where={"phase": phase}) for phase in phases]
    return Lifecycle(name=domain, states=("begun", *phases), initial="begun", resting=(terminal,), rows=rows)
