"""Verifications: each belongs to something that verified, and the model was told its very figures."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.agent.plainjson import read_object
from orchestrator.agent.run import AgentRun
from orchestrator.harness.actions import ToolRole
from orchestrator.jsondata import JSON
from orchestrator_events.agent import ActionFinished, ActionStarted, MessageAdded, VerificationFinished
from orchestrator_events.event import Event
from orchestrator_events.record import Record

__all__ = ["Verifications"]


@attrs.define(eq=False)
class Verifications:
    """Follows what was verified, and what was said of it."""

    before: Event | None = None
    """The record before this one, where it was another than a note of failing subscribers."""
    untold: list[VerificationFinished] = attrs.Factory(list[VerificationFinished])
    """Automatic verifications that the model is to be told of next, in order, once the turn's results are told."""
    name: str = attrs.field(default="verifications", init=False)

    def look(self, run: AgentRun, record: Record) -> Iterator[str]:
        """Figures that come from nowhere, or that are told differently."""
        event = record.event
        if isinstance(event, VerificationFinished):
            yield from self.verified(run, event)
        elif isinstance(event, MessageAdded) and self.untold and event.role != "tool":
            told, verified = figures_in(event), figures_of(self.untold.pop(0))
            if told != verified:
                yield f"tells the model {told}, verified was {verified}"
        elif isinstance(event, MessageAdded) and event.origin == "harness" and figures_in(event) is not None:
            yield "tells the model of a verification that was not made"
        self.before = event

    def verified(self, run: AgentRun, event: VerificationFinished) -> Iterator[str]:
        """A verification follows the action that made it."""
        if event.is_automatic:
            self.untold.append(event)
        if not event.error:
            if not 0 <= event.passed <= event.total:
                yield f"{event.passed} of {event.total} cases cannot have passed"
            if len(event.failing) > max(0, event.total - event.passed):
                yield f"names {len(event.failing)} failing cases, {event.total - event.passed} did not pass"
        elif event.passed or event.total or event.failing:
            yield "gives figures, and a reason why there are none"
        if event.is_automatic and event.error.startswith("refused: "):
            return
        made = self.before
        intent = run.intents.get(made.call_id) if isinstance(made, ActionFinished) else None
        if intent is None or intent.is_automatic != event.is_automatic or not verifies(run, intent):
            yield f"is {'' if event.is_automatic else 'not '}automatic, and no such action was finished before it"

    def end(self, run: AgentRun) -> Iterator[str]:
        """A green end without a green verification is for the endings; an untold one may be cut off."""
        best = run.progress.best
        if best is not None and run.progress.last is not None and run.progress.last.is_better_than(best):
            yield "the best verification is not the best"


def verifies(run: AgentRun, intent: ActionStarted) -> bool:
    """Whether an action verifies: by its tool's role, or because the harness asked for it."""
    return intent.is_automatic or run.harness.roles.role_of(intent.tool) is ToolRole.VERIFY


def figures_of(event: VerificationFinished) -> JSON:
    """What the model is told of a verification."""
    failing: JSON = [case.id for case in event.failing]
    return {"passed": event.passed, "total": event.total, "failing": failing, "error": event.error}


def figures_in(event: MessageAdded) -> JSON:
    """The figures in a message of the harness; None where there are none."""
    metadata = read_object(event.message.data.decode()).get("metadata")
    return metadata.get("verification") if isinstance(metadata, dict) else None
