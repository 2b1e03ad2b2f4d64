"""Wire name to event class, resolved at first use so that importing the engine loads one family only."""

from __future__ import annotations

from functools import cache
from importlib import import_module

from orchestrator_events.errors import EventError
from orchestrator_events.event import Event

__all__ = ["event_class", "event_names"]

AGENT = "orchestrator_events.agent"
EXECUTION = "orchestrator_events.execution"
PLAN = "orchestrator_events.plan"
RUN = "orchestrator_events.run"
WORKFLOW = "orchestrator_events.workflow"

REGISTRY: dict[str, str] = {
    "action:denied": f"{AGENT}:ActionDenied",
    "action:finished": f"{AGENT}:ActionFinished",
    "action:started": f"{AGENT}:ActionStarted",
    "actions:settled": f"{AGENT}:ActionsSettled",
    "answer:given": f"{AGENT}:AnswerGiven",
    "answer:proposed": f"{AGENT}:AnswerProposed",
    "answer:received": f"{RUN}:AnswerReceived",
    "approval:answered": f"{EXECUTION}:ApprovalAnswered",
    "approval:requested": f"{EXECUTION}:ApprovalRequested",
    "artifact:published": f"{PLAN}:ArtifactPublished",
    "attempt:failed": f"{RUN}:AttemptFailed",
    "attempt:passed": f"{RUN}:AttemptPassed",
    "budget:exhausted": f"{RUN}:BudgetExhausted",
    "budget:overrun": f"{RUN}:BudgetOverrun",
    "budget:raised": f"{EXECUTION}:BudgetRaised",
    "cancel:completed": f"{AGENT}:CancelCompleted",
    "cancel:requested": f"{AGENT}:CancelRequested",
    "candidate:generated": f"{RUN}:CandidateGenerated",
    "cascade:detected": f"{WORKFLOW}:CascadeDetected",
    "cases:pinned": f"{RUN}:CasesPinned",
    "child:ended": f"{EXECUTION}:ChildEnded",
    "child:started": f"{EXECUTION}:ChildStarted",
    "content_block:delta": f"{AGENT}:ContentBlockDelta",
    "content_block:end": f"{AGENT}:ContentBlockEnd",
    "content_block:start": f"{AGENT}:ContentBlockStart",
    "context:injected": f"{AGENT}:ContextInjected",
    "decision:needed": f"{WORKFLOW}:DecisionNeeded",
    "decision:recorded": f"{PLAN}:DecisionRecorded",
    "decision:taken": f"{WORKFLOW}:DecisionTakenByUser",
    "evaluation:requested": f"{RUN}:EvaluationRequested",
    "evaluation:started": f"{RUN}:EvaluationStarted",
    "execution:cancelled": f"{EXECUTION}:ExecutionCancelled",
    "execution:end": f"{EXECUTION}:ExecutionEnd",
    "execution:failed": f"{EXECUTION}:ExecutionFailed",
    "execution:interrupted": f"{EXECUTION}:ExecutionInterrupted",
    "execution:resumed": f"{EXECUTION}:ExecutionResumed",
    "execution:start": f"{EXECUTION}:ExecutionStart",
    "followup:added": f"{PLAN}:FollowUpAdded",
    "generation:abandoned": f"{RUN}:GenerationAbandoned",
    "generation:progressed": f"{RUN}:GenerationProgressed",
    "generation:requested": f"{RUN}:GenerationRequested",
    "generation:retried": f"{RUN}:GenerationRetried",
    "generation:started": f"{RUN}:GenerationStarted",
    "harness:warned": f"{AGENT}:HarnessWarned",
    "isolation:established": f"{EXECUTION}:IsolationEstablished",
    "learning:recorded": f"{WORKFLOW}:LearningRecorded",
    "message:added": f"{AGENT}:MessageAdded",
    "metric:recorded": f"{WORKFLOW}:MetricRecorded",
    "orchestrator:complete": f"{EXECUTION}:OrchestratorComplete",
    "phase:abandoned": f"{WORKFLOW}:PhaseAbandoned",
    "phase:answered": f"{WORKFLOW}:PhaseAnswered",
    "phase:asked": f"{WORKFLOW}:PhaseAsked",
    "phase:entered": f"{WORKFLOW}:PhaseEntered",
    "phase:failed": f"{WORKFLOW}:PhaseFailed",
    "phase:finished": f"{WORKFLOW}:PhaseFinished",
    "phase:requested": f"{WORKFLOW}:PhaseRequested",
    "phase:started": f"{WORKFLOW}:PhaseStarted",
    "plan:abandoned": f"{PLAN}:PlanAbandoned",
    "plan:amended": f"{PLAN}:PlanAmended",
    "plan:completed": f"{PLAN}:PlanCompleted",
    "plan:drafted": f"{PLAN}:PlanDrafted",
    "plan:locked": f"{PLAN}:PlanLocked",
    "plan:rejected": f"{PLAN}:PlanRejected",
    "plan:reviewed": f"{PLAN}:PlanReviewed",
    "plan:started": f"{PLAN}:PlanStarted",
    "prompt:complete": f"{AGENT}:PromptComplete",
    "prompt:ready": f"{RUN}:PromptReady",
    "prompt:refined": f"{RUN}:PromptRefined",
    "prompt:submit": f"{AGENT}:PromptSubmit",
    "provider:error": f"{AGENT}:ProviderError",
    "provider:request": f"{AGENT}:ProviderRequest",
    "provider:response": f"{AGENT}:ProviderResponse",
    "provider:retry": f"{AGENT}:ProviderRetry",
    "refinement:requested": f"{RUN}:RefinementRequested",
    "release:prepared": f"{PLAN}:ReleasePrepared",
    "retry:attempted": f"{WORKFLOW}:RetryAttempted",
    "retry:exhausted": f"{WORKFLOW}:RetryExhausted",
    "secret:found": f"{EXECUTION}:SecretFound",
    "state:merged": f"{WORKFLOW}:StateMerged",
    "state:read": f"{WORKFLOW}:StateRead",
    "state:unreadable": f"{WORKFLOW}:StateUnreadable",
    "state:unwritable": f"{WORKFLOW}:StateUnwritable",
    "state:written": f"{WORKFLOW}:StateWritten",
    "step:blocked": f"{PLAN}:StepBlocked",
    "step:compared": f"{PLAN}:StepCompared",
    "step:escalated": f"{PLAN}:StepEscalated",
    "step:executed": f"{PLAN}:StepExecuted",
    "step:failed": f"{PLAN}:StepFailed",
    "step:faltered": f"{PLAN}:StepFaltered",
    "step:requested": f"{PLAN}:StepRequested",
    "step:reviewed": f"{PLAN}:StepReviewed",
    "step:routed": f"{PLAN}:StepRouted",
    "step:settled": f"{PLAN}:StepSettled",
    "step:started": f"{PLAN}:StepStarted",
    "step:unblocked": f"{PLAN}:StepUnblocked",
    "step:verified": f"{PLAN}:StepVerified",
    "subagent:finished": f"{WORKFLOW}:SubagentFinished",
    "subagent:spawned": f"{WORKFLOW}:SubagentSpawned",
    "subscriber:failed": f"{EXECUTION}:SubscriberFailed",
    "summary:reported": f"{WORKFLOW}:SummaryReported",
    "thinking:delta": f"{AGENT}:ThinkingDelta",
    "thinking:final": f"{AGENT}:ThinkingFinal",
    "todos:updated": f"{WORKFLOW}:TodosUpdated",
    "tool:error": f"{AGENT}:ToolError",
    "tool:post": f"{AGENT}:ToolPost",
    "tool:pre": f"{AGENT}:ToolPre",
    "turn:abandoned": f"{AGENT}:TurnAbandoned",
    "turn:answered": f"{AGENT}:TurnAnswered",
    "turn:ended": f"{AGENT}:TurnEnded",
    "turn:started": f"{AGENT}:TurnStarted",
    "verification:finished": f"{AGENT}:VerificationFinished",
    "work:finished": f"{PLAN}:WorkFinished",
    "work:started": f"{PLAN}:WorkStarted",
    "workflow:completed": f"{WORKFLOW}:WorkflowCompleted",
    "workflow:continued": f"{WORKFLOW}:WorkflowContinued",
}


def event_names() -> tuple[str, ...]:
    """Every wire name, sorted."""
    return tuple(sorted(REGISTRY))


@cache
def event_class(name: str) -> type[Event]:
    """The class behind a wire name; raises EventError for a name no release of ours has written."""
    place = REGISTRY.get(name)
    if place is None:
        raise EventError(f"unknown event {name!r}: the record comes from a newer release, or is not ours")
    module, _, attribute = place.partition(":")
    found: type[Event] = getattr(import_module(module), attribute)
    return found
