"""Events of the conformance run (contract 1): prompt, generate, evaluate, refine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Self

import attrs

from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.decision import DecisionTaken
from orchestrator_events.event import Fact, Gate, Live
from orchestrator_events.making import cheaply_made
from orchestrator_events.verdict import CaseResult

__all__ = [
    "AnswerReceived",
    "AttemptFailed",
    "AttemptPassed",
    "BudgetExhausted",
    "BudgetOverrun",
    "CandidateGenerated",
    "CasesPinned",
    "EvaluationRequested",
    "EvaluationStarted",
    "GenerationAbandoned",
    "GenerationProgressed",
    "GenerationRequested",
    "GenerationRetried",
    "GenerationStarted",
    "PromptReady",
    "PromptRefined",
    "RefinementRequested",
]


INTEGRITY = (
    "Who held the judge: `separate`, in a process that the candidate is not in; `cooperative`, in one it shares; "
    "`host`, the host's own evaluator, which does not say."
)


@cheaply_made
@attrs.frozen(kw_only=True)
class PromptReady(Fact):
    """The prompt of the next attempt is rendered."""

    name: ClassVar[str] = "prompt:ready"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    prompt: Annotated[Blob, "The prompt, whole."]
    strategy: Annotated[str, "Strategy in force, with its parameters."]
    parameters: Annotated[str, "JSON object of the generation parameters for this attempt."]
    seed: Annotated[str, "Label of the code seed the strategy mixed in; empty without one."] = ""


@cheaply_made
@attrs.frozen(kw_only=True)
class GenerationRequested(Gate):
    """May the generator be called?"""

    name: ClassVar[str] = "generation:requested"
    modifiable: ClassVar[tuple[str, ...]] = ("prompt", "parameters", "max_tokens")
    attempt: Annotated[int, "Number of the attempt, from 1."]
    prompt: Annotated[str, "The prompt as it would be sent; every section of the spec must stay in it."]
    parameters: Annotated[str, "JSON object of the generation parameters."]
    max_tokens: Annotated[int | None, "Output tokens asked for; None where nothing limits them."]
    key: Annotated[str, "Idempotency key of the call."]

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The request with these fields replaced; `max_tokens` follows from changed parameters, unless it is changed.

        Raises ValueError for parameters that are no JSON object.
        """
        if "parameters" in changes and "max_tokens" not in changes:
            import json

            parameters = json.loads(str(changes["parameters"]))
            if not isinstance(parameters, dict):
                raise ValueError(f"parameters must be a JSON object, not {changes['parameters']!r:.80}")
            changes = {**changes, "max_tokens": parameters.get("max_tokens")}
        return attrs.evolve(self, **changes)

    def injected(self, texts: Sequence[tuple[str, str]]) -> Self:
        """The request with the texts as sections at the end of its prompt, each with its role."""
        added = "".join(f"\n## Added ({role})\n\n{text}\n" for role, text in texts)
        return attrs.evolve(self, prompt=self.prompt + added)


@cheaply_made
@attrs.frozen(kw_only=True)
class GenerationStarted(Fact):
    """The intent to call the generator, committed before the call, with what is reserved for it."""

    name: ClassVar[str] = "generation:started"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    parameters: Annotated[str, "JSON object of the parameters actually sent."]
    reservation: Annotated[Reservation, "Worst case held until the call is settled, with its idempotency key."]
    prompt: Annotated[Blob | None, "The prompt as sent, where a gate changed it."] = None
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers decided."] = ()


@attrs.frozen(kw_only=True)
class GenerationProgressed(Live):
    """A call in flight is writing."""

    name: ClassVar[str] = "generation:progressed"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    output_tokens: Annotated[int, "Output tokens so far, estimated."]
    elapsed_us: Annotated[int, "Time since the call began, microseconds."]


@attrs.frozen(kw_only=True)
class GenerationRetried(Fact):
    """The call failed in a way that may pass; it is made again under the same key, within the same attempt."""

    name: ClassVar[str] = "generation:retried"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    retry: Annotated[int, "Number of this retry, from 1."]
    reason: Annotated[str, "Why the call failed."]
    wait_us: Annotated[int, "How long is waited before the next try, microseconds."]
    charge: Annotated[Charge, "What the failed try was charged."]


@attrs.frozen(kw_only=True)
class AnswerReceived(Fact):
    """The raw answer of a generator whose adapter extracts the candidate from it."""

    name: ClassVar[str] = "answer:received"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    answer: Annotated[Blob, "The answer, whole."]
    extraction: Annotated[str, "Rule by which the candidate was taken from it; empty when none could be."]


@attrs.frozen(kw_only=True)
class CasesPinned(Fact):
    """Which cases must pass, and which must fail, where a trusted run or the configuration says so."""

    name: ClassVar[str] = "cases:pinned"
    cases: Annotated[tuple[str, ...], "Ids that must be exactly those that pass; empty: those that the spec names."]
    controls: Annotated[tuple[str, ...], "Ids of cases that must fail, or the judge was tampered with."] = ()
    suite_digest: Annotated[str, "Digest of the eval suite that the ids were pinned from; empty when unknown."] = ""


@cheaply_made
@attrs.frozen(kw_only=True)
class CandidateGenerated(Fact):
    """The generator answered; the answer is stored before it is judged."""

    name: ClassVar[str] = "candidate:generated"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    candidate: Annotated[Blob, "The candidate, exactly as generated."]
    form: Annotated[str, "text, or files: a JSON object of path to text."]
    charge: Annotated[Charge, "What the call was charged."]
    duration_us: Annotated[int, "Time the call took, microseconds."]
    isolation: Annotated[str, "Isolation in force for the generator."] = "none"


@attrs.frozen(kw_only=True)
class GenerationAbandoned(Fact):
    """A call's outcome is unknown or of no use to the run; it is charged and may be made again."""

    name: ClassVar[str] = "generation:abandoned"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    key: Annotated[str, "Idempotency key of the call."]
    charge: Annotated[Charge, "What the call was charged."]
    reason: Annotated[str, "Why its answer is not used."]


@attrs.frozen(kw_only=True)
class EvaluationRequested(Gate):
    """May the eval suite be run on this candidate?"""

    name: ClassVar[str] = "evaluation:requested"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    candidate: Annotated[Blob, "The candidate, exactly as generated."]


@attrs.frozen(kw_only=True)
class EvaluationStarted(Fact):
    """The intent to run the eval suite, where subscribers answered at its gate; else the candidate's record is it."""

    name: ClassVar[str] = "evaluation:started"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers decided."] = ()


@attrs.frozen(kw_only=True)
class AttemptPassed(Fact):
    """Every expected case passed: the candidate conforms."""

    name: ClassVar[str] = "attempt:passed"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    passed: Annotated[tuple[str, ...], "Ids of the cases that passed, in the order reported."]
    duration_us: Annotated[int, "Time the evaluation took, microseconds."]
    is_pinned: Annotated[bool, "True when the expected case ids were named beforehand, not taken from the report."]
    isolation: Annotated[str, "Isolation in force for the evaluation."] = "none"
    integrity: Annotated[str, INTEGRITY] = "host"


@cheaply_made
@attrs.frozen(kw_only=True)
class AttemptFailed(Fact):
    """No candidate came, or it does not conform; what failed goes into the next prompt."""

    name: ClassVar[str] = "attempt:failed"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    stage: Annotated[str, "generation or evaluation."]
    failing: Annotated[tuple[CaseResult, ...], "Every case that did not pass; empty after a failed generation."] = ()
    passed: Annotated[tuple[str, ...], "Ids of the cases that passed, in the order reported."] = ()
    error: Annotated[str, "Why the generation failed; empty after an evaluation."] = ""
    remedy: Annotated[str, "What the host could change about that; in no prompt, and mostly empty."] = ""
    reused_from: Annotated[int, "Attempt whose verdict is reused for the identical candidate; 0 when evaluated."] = 0
    repeats: Annotated[int, "How many times in a row this same candidate came, after the first."] = 0
    duration_us: Annotated[int, "Time the generation or evaluation took, microseconds."] = 0
    key: Annotated[str, "Idempotency key of the failed call; empty after an evaluation."] = ""
    charge: Annotated[Charge | None, "What the failed call was charged; None after an evaluation."] = None
    isolation: Annotated[str, "Isolation in force for the failing stage."] = "none"
    integrity: Annotated[str, INTEGRITY] = "host"


@attrs.frozen(kw_only=True)
class RefinementRequested(Gate):
    """May another attempt be made?"""

    name: ClassVar[str] = "refinement:requested"
    attempt: Annotated[int, "Number the next attempt would have."]


@cheaply_made
@attrs.frozen(kw_only=True)
class PromptRefined(Fact):
    """The strategy decided what changes for the next attempt."""

    name: ClassVar[str] = "prompt:refined"
    attempt: Annotated[int, "Number of the attempt it is for, from 2."]
    feedback: Annotated[str, "How much of the failures the next prompt shows: ids or details."]
    parameters: Annotated[str, "JSON object of the parameters the strategy changes; {} for none."] = "{}"
    seed: Annotated[str, "Label of the code seed the strategy mixes in; empty without one."] = ""
    notes: Annotated[tuple[str, ...], "Sentences the strategy adds to the next prompt."] = ()
    decisions: Annotated[tuple[DecisionTaken, ...], "What the gate's subscribers decided."] = ()


@attrs.frozen(kw_only=True)
class BudgetExhausted(Fact):
    """A limit of the budget is reached; the run ends without a conforming candidate."""

    name: ClassVar[str] = "budget:exhausted"
    limit: Annotated[str, "The limit, as the budget names it."]
    detail: Annotated[str, "The sums, in words."]


@attrs.frozen(kw_only=True)
class BudgetOverrun(Fact):
    """A call used more than was reserved for it; nothing more is bought after it."""

    name: ClassVar[str] = "budget:overrun"
    attempt: Annotated[int, "Number of the attempt, from 1."]
    limits: Annotated[tuple[str, ...], "The limits that were passed."]
