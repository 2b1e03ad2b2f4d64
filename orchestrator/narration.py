"""An event's decision in words: who decided what, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from orchestrator.wording import count_of
from orchestrator_events.budget import Budget, Charge, Reservation
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Event
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

__all__ = ["charged", "decided", "held", "joined", "told"]


def told(event: Event) -> str:
    """One line on what an event decided or found; it holds text of others, which is not made safe to print."""
    tell = TOLD.get(type(event))
    if tell is None and getattr(event, "name", "") in AGENT_EVENTS:
        from orchestrator.agentnarration import TOLD as TOLD_OF_AGENTS

        tell = TOLD_OF_AGENTS.get(event.name)
    elif tell is None and type(event).__module__ == WORKFLOW_EVENTS:
        from orchestrator.workflownarration import TOLD as TOLD_OF_WORKFLOWS

        tell = TOLD_OF_WORKFLOWS.get(event.name)
    elif tell is None and type(event).__module__ == PLAN_EVENTS:
        from orchestrator.plannarration import TOLD as TOLD_OF_PLANS

        tell = TOLD_OF_PLANS.get(event.name)
    return "" if tell is None else tell(event)


def prompted(event: PromptReady) -> str:
    """What is asked, and how."""
    seed = f"seed {event.seed}" if event.seed else ""
    return joined(f"attempt {event.attempt} by {event.strategy}, parameters {event.parameters}", seed)


def pinned(event: CasesPinned) -> str:
    """What has to pass, and what has to fail."""
    cases = f"exactly {count_of(len(event.cases), 'case')} must pass" if event.cases else ""
    return joined(cases, f"must fail: {', '.join(event.controls)}" if event.controls else "")


def found(event: SecretFound) -> str:
    """Whose secret stands where."""
    return joined(f"the secret {event.secret} stands in {event.place}", "refused" if event.is_refused else "kept")


def received(event: AnswerReceived) -> str:
    """What of an answer is the candidate."""
    rule = f"the candidate by {event.extraction}" if event.extraction else "no candidate could be taken from it"
    return f"answer {event.answer.digest[:8]}, {rule}"


def failed(event: AttemptFailed) -> str:
    """Why an attempt failed, and whether its verdict is a reused one."""
    if event.stage == "generation":
        cost = "" if event.charge is None else f", charged {charged(event.charge)}"
        return joined(f"no candidate: {event.error}{cost}", event.remedy)
    reuse = f"the verdict of attempt {event.reused_from} is reused" if event.reused_from else ""
    repeats = f"repeat {event.repeats} in a row" if event.repeats else ""
    count = f"{len(event.passed)} of {len(event.passed) + len(event.failing)} cases passed"
    return joined(reuse, repeats, count, "failing: " + ", ".join(case.id for case in event.failing))


def refined(event: PromptRefined) -> str:
    """What the strategy changes."""
    parameters = f"parameters {event.parameters}" if event.parameters != "{}" else ""
    seed = f"seed {event.seed}" if event.seed else ""
    shown = f"attempt {event.attempt}: the strategy shows {event.feedback}"
    return joined(shown, parameters, seed, *event.notes, *decided(event.decisions))


def decided(decisions: Iterable[DecisionTaken]) -> Iterable[str]:
    """Who answered the gate with more than a plain yes."""
    return [f"{each.subscriber}: {each.action} ({each.detail})" for each in decisions]


def held(reservation: Reservation) -> str:
    """What is reserved."""
    parts = attrs.asdict(reservation)
    del parts["key"], parts["open_ended"]
    return ", ".join(f"{name} {value}" for name, value in parts.items() if value is not None)


def charged(charge: Charge) -> str:
    """What was charged."""
    about = "about " if charge.estimated else ""
    return f"{about}{charge.input_tokens} + {charge.output_tokens} tokens, {charge.money_micro} micro-units"


def limits(budget: Budget) -> str:
    """Every limit that holds."""
    return ", ".join(f"{name} {limit}" for name, limit in attrs.asdict(budget).items() if limit is not None)


def joined(*parts: str) -> str:
    """The parts that say something."""
    return "; ".join(part for part in parts if part)


AGENT_EVENTS = frozenset(
    {
        "message:added",
        "context:injected",
        "turn:started",
        "turn:answered",
        "turn:abandoned",
        "turn:ended",
        "provider:retry",
        "provider:error",
        "action:started",
        "action:denied",
        "action:finished",
        "tool:error",
        "harness:warned",
        "verification:finished",
        "answer:given",
        "prompt:complete",
        "cancel:requested",
        "cancel:completed",
    }
)
"""Events of an agent run, told by a module that only such runs load."""
PLAN_EVENTS = "orchestrator_events.plan"
"""The module of the events of plans, told by one that only plans load."""
WORKFLOW_EVENTS = "orchestrator_events.workflow"
"""The module of a workflow's events, told by one that only workflows load."""

TOLD: dict[type[Event], Callable[[Any], str]] = {
    ExecutionStart: lambda event: f"invocation {event.invocation}, limits: {limits(event.budget)}",
    ExecutionResumed: lambda event: f"goes on in {event.into}: {event.reason}",
    ExecutionInterrupted: lambda event: f"invocation {event.invocation} was cut off",
    IsolationEstablished: lambda event: f"generator {event.generator.label}, evaluator {event.evaluator.label}",
    CasesPinned: pinned,
    SecretFound: found,
    BudgetRaised: lambda event: f"limits from here: {limits(event.budget)}",
    PromptReady: prompted,
    GenerationStarted: lambda event: joined(f"the budget holds {held(event.reservation)}", *decided(event.decisions)),
    CandidateGenerated: lambda event: (
        f"candidate {event.candidate.digest[:8]} ({event.form}), charged {charged(event.charge)}"
    ),
    GenerationRetried: lambda event: f"retry {event.retry} after {event.wait_us / 1_000_000:g} s: {event.reason}",
    AnswerReceived: received,
    GenerationAbandoned: lambda event: f"charged {charged(event.charge)}: {event.reason}",
    EvaluationStarted: lambda event: joined("the suite may be run", *decided(event.decisions)),
    AttemptPassed: lambda event: f"all {count_of(len(event.passed), 'case')} passed",
    AttemptFailed: failed,
    PromptRefined: refined,
    BudgetExhausted: lambda event: f"the budget refuses more: {event.limit}: {event.detail}",
    BudgetOverrun: lambda event: f"the call passed {', '.join(event.limits)}: nothing more is bought",
    ExecutionCancelled: lambda event: f"{'denied' if event.is_denial else 'given up'}: {event.reason}",
    ExecutionFailed: lambda event: event.reason,
    OrchestratorComplete: lambda event: f"{event.status} after {count_of(event.turn_count, 'answer')}",
    ExecutionEnd: lambda event: joined(event.status, event.reason),
    SubscriberFailed: lambda event: f"{event.subscriber} failed at {event.event}: {event.error}",
    ApprovalRequested: lambda event: f"a person is asked at {event.gate}: {event.prompt}",
    ApprovalAnswered: lambda event: f"{'approved' if event.is_approved else 'refused'}: {event.answer}",
    ChildStarted: lambda event: f"child {event.child_id} ({event.lifecycle})",
    ChildEnded: lambda event: f"child {event.child_id}: {event.status}, {event.count} records, head {event.head[:8]}",
}
