"""Secrets in plans: out of every record, prompt and file, but for a candidate, which is kept as it is and reported."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeVar

import attrs

from orchestrator.candidate import Candidate
from orchestrator.exposure import texts_in, values_of
from orchestrator.plan.recorded import MAKING
from orchestrator.redaction import Secrets
from orchestrator_events.agent import AnswerGiven, MessageAdded, PromptComplete, TurnAnswered
from orchestrator_events.event import Event
from orchestrator_events.execution import SecretFound
from orchestrator_events.plan import ArtifactPublished, StepCompared, StepExecuted, WorkFinished

if TYPE_CHECKING:
    from orchestrator.plan.plan import Plan

__all__ = ["CandidateSecrets", "candidate_secrets", "secrets_found", "texts_of_plan"]

AnyEvent = TypeVar("AnyEvent", bound=Event)

KEPT: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        AnswerGiven: "answer",
        ArtifactPublished: "content",
        MessageAdded: "message",
        PromptComplete: "response_preview",
        StepCompared: "candidates",
        StepExecuted: "output",
        TurnAnswered: "reply",
        WorkFinished: "output",
    }
)
"""Where a candidate, or a file of one, stands in a plan, a step, or the one turn of a model that makes it."""


class CandidateSecrets(Secrets):
    """Secrets in what makes candidates: no event is recorded with one, but in the candidate itself."""

    keeps_answers = True

    def cleansed(self, event: AnyEvent) -> AnyEvent:
        """The event as it may be recorded."""
        done = super().cleansed(event)
        name = KEPT.get(type(event))
        if name is None or done is event or not is_candidate(event):
            return done
        return attrs.evolve(done, **{name: getattr(event, name)})


def candidate_secrets(secrets: Secrets | None) -> CandidateSecrets | None:
    """The same secrets, for what makes candidates."""
    return None if secrets is None else CandidateSecrets(secrets.values)


def is_candidate(event: Event) -> bool:
    """Whether what such an event holds was made by a step's model, and is not what somebody says of it."""
    match event:
        case WorkFinished():
            return event.purpose in MAKING
        case MessageAdded():
            return event.origin == "model"
        case ArtifactPublished():
            return bool(event.step)
        case _:
            return True


def secrets_found(work: WorkFinished, secrets: Secrets, *, is_refused: bool) -> Iterator[SecretFound]:
    """An event for each secret in each text of a step's candidate; nothing for work that makes none."""
    if work.output is None or work.purpose not in MAKING:
        return
    for place, text in texts_in(Candidate.from_blob(work.output, work.form)):
        for secret in secrets.found(text):
            yield SecretFound(secret=secret, place=place, is_refused=is_refused)


def texts_of_plan(plan: Plan, run_id: str) -> Iterator[tuple[str, str]]:
    """What is kept of a plan as it is, since its digest is over every word: each part with what to call it."""
    yield "the run's id", run_id
    data = json.loads(plan.canonical)
    for number, step in enumerate(data.pop("steps"), 1):
        for key, value in step.items():
            yield f"step {number} of the plan, in {key},", "\n".join(values_of(value))
    for key, value in data.items():
        yield f"the plan's {key}", "\n".join(values_of(value))
    yield "the plan", plan.canonical
