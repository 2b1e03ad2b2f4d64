"""The lifecycle of an agent run (contracts 2 and 3): turns of a model until it answers, or a limit ends it."""

from __future__ import annotations

from enum import StrEnum

from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    ActionsSettled,
    ActionStarted,
    AnswerGiven,
    CancelCompleted,
    CancelRequested,
    ContextInjected,
    HarnessWarned,
    MessageAdded,
    PromptComplete,
    ProviderError,
    ProviderRetry,
    ToolError,
    TurnAbandoned,
    TurnAnswered,
    TurnEnded,
    TurnStarted,
    VerificationFinished,
)
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
from orchestrator_states.lifecycle import Lifecycle, note, on

__all__ = ["AGENT", "AgentState"]


class AgentState(StrEnum):
    """Where an agent run is."""

    READY = "ready"
    PROMPTING = "prompting"
    GENERATING = "generating"
    ACTING = "acting"
    VERIFYING = "verifying"
    CONCLUDING = "concluding"
    COMPLETED = "completed"
    INCOMPLETE = "incomplete"
    CANCELLED = "cancelled"
    FAILED = "failed"


S = AgentState
TAKING_TURNS = (S.PROMPTING, S.GENERATING, S.ACTING, S.VERIFYING)
WORKING = (*TAKING_TURNS, S.CONCLUDING)
ENDED_WITHOUT_SUCCESS = (S.INCOMPLETE, S.CANCELLED, S.FAILED)
STARTED = (*WORKING, S.COMPLETED, *ENDED_WITHOUT_SUCCESS)

AGENT = Lifecycle(
    name="agent",
    states=tuple(AgentState),
    initial=S.READY,
    resting=(S.COMPLETED, *ENDED_WITHOUT_SUCCESS),
    rows=(
        on(ExecutionStart, S.READY, S.PROMPTING),
        on(TurnStarted, S.PROMPTING, S.GENERATING),
        on(TurnAnswered, S.GENERATING, S.ACTING, where={"wants_tools": True}),
        on(TurnAnswered, S.GENERATING, S.VERIFYING, where={"wants_tools": False}),
        on(TurnAbandoned, S.GENERATING, S.PROMPTING),
        on(ActionsSettled, S.ACTING, S.VERIFYING),
        on(TurnEnded, S.VERIFYING, S.PROMPTING),
        on(AnswerGiven, S.VERIFYING, S.COMPLETED),
        on(BudgetExhausted, TAKING_TURNS, S.CONCLUDING),
        on(AnswerGiven, S.CONCLUDING, S.INCOMPLETE),
        on(ExecutionCancelled, WORKING, S.CANCELLED),
        on(ExecutionFailed, WORKING, S.FAILED),
        on(ExecutionResumed, ENDED_WITHOUT_SUCCESS, S.PROMPTING),
    ),
    notes=(
        note(ExecutionStart, (*WORKING, *ENDED_WITHOUT_SUCCESS)),
        note(ExecutionResumed, WORKING),
        note(ExecutionInterrupted, WORKING),
        note(OrchestratorComplete, STARTED),
        note(ExecutionEnd, STARTED),
        note(PromptComplete, STARTED),
        note(IsolationEstablished, WORKING),
        note(MessageAdded, STARTED),
        note(ContextInjected, WORKING),
        note(TurnStarted, S.CONCLUDING),
        note(TurnAnswered, S.CONCLUDING),
        note(TurnAbandoned, S.CONCLUDING),
        note(ProviderRetry, (S.GENERATING, S.CONCLUDING)),
        note(ProviderError, (S.GENERATING, S.CONCLUDING)),
        note(ActionStarted, (S.ACTING, S.VERIFYING)),
        note(ActionDenied, S.ACTING),
        note(ActionFinished, (S.ACTING, S.VERIFYING, S.CONCLUDING, S.CANCELLED, S.FAILED)),
        note(ToolError, (S.ACTING, S.VERIFYING)),
        note(HarnessWarned, S.ACTING),
        note(VerificationFinished, (S.ACTING, S.VERIFYING)),
        note(CancelRequested, WORKING),
        note(CancelCompleted, STARTED),
        note(BudgetExhausted, S.CONCLUDING),
        note(BudgetOverrun, WORKING),
        note(BudgetRaised, (*WORKING, *ENDED_WITHOUT_SUCCESS)),
        note(SubscriberFailed, WORKING),
        note(ApprovalRequested, WORKING),
        note(ApprovalAnswered, WORKING),
        note(ChildStarted, WORKING),
        note(ChildEnded, WORKING),
    ),
)
