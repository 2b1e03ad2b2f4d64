"""Names under which Amplifier hears of our events: the kernel's own constants where it has one, else ours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from orchestrator_events import agent as turns
from orchestrator_events import execution, run
from orchestrator_events.event import Event, Fact, Gate, Live

__all__ = ["DROPPED", "FACTS", "GATES", "LIVES", "MODULE_ID", "custom_events", "kernel_events", "wire_name"]

MODULE_ID = "loop-conformance"

DROPPED = f"{MODULE_ID}:injection_dropped"
"""The one event that only the adapter has: the kernel refused to store an injection."""

GATES: tuple[type[Gate], ...] = (
    turns.PromptSubmit,
    turns.ProviderRequest,
    turns.ProviderResponse,
    turns.ToolPre,
    turns.ToolPost,
    turns.AnswerProposed,
)

LIVES: tuple[type[Live], ...] = (
    turns.ContentBlockStart,
    turns.ContentBlockDelta,
    turns.ContentBlockEnd,
    turns.ThinkingDelta,
    turns.ThinkingFinal,
)

FACTS: tuple[type[Fact], ...] = (
    execution.ExecutionStart,
    execution.IsolationEstablished,
    execution.ExecutionCancelled,
    execution.ExecutionFailed,
    execution.OrchestratorComplete,
    execution.ExecutionEnd,
    execution.ApprovalRequested,
    execution.ApprovalAnswered,
    execution.SubscriberFailed,
    run.BudgetExhausted,
    run.BudgetOverrun,
    turns.MessageAdded,
    turns.ContextInjected,
    turns.TurnStarted,
    turns.TurnAnswered,
    turns.TurnAbandoned,
    turns.TurnEnded,
    turns.ProviderRetry,
    turns.ProviderError,
    turns.ActionStarted,
    turns.ActionDenied,
    turns.ActionFinished,
    turns.ActionsSettled,
    turns.ToolError,
    turns.HarnessWarned,
    turns.VerificationFinished,
    turns.AnswerGiven,
    turns.PromptComplete,
    turns.CancelRequested,
    turns.CancelCompleted,
)
"""What an agent run in Amplifier can record; a resume and children are not among it."""


def wire_name(event: Event) -> str:
    """The name under which the kernel's hooks are told of an event."""
    if isinstance(event, execution.ApprovalAnswered):
        from amplifier_core import events

        return str(events.APPROVAL_GRANTED if event.is_approved else events.APPROVAL_DENIED)
    return kernel_events().get(type(event), event.name)


@cache
def kernel_events() -> Mapping[type[Event], str]:
    """The events that the kernel has a constant for; the constants are looked up when first needed."""
    from amplifier_core import events

    return {
        execution.ExecutionStart: events.EXECUTION_START,
        execution.ExecutionEnd: events.EXECUTION_END,
        execution.OrchestratorComplete: events.ORCHESTRATOR_COMPLETE,
        execution.ApprovalRequested: events.APPROVAL_REQUIRED,
        turns.PromptSubmit: events.PROMPT_SUBMIT,
        turns.PromptComplete: events.PROMPT_COMPLETE,
        turns.ProviderRequest: events.PROVIDER_REQUEST,
        turns.ProviderResponse: events.PROVIDER_RESPONSE,
        turns.ProviderRetry: events.PROVIDER_RETRY,
        turns.ProviderError: events.PROVIDER_ERROR,
        turns.ToolPre: events.TOOL_PRE,
        turns.ToolPost: events.TOOL_POST,
        turns.ToolError: events.TOOL_ERROR,
        turns.ContentBlockStart: events.CONTENT_BLOCK_START,
        turns.ContentBlockDelta: events.CONTENT_BLOCK_DELTA,
        turns.ContentBlockEnd: events.CONTENT_BLOCK_END,
        turns.ThinkingDelta: events.THINKING_DELTA,
        turns.ThinkingFinal: events.THINKING_FINAL,
        turns.CancelRequested: events.CANCEL_REQUESTED,
        turns.CancelCompleted: events.CANCEL_COMPLETED,
    }


def custom_events() -> list[str]:
    """Every event we emit that the kernel does not know: our contribution to `observability.events`."""
    standard = {*kernel_events(), execution.ApprovalAnswered}
    own = [event.name for event in (*GATES, *LIVES, *FACTS) if event not in standard]
    return sorted([*own, DROPPED])
