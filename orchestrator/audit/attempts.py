"""Attempts: numbered without a gap, every event under its attempt's number and key, each once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import attrs

from orchestrator.jsondata import JSON
from orchestrator.run import Run
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.record import Record
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    AttemptPassed,
    BudgetOverrun,
    CandidateGenerated,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationRetried,
    GenerationStarted,
    PromptReady,
    PromptRefined,
)

__all__ = ["Attempts", "table_of"]

NUMBERED = (
    AnswerReceived, AttemptFailed, AttemptPassed, BudgetOverrun, CandidateGenerated, EvaluationStarted,
    GenerationAbandoned, GenerationRetried, GenerationStarted,
)  # fmt: skip


def table_of(text: str) -> Mapping[str, JSON]:
    """The JSON object in a field of a record; ValueError for anything else."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("JSON nests too deep") from None
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, not {text!r:.80}")  # noqa: TRY004 -- a fault of the record's text
    return found


@attrs.define(eq=False)
class Attempts:
    """Follows the numbers, keys, strategy and parameters of attempts; identity stays over a resume."""

    identity: Mapping[str, JSON] = attrs.Factory(dict[str, JSON])
    spec: str = ""
    name: str = attrs.field(default="attempts", init=False)

    def look(self, run: Run, record: Record) -> Iterator[str]:
        """Numbers, keys and identities that do not fit."""
        event = record.event
        match event:
            case ExecutionStart():
                yield from self.same_identity(event)
            case PromptReady():
                yield from self.prompted(run, event)
            case PromptRefined():
                expected = 1 if run.last is None else run.last.number + 1
                if event.attempt != expected:
                    yield f"refines for attempt {event.attempt}, expected {expected}"
            case _ if isinstance(event, NUMBERED):
                current = 0 if run.ready is None else run.ready.attempt
                if event.attempt != current:
                    yield f"{event.name} is of attempt {event.attempt}, but attempt {current} is under way"
                yield from keyed(run, record)
            case _:
                pass

    def same_identity(self, event: ExecutionStart) -> Iterator[str]:
        """What a resume may not change: the configuration and the spec."""
        identity = table_of(event.identity)
        if not self.spec:
            self.identity, self.spec = identity, event.prompt.digest
        if identity != self.identity:
            changed = sorted(
                name for name in {*identity, *self.identity} if identity.get(name) != self.identity.get(name)
            )
            yield f"invocation {event.invocation} changes the identity of the run: {', '.join(changed):.200}"
        if event.prompt.digest != self.spec:
            yield f"invocation {event.invocation} is of another spec"

    def prompted(self, run: Run, event: PromptReady) -> Iterator[str]:
        """A prompt follows from what the strategy decided."""
        refined = run.refined
        is_first = run.last is None or refined is None
        expected = 1 if is_first or refined is None else refined.attempt
        if event.attempt != expected:
            yield f"is the prompt of attempt {event.attempt}, expected {expected}"
        if event.strategy != self.identity.get("strategy"):
            yield f"names the strategy {event.strategy!r:.80}, the run's is {self.identity.get('strategy')!r:.80}"
        parameters = table_of(event.parameters)
        if is_first or refined is None:
            return
        if event.seed != refined.seed:
            yield f"mixes in the seed {event.seed!r:.80}, the strategy decided {refined.seed!r:.80}"
        base = self.identity.get("parameters")
        if isinstance(base, dict) and parameters != {**base, **table_of(refined.parameters)}:
            yield "its parameters are not the configured ones with the strategy's changes"

    def end(self, run: Run) -> Iterator[str]:
        """More verdicts on attempts than attempts."""
        numbers = [attempt.number for attempt in run.attempts]
        if numbers != list(range(1, len(numbers) + 1)):
            yield f"judges the attempts {numbers[:20]}, each of which should be judged once"


def keyed(run: Run, record: Record) -> Iterator[str]:
    """The idempotency key is made of run and attempt."""
    event = record.event
    match event:
        case GenerationStarted():
            key = event.reservation.key
        case CandidateGenerated() | GenerationAbandoned() | AnswerReceived() | GenerationRetried():
            key = event.key
        case AttemptFailed() if event.stage == "generation":
            key = event.key
        case _:
            return
    expected = f"{run.run_id}:{0 if run.ready is None else run.ready.attempt}"
    if key != expected:
        yield f"{event.name} has the key {key!r:.80}, expected {expected!r:.80}"
