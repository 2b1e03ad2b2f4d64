"""A run in memory: the fold of its records, and the outbox of those not yet committed.

A run changes only in `apply`, one record at a time and in constant time, so that the live run, a resumed one and
an audited one are the same value by construction.
"""

from __future__ import annotations

import attrs

from orchestrator.attempt import Attempt
from orchestrator.execution import Execution, changes_of
from orchestrator.judgement import Expectation
from orchestrator.spec import MergedSpec
from orchestrator_events.execution import (
    BudgetRaised,
    ExecutionCancelled,
    ExecutionResumed,
    IsolationEstablished,
)
from orchestrator_events.run import (
    AnswerReceived,
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    CasesPinned,
    GenerationAbandoned,
    GenerationRetried,
    GenerationStarted,
    PromptReady,
    PromptRefined,
)

__all__ = ["Attempt", "Run"]


@attrs.define(eq=False, kw_only=True)
class Run(Execution):
    """A conformance run."""

    spec: MergedSpec
    opening: str = ""
    """What every prompt of the run begins with."""
    attempts: list[Attempt] = attrs.Factory(list[Attempt])
    """Judged attempts, in order."""
    closest: Attempt | None = None
    """The best attempt with a candidate and a verdict."""
    ready: PromptReady | None = None
    started: GenerationStarted | None = None
    generated: CandidateGenerated | None = None
    answer: AnswerReceived | None = None
    refined: PromptRefined | None = None
    answered: int = 0
    """Generator calls that answered with a candidate."""
    exhausted: BudgetExhausted | None = None
    given_up: str = ""
    """Why the run was cancelled."""
    generator_isolation: str = "none"
    evaluator_isolation: str = "none"
    """What holds them in, in words, as each attempt records it."""
    pinned: CasesPinned | None = None
    """The cases that must pass and those that must fail, where more is known of them than the spec says."""
    verdicts: dict[tuple[str, bytes], Attempt] = attrs.Factory(dict[tuple[str, bytes], Attempt])
    """First verdict on each candidate, by form and content, so that none is judged twice."""
    known_expectation: Expectation | None = None

    @property
    def expectation(self) -> Expectation:
        """Which cases must pass and which must fail; made once, at the first use."""
        if self.known_expectation is None:
            self.known_expectation = Expectation.of(self.spec, self.pinned)
        return self.known_expectation

    @property
    def last(self) -> Attempt | None:
        """The last judged attempt."""
        return self.attempts[-1] if self.attempts else None


def resumed(run: Run, _: ExecutionResumed) -> None:
    """The run goes on: whatever had ended it no longer does."""
    run.exhausted = None
    run.given_up = ""


def prompted(run: Run, event: PromptReady) -> None:
    """A new attempt."""
    run.ready, run.started, run.generated, run.answer = event, None, None, None
    run.ledger.attempts = event.attempt


def called(run: Run, event: GenerationStarted) -> None:
    """A call is in flight; what the guard reserved is held (again, when folding a journal)."""
    run.started = event
    run.ledger.holds.setdefault(event.reservation.key, event.reservation)
    run.ledger.calls += 1


def generated(run: Run, event: CandidateGenerated) -> None:
    """The call answered."""
    run.generated = event
    run.answered += 1
    run.ledger.settle(event.key, event.charge)


def answered(run: Run, event: AnswerReceived) -> None:
    """The raw answer is there."""
    run.answer = event


def retried(run: Run, event: GenerationRetried) -> None:
    """A try failed and is made again: what it was charged counts, and the call is still held."""
    run.ledger.add(event.charge)


def isolated(run: Run, event: IsolationEstablished) -> None:
    """What holds generator and evaluation in is known."""
    run.isolation = event
    run.generator_isolation, run.evaluator_isolation = event.generator.label, event.evaluator.label


def pinned(run: Run, event: CasesPinned) -> None:
    """Which cases must pass and fail is known."""
    run.pinned, run.known_expectation = event, None


def abandoned(run: Run, event: GenerationAbandoned) -> None:
    """The call is charged and may be made again."""
    run.started = None
    run.ledger.settle(event.key, event.charge)


def failed(run: Run, event: AttemptFailed) -> None:
    """The attempt is judged: it does not conform, or no candidate came."""
    if event.charge is not None:
        run.ledger.settle(event.key, event.charge)
    run.ledger.repeats = event.repeats
    judged(run, event)


def judged(run: Run, event: AttemptFailed | AttemptPassed) -> None:
    """Close the attempt and see whether it is the closest so far."""
    if run.ready is None:
        return
    attempt = Attempt(run.ready, run.started, run.generated, event, run.answer)
    run.attempts.append(attempt)
    if run.generated is not None:
        run.verdicts.setdefault((run.generated.form, run.generated.candidate.data), attempt)
        if attempt.is_closer_than(run.closest):
            run.closest = attempt


def refined(run: Run, event: PromptRefined) -> None:
    """What changes for the next attempt is decided."""
    run.refined = event


def exhausted(run: Run, event: BudgetExhausted) -> None:
    """A limit is reached."""
    run.exhausted = event


def given_up(run: Run, event: ExecutionCancelled) -> None:
    """The run is given up."""
    run.given_up = event.reason


def overran(run: Run, event: BudgetOverrun) -> None:
    """Nothing more is bought."""
    run.ledger.overruns += event.limits


def raised(run: Run, event: BudgetRaised) -> None:
    """Other limits hold from here."""
    run.ledger.budget = event.budget
    run.ledger.overruns = ()
    run.exhausted = None


Run.changes = changes_of(
    {
        ExecutionResumed: resumed,
        PromptReady: prompted,
        IsolationEstablished: isolated,
        CasesPinned: pinned,
        GenerationStarted: called,
        GenerationRetried: retried,
        AnswerReceived: answered,
        CandidateGenerated: generated,
        GenerationAbandoned: abandoned,
        AttemptFailed: failed,
        AttemptPassed: judged,
        PromptRefined: refined,
        BudgetExhausted: exhausted,
        BudgetOverrun: overran,
        ExecutionCancelled: given_up,
        BudgetRaised: raised,
    }
)
