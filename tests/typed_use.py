"""Uses of the public names that have to type-check; read by a type checker, never run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_type

from orchestrator import (
    Approver,
    Budget,
    Candidate,
    CaseResult,
    CaseStatus,
    Composition,
    Evaluator,
    Exhausted,
    Generation,
    Generator,
    MergedSpec,
    NaiveRetry,
    Orchestrator,
    ParameterVariation,
    Passed,
    Refinement,
    Request,
    RunInterruptedError,
    Strategy,
    Submission,
    Usage,
    Verdict,
)
from orchestrator import events as ours
from orchestrator.attempt import Attempt
from orchestrator.run import Run


class Model:
    """A generator that says what it used."""

    name = "model"
    isolation = "none"
    max_prompt_characters: int | None = 10_000

    async def generate(self, request: Request) -> Generation:
        """One candidate."""
        return Generation(candidate=Candidate(request.prompt), usage=Usage(input_tokens=1, output_tokens=2))


class Suite:
    """An evaluator with results of its own making."""

    name = "suite"

    async def evaluate(self, submission: Submission) -> Verdict:
        """One verdict."""
        return Verdict((CaseResult(submission.candidate.digest, CaseStatus.PASSED),))


class Patience:
    """A strategy."""

    name = "patience"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """A sentence more."""
        return Refinement(notes=("Take your time.",))


class Person:
    """An approver."""

    async def approve(self, run_id: str, prompt: str) -> bool:
        """The answer."""
        return bool(run_id and prompt)


def as_files(request: Request) -> Mapping[str, str]:
    """A generator of several files."""
    return {"main.py": request.language}


async def as_text(request: Request) -> str:
    """A generator that is a coroutine function."""
    return request.prompt


async def by_case(submission: Submission) -> Mapping[str, bool | str]:
    """An evaluator that is a coroutine function."""
    return {"is-short": len(submission.candidate.text) < 10 or "it is long"}


def observe(record: ours.Record) -> None:
    """A subscriber."""
    assert_type(record.sequence, int)


def decide(question: ours.Question) -> ours.Decision:
    """A gate's responder."""
    return ours.Deny("enough") if question.state == "refining" else ours.Proceed()


generator: Generator = Model()
evaluator: Evaluator = Suite()
strategy: Strategy = Composition((NaiveRetry(), Patience(), ParameterVariation({"temperature": (0.2, 0.8)})))
approver: Approver = Person()

Orchestrator(generator=as_files, evaluator=by_case)
Orchestrator(generator=as_text, evaluator=evaluator)
complete = Orchestrator(
    generator=generator,
    evaluator=evaluator,
    strategy=strategy,
    approver=approver,
    budget=Budget(attempts=3, seconds=1.5, tokens=10_000),
)
assert_type(complete.bus.subscribe(observe, ours.AttemptFailed), ours.Subscription)
assert_type(complete.bus.answer(ours.RefinementRequested, decide), ours.Subscription)


def outcome(spec: MergedSpec) -> str:
    """What a host does with a result."""
    try:
        result = complete.run(spec)
    except RunInterruptedError as error:
        return error.report.state
    match result:
        case Passed():
            return assert_type(result.candidate, Candidate).text
        case Exhausted():
            return assert_type(result.limit, str)
