"""The lifecycles of a plan and of its steps (contract 5)."""

from __future__ import annotations

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
    SecretFound,
    SubscriberFailed,
)
from orchestrator_events.plan import (
    ArtifactPublished,
    DecisionRecorded,
    FollowUpAdded,
    PlanAbandoned,
    PlanAmended,
    PlanCompleted,
    PlanDrafted,
    PlanLocked,
    PlanRejected,
    PlanReviewed,
    PlanStarted,
    ReleasePrepared,
    StepBlocked,
    StepCompared,
    StepEscalated,
    StepExecuted,
    StepFailed,
    StepFaltered,
    StepReviewed,
    StepRouted,
    StepSettled,
    StepStarted,
    StepUnblocked,
    StepVerified,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.run import BudgetExhausted, BudgetOverrun
from orchestrator_states.lifecycle import Lifecycle, Note, note, on

__all__ = ["PLAN", "STEP", "PlanState", "StepState"]


class PlanState(StrEnum):
    """Where a plan is."""

    NEW = "new"
    DRAFT = "draft"
    REVIEWED = "reviewed"
    LOCKED = "locked"
    EXECUTING = "executing"
    AMENDED = "amended"
    COMPLETED = "completed"
    ABANDONED = "abandoned"


P = PlanState
OPEN = (P.DRAFT, P.REVIEWED, P.LOCKED, P.EXECUTING, P.AMENDED)


class StepState(StrEnum):
    """Where a step of a plan is."""

    PENDING = "pending"
    EXECUTING = "executing"
    VERIFYING = "verifying"
    REVIEWING = "reviewing"
    FIXING = "fixing"
    COMPLETED = "completed"
    BLOCKED = "blocked"
    FAILED = "failed"


S = StepState
UNDER_WAY = (S.EXECUTING, S.VERIFYING, S.REVIEWING, S.FIXING)
STEP_STATES = tuple(StepState)


def shared(states: tuple[str, ...]) -> tuple[Note, ...]:
    """Notes of the invocations and of what every run may meet."""
    events = (
        ExecutionStart, ExecutionInterrupted, ExecutionCancelled, ExecutionFailed,
        OrchestratorComplete, ExecutionEnd, IsolationEstablished, BudgetExhausted, BudgetOverrun, BudgetRaised,
        SubscriberFailed, ApprovalRequested, ApprovalAnswered, ChildStarted, ChildEnded, ArtifactPublished,
    )  # fmt: skip
    return tuple(note(event, states) for event in events)


PLAN = Lifecycle(
    name="plan",
    states=tuple(PlanState),
    initial=P.NEW,
    resting=(P.NEW, P.DRAFT, P.REVIEWED, P.LOCKED, P.AMENDED, P.COMPLETED, P.ABANDONED),
    rows=(
        on(PlanDrafted, (P.NEW, P.DRAFT), P.DRAFT),
        on(PlanReviewed, (P.DRAFT, P.AMENDED), P.REVIEWED),
        on(PlanLocked, P.REVIEWED, P.LOCKED),
        on(PlanStarted, P.LOCKED, P.EXECUTING),
        on(PlanAmended, (P.REVIEWED, P.LOCKED, P.EXECUTING, P.AMENDED), P.AMENDED),
        on(PlanCompleted, P.EXECUTING, P.COMPLETED),
        on(PlanAbandoned, OPEN, P.ABANDONED),
        on(ExecutionResumed, P.AMENDED, P.AMENDED),  # not in what was executing before
    ),
    notes=(
        *shared(tuple(PlanState)),
        note(ExecutionResumed, tuple(state for state in PlanState if state is not P.AMENDED)),
        note(PlanRejected, (P.DRAFT, P.AMENDED)),
        note(StepSettled, P.EXECUTING),
        note(FollowUpAdded, P.EXECUTING),
        note(DecisionRecorded, (*OPEN, P.COMPLETED)),
        note(ReleasePrepared, P.COMPLETED),
        note(WorkStarted, (P.DRAFT, P.AMENDED)),
        note(WorkFinished, (P.DRAFT, P.AMENDED)),
    ),
)

STEP = Lifecycle(
    name="step",
    states=tuple(StepState),
    initial=S.PENDING,
    resting=(S.COMPLETED, S.BLOCKED, S.FAILED),
    rows=(
        on(StepStarted, S.PENDING, S.EXECUTING),
        on(StepExecuted, (S.EXECUTING, S.FIXING), S.VERIFYING),
        on(StepFaltered, (S.EXECUTING, S.FIXING), S.FIXING),
        on(StepVerified, S.VERIFYING, S.REVIEWING, where={"has_passed": True}),
        on(StepVerified, S.VERIFYING, S.FIXING, where={"has_passed": False}),
        on(StepReviewed, S.REVIEWING, S.COMPLETED, where={"outcome": "approved"}),
        on(StepReviewed, S.REVIEWING, S.FIXING, where={"outcome": "changes_requested"}),
        on(StepReviewed, S.REVIEWING, S.BLOCKED, where={"outcome": "blocked"}),
        on(StepBlocked, (S.PENDING, *UNDER_WAY), S.BLOCKED),
        on(StepFailed, S.FIXING, S.FAILED),
        on(ExecutionResumed, (S.BLOCKED, S.FAILED), S.PENDING),
    ),
    notes=(
        *shared(STEP_STATES),
        note(ExecutionResumed, (S.PENDING, *UNDER_WAY, S.COMPLETED)),
        note(StepUnblocked, S.PENDING),
        note(StepRouted, (S.PENDING, S.FIXING)),
        note(StepStarted, (S.EXECUTING, S.FIXING)),
        note(WorkStarted, UNDER_WAY),
        note(WorkFinished, UNDER_WAY),
        note(StepCompared, (S.EXECUTING, S.FIXING)),
        note(SecretFound, (S.EXECUTING, S.FIXING)),
        note(StepEscalated, S.FIXING),
        note(DecisionRecorded, STEP_STATES),
    ),
)
