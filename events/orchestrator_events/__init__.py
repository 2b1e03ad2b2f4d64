"""Events, gates and decisions, the bus that carries them, and the subscribers that come with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget, Charge, Reservation, Usage
from orchestrator_events.bus import (
    EVERYTHING,
    Bus,
    Guard,
    Observer,
    Question,
    Recorder,
    Responder,
    Subscription,
)
from orchestrator_events.clock import Clock, SystemClock
from orchestrator_events.decision import (
    AskUser,
    Decision,
    DecisionTaken,
    Deny,
    Inject,
    Modify,
    Proceed,
    Ruling,
)
from orchestrator_events.errors import (
    EventError,
    JournalConflictError,
    JournalError,
    OrchestratorError,
    StateError,
)
from orchestrator_events.event import Event, Fact, Gate, Live
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
from orchestrator_events.isolation import Isolation, Probe
from orchestrator_events.journal import Batch, Head, Journal
from orchestrator_events.ledger import Ledger, Refusal
from orchestrator_events.record import Entry, Record
from orchestrator_events.registry import event_class, event_names
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    CasesPinned,
    EvaluationRequested,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationProgressed,
    GenerationRequested,
    GenerationRetried,
    GenerationStarted,
    PromptReady,
    PromptRefined,
    RefinementRequested,
)
from orchestrator_events.subscribers.guard import guard_budget
from orchestrator_events.subscribers.history import record_history
from orchestrator_events.subscribers.log import log_attempts, log_records
from orchestrator_events.verdict import CaseResult, CaseStatus

if TYPE_CHECKING:
    from orchestrator_events.subscribers.metrics import ALL, Metrics, Spending, Summary, TimerError, Timing

__all__ = [
    "ALL",
    "EVERYTHING",
    "AnswerReceived",
    "ApprovalAnswered",
    "ApprovalRequested",
    "AskUser",
    "AttemptFailed",
    "AttemptPassed",
    "Batch",
    "Blob",
    "Budget",
    "BudgetExhausted",
    "BudgetOverrun",
    "BudgetRaised",
    "Bus",
    "CandidateGenerated",
    "CaseResult",
    "CaseStatus",
    "CasesPinned",
    "Charge",
    "ChildEnded",
    "ChildStarted",
    "Clock",
    "Decision",
    "DecisionTaken",
    "Deny",
    "Entry",
    "EvaluationRequested",
    "EvaluationStarted",
    "Event",
    "EventError",
    "ExecutionCancelled",
    "ExecutionEnd",
    "ExecutionFailed",
    "ExecutionInterrupted",
    "ExecutionResumed",
    "ExecutionStart",
    "Fact",
    "Gate",
    "GenerationAbandoned",
    "GenerationProgressed",
    "GenerationRequested",
    "GenerationRetried",
    "GenerationStarted",
    "Guard",
    "Head",
    "Inject",
    "Isolation",
    "IsolationEstablished",
    "Journal",
    "JournalConflictError",
    "JournalError",
    "Ledger",
    "Live",
    "Metrics",
    "Modify",
    "Observer",
    "OrchestratorComplete",
    "OrchestratorError",
    "Probe",
    "Proceed",
    "PromptReady",
    "PromptRefined",
    "Question",
    "Record",
    "Recorder",
    "RefinementRequested",
    "Refusal",
    "Reservation",
    "Responder",
    "Ruling",
    "SecretFound",
    "Spending",
    "StateError",
    "SubscriberFailed",
    "Subscription",
    "Summary",
    "SystemClock",
    "TimerError",
    "Timing",
    "Usage",
    "event_class",
    "event_names",
    "guard_budget",
    "log_attempts",
    "log_records",
    "record_history",
]


def __getattr__(name: str) -> object:
    """The metrics, which few hosts need, are loaded when one of their names is asked for."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from orchestrator_events.subscribers import metrics

    return getattr(metrics, name)
