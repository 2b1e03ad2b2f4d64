"""The events of plans and of their steps in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from orchestrator.narration import charged, decided, held, joined
from orchestrator.wording import count_of
from orchestrator_events.blob import Blob
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

__all__ = ["TOLD"]


def written(blob: Blob) -> Any:
    """The JSON that a record names; None for what is none."""
    try:
        return json.loads(blob.data.decode())
    except (ValueError, RecursionError):
        return None


def reviewed(event: PlanReviewed | PlanRejected | StepReviewed) -> str:
    """Who decided what, and what is asked for."""
    review = written(event.review)
    found = review if isinstance(review, dict) else {}
    names = ("required_fixes", "conditions", "diff_risk_notes")
    texts = [str(text) for name in names if isinstance(found.get(name), list) for text in found[name]]
    return joined(f"{event.reviewer}: {str(found.get('status', '')).replace('_', ' ')}", *texts)


def routed(event: StepRouted) -> str:
    """Who works on the step, by which rule."""
    second = f", secondary {event.secondary}" if event.secondary else ""
    looks = f"required: {', '.join(event.reviews)}" if event.reviews else ""
    models = f"{event.primary}{second}, {event.mode}, reviewed by {event.reviewer}"
    return joined(f"rule {event.rule}: {models}", event.reason, looks)


def begun(event: WorkStarted) -> str:
    """Who does what, and what is held for it."""
    who = f"{event.purpose} {event.number} by {event.model} as {event.role}, {event.executor}"
    again = f"again: {event.again}" if event.again else ""
    return joined(f"{who}: held {held(event.reservation)}", again, *decided(event.decisions))


def done(event: WorkFinished) -> str:
    """What came of it, and what it cost."""
    came = f"no output: {event.error}" if event.output is None else f"output {event.output.digest[:8]}"
    return f"{event.purpose} by {event.model}: {came}, charged {charged(event.charge)}"


def verified(event: StepVerified) -> str:
    """Which gates opened or stayed closed, by what was captured."""
    evidence = written(event.evidence)
    entries = [each for each in evidence if isinstance(each, dict)] if isinstance(evidence, list) else []
    ran = [
        f"{each.get('kind')}: {command(each.get('command'))} ended with {each.get('exit_status')}" for each in entries
    ]
    outcome = f"closed: {', '.join(event.failed)}" if event.failed else "every gate is open"
    return joined(outcome, *ran)


def command(words: object) -> str:
    """A command that was run."""
    return " ".join(map(str, words)) if isinstance(words, list) else str(words)


def executed(event: StepExecuted) -> str:
    """Whose output it is."""
    return f"output {event.output.digest[:8]} of {event.model} ({event.form}), charged {charged(event.charge)}"


TOLD: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        ArtifactPublished.name: lambda event: f"{event.path}, {event.standing}",
        DecisionRecorded.name: lambda event: f"{event.title} ({event.path})",
        FollowUpAdded.name: lambda event: joined(
            f"step {event.followup} is added", f"it carries the conditions of step {event.step}" if event.step else ""
        ),
        PlanAbandoned.name: lambda event: f"given up by {event.by}: {event.reason}",
        PlanAmended.name: lambda event: joined(
            f"by {event.by}: {event.reason}", *event.difference.data.decode().splitlines()
        ),
        PlanCompleted.name: lambda event: f"{count_of(len(event.steps), 'step')}: {', '.join(event.steps)}",
        PlanDrafted.name: lambda event: f"plan {event.plan_id}",
        PlanLocked.name: lambda event: f"by {event.by}: {event.digest}",
        PlanRejected.name: reviewed,
        PlanReviewed.name: reviewed,
        PlanStarted.name: lambda event: event.digest,
        ReleasePrepared.name: lambda event: joined(
            ", ".join(event.paths), *(f"missing: {each}" for each in event.missing)
        ),
        StepBlocked.name: lambda event: event.reason,
        StepCompared.name: lambda event: f"candidate {event.chosen + 1} of {len(event.candidates)}: {event.reason}",
        StepEscalated.name: lambda event: f"failed {count_of(event.failures, 'time')}: {event.model} takes over",
        StepExecuted.name: executed,
        StepFailed.name: lambda event: event.reason,
        StepFaltered.name: lambda event: f"no output: {event.error}, charged {charged(event.charge)}",
        StepReviewed.name: reviewed,
        StepRouted.name: routed,
        StepSettled.name: lambda event: joined(
            f"step {event.step} {event.state}, charged {charged(event.charge)}", event.reason
        ),
        StepStarted.name: lambda event: f"execution {event.number} by {event.model} as {event.role}, {event.executor}",
        StepUnblocked.name: lambda event: joined(
            f"begins anew under {event.digest}", f"{event.by}: {event.reason}" if event.by else ""
        ),
        StepVerified.name: verified,
        WorkFinished.name: done,
        WorkStarted.name: begun,
    }
)
"""By the event's wire name."""
