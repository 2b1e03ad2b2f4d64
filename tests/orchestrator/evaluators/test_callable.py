"""What a callable as an evaluator promises."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.adapter_errors import EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.evaluators.callable import CallableEvaluator, as_evaluator
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.ports import Submission, Verdict
from orchestrator.spec import MergedSpec
from orchestrator_events.verdict import CaseResult, CaseStatus

SUBMISSION = Submission(
    run_id="run",
    attempt=1,
    candidate=Candidate("x"),
    spec=MergedSpec(intent="Do it."),
    language="python",
    seconds=None,
)
FAILED = CaseResult("a", CaseStatus.FAILED, "no")


def evaluate(call: Any) -> Verdict:
    """Ask a callable once, through the adapter."""
    return asyncio.run(as_evaluator(call).evaluate(SUBMISSION))


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        ({"a": "no"}, Verdict((FAILED,))),
        ({"a": True, "b": False}, Verdict.of({"a": True, "b": False})),
        ([FAILED], Verdict((FAILED,))),
        (Verdict((FAILED,), "vm"), Verdict((FAILED,), "vm")),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_mappings_results_and_verdicts_are_outcomes(outcome: Any, verdict: Verdict, is_async: bool) -> None:
    """The simplest callable returns a mapping of case id to True, False or a message."""

    def judge(submission: Submission) -> Any:
        assert submission is SUBMISSION
        return outcome

    async def judge_async(submission: Submission) -> Any:
        return judge(submission)

    assert evaluate(judge_async if is_async else judge) == verdict


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [
        (None, "returned NoneType: return a Verdict"),
        (True, "returned bool: return a Verdict"),
        ("passed", "returned str: return a Verdict"),
        (["a"], "returned list: return a Verdict"),
        ({"a": 1}, "outcome of case 'a' must be True, False or a failure message"),
        ({1: True}, "returned dict: return a Verdict"),
    ],
)
def test_any_other_outcome_is_no_verdict(outcome: Any, reason: str) -> None:
    """Nothing is guessed: 1 is not True, and a lone True says nothing of cases."""
    with pytest.raises(EvaluationError, match=reason):
        evaluate(lambda _: outcome)


class Nameless:
    """Has the method of the port and not its name."""

    async def evaluate(self, submission: Submission) -> Verdict:
        """Never called."""
        raise AssertionError(submission)


def test_an_evaluator_stays_what_it_is() -> None:
    """What fills the port is not wrapped; a callable is named after itself."""
    evaluator = CommandEvaluator("true", suite={})
    assert as_evaluator(evaluator) is evaluator
    assert CallableEvaluator(evaluate).name == f"{__name__}.evaluate"


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        (Nameless(), "lacks name: add"),
        (Nameless, r"must be an instance: write Nameless\(\.\.\.\)"),
        (7, "int is no evaluator: pass an Evaluator or a callable"),
    ],
)
def test_anything_else_is_refused_with_the_fix(wrong: Any, fix: str) -> None:
    """A mistake is told when the engine is built."""
    with pytest.raises(TypeError, match=fix):
        as_evaluator(wrong)
