"""The lifecycle of a conformance run (contract 1)."""

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
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    CasesPinned,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationRetried,
    GenerationStarted,
    PromptReady,
    PromptRefined,
)
from orchestrator_states.lifecycle import Lifecycle, note, on

__all__ = ["RUN", "RunState"]


class RunState(StrEnum):
    """Where a conformance run is."""

    READY = "ready"
    PROMPTING = "prompting"
    GENERATING = "generating"
    EVALUATING = "evaluating"
    REFINING = "refining"
    PASSED = "passed"
    EXHAUSTED = "exhausted"
    CANCELLED = "cancelled"
    FAILED = "failed"


S = RunState
WORKING = (S.PROMPTING, S.GENERATING, S.EVALUATING, S.REFINING)
ENDED_WITHOUT_SUCCESS = (S.EXHAUSTED, S.CANCELLED, S.FAILED)
STARTED = (*WORKING, S.PASSED, *ENDED_WITHOUT_SUCCESS)

RUN = Lifecycle(
    name="run",
    states=tuple(RunState),
    initial=S.READY,
    resting=(S.PASSED, *ENDED_WITHOUT_SUCCESS),
    rows=(
        on(ExecutionStart, S.READY, S.PROMPTING),
        on(PromptReady, S.PROMPTING, S.GENERATING),
        on(CandidateGenerated, S.GENERATING, S.EVALUATING),
        on(AttemptFailed, (S.GENERATING, S.EVALUATING), S.REFINING),
        on(AttemptPassed, S.EVALUATING, S.PASSED),
        on(PromptRefined, S.REFINING, S.PROMPTING),
        on(BudgetExhausted, WORKING, S.EXHAUSTED),
        on(ExecutionCancelled, WORKING, S.CANCELLED),
        on(ExecutionFailed, WORKING, S.FAILED),
        *(on(ExecutionResumed, ENDED_WITHOUT_SUCCESS, state, where={"into": str(state)}) for state in WORKING),
    ),
    notes=(
        note(ExecutionStart, (*WORKING, *ENDED_WITHOUT_SUCCESS)),
        note(ExecutionResumed, WORKING),
        note(ExecutionInterrupted, (*WORKING, *ENDED_WITHOUT_SUCCESS)),
        note(OrchestratorComplete, STARTED),
        note(ExecutionEnd, STARTED),
        note(IsolationEstablished, WORKING),
        note(CasesPinned, WORKING),
        note(GenerationStarted, S.GENERATING),
        note(GenerationRetried, S.GENERATING),
        note(AnswerReceived, S.GENERATING),
        note(SecretFound, S.EVALUATING),
        note(GenerationAbandoned, (S.GENERATING, S.EVALUATING)),
        note(EvaluationStarted, S.EVALUATING),
        note(BudgetOverrun, (S.EVALUATING, S.REFINING)),
        note(BudgetRaised, (*WORKING, *ENDED_WITHOUT_SUCCESS)),
        note(SubscriberFailed, WORKING),
        note(ApprovalRequested, WORKING),
        note(ApprovalAnswered, WORKING),
        note(ChildStarted, WORKING),
        note(ChildEnded, WORKING),
    ),
)
