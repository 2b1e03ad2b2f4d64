"""The steps around an evaluation: what is submitted, and what becomes of the report."""

from __future__ import annotations

from orchestrator.adapter_errors import EvaluationError
from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.generating import InterruptionError
from orchestrator.judgement import judge
from orchestrator.ports import Submission
from orchestrator.run import Run
from orchestrator.verdicts import checked_verdict
from orchestrator_events.run import AttemptFailed, AttemptPassed, CandidateGenerated
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["judged", "refused", "reused", "submission_of"]


def submission_of(run: Run, generated: CandidateGenerated, language: str, begun: int) -> Submission:
    """What the evaluator judges, from this reading of the monotonic clock on."""
    return Submission(
        run_id=run.run_id,
        attempt=generated.attempt,
        candidate=Candidate.from_blob(generated.candidate, generated.form),
        spec=run.spec,
        expected=run.expectation.expected,
        language=language,
        seconds=run.remaining_seconds(begun),
    )


def judged(run: Run, generated: CandidateGenerated, verdict: object, begun: int) -> None:
    """Hold the report against the expected cases."""
    try:
        checked = checked_verdict(verdict, run.expectation.expected)
    except EvaluationError as error:
        raise InterruptionError(f"the evaluation gave no verdict: {error}") from error
    duration_us = run.clock.monotonic() - begun
    judgement = judge(checked, run.expectation)
    isolation = run.evaluator_isolation if checked.isolation == "none" else checked.isolation
    if judgement.is_conforming:
        run.fire(
            AttemptPassed(
                attempt=generated.attempt,
                passed=judgement.passed,
                duration_us=duration_us,
                is_pinned=judgement.is_pinned,
                isolation=isolation,
                integrity=checked.integrity,
            )
        )
    else:
        run.fire(
            AttemptFailed(
                attempt=generated.attempt,
                stage="evaluation",
                failing=judgement.failing,
                passed=judgement.passed,
                duration_us=duration_us,
                isolation=isolation,
                integrity=checked.integrity,
            )
        )


def refused(run: Run, generated: CandidateGenerated, reason: str) -> None:
    """The candidate cannot be laid beside the suite: it fails as a whole."""
    cases = (CaseResult("(candidate)", CaseStatus.ERROR, reason),)
    run.fire(AttemptFailed(attempt=generated.attempt, stage="evaluation", failing=cases))


def reused(run: Run, generated: CandidateGenerated, known: Attempt) -> None:
    """The candidate was judged before: its verdict stands, the attempt counts."""
    last = run.last
    repeats = 0
    if last is not None and last.generated is not None and last.generated.candidate == generated.candidate:
        repeats = last.repeats + 1
    run.fire(
        AttemptFailed(
            attempt=generated.attempt,
            stage="evaluation",
            failing=known.failing,
            passed=known.passed,
            reused_from=known.number,
            repeats=repeats,
        )
    )
