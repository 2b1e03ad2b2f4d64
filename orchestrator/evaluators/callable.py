"""A plain function, sync or async, as an evaluator."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeAlias, cast

import attrs

from orchestrator.adapter_errors import EvaluationError
from orchestrator.callables import is_async, missing_attributes, name_of_callable
from orchestrator.ports import Evaluator, Submission, Verdict
from orchestrator.threads import call_in_thread
from orchestrator_events.verdict import CaseResult

__all__ = ["CallableEvaluator", "EvaluatorCall", "EvaluatorLike", "as_evaluator"]

Outcome: TypeAlias = Verdict | Mapping[str, bool | str] | Iterable[CaseResult]
"""A verdict, its case results, or a mapping of case id to True, False or a failure message."""

EvaluatorCall: TypeAlias = Callable[[Submission], Outcome | Awaitable[Outcome]]
EvaluatorLike: TypeAlias = Evaluator | EvaluatorCall


@attrs.define(eq=False)
class CallableEvaluator:
    """Asks a callable for verdicts: an async one where it is called, a sync one in a daemon thread."""

    call: EvaluatorCall
    name: str = ""
    """Identifies it in records and over a resume; by default the callable's own qualified name."""
    _is_async: bool = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._is_async = is_async(self.call)
        self.name = self.name or name_of_callable(self.call)

    async def evaluate(self, submission: Submission) -> Verdict:
        """The callable's verdict; EvaluationError when it returned none."""
        if self._is_async:
            outcome = await self.call(submission)  # type: ignore[misc]  # an awaitable
        else:
            returned = await call_in_thread(self.call, submission)
            outcome = await returned if inspect.isawaitable(returned) else returned
        return outcome if type(outcome) is Verdict else _verdict(outcome)


def as_evaluator(evaluator: EvaluatorLike) -> Evaluator:
    """An evaluator as it is, or a callable made one; TypeError says what to change in anything else."""
    if isinstance(evaluator, type):
        raise TypeError(f"an evaluator must be an instance: write {evaluator.__name__}(...)")
    if hasattr(evaluator, "evaluate"):
        missing = missing_attributes(evaluator, ("name",))
        if missing:
            raise TypeError(f"{type(evaluator).__name__} has evaluate() but lacks {missing}: add what Evaluator asks")
        if not inspect.iscoroutinefunction(evaluator.evaluate):
            raise TypeError(f"{type(evaluator).__name__}.evaluate must be written as `async def`")
        return cast(Evaluator, evaluator)
    if callable(evaluator):
        return CallableEvaluator(evaluator)
    raise TypeError(
        f"{type(evaluator).__name__} is no evaluator: pass an Evaluator or a callable that takes a Submission"
    )


def _verdict(outcome: object) -> Verdict:
    match outcome:
        case Verdict():
            return outcome
        case Mapping() if all(isinstance(case, str) for case in outcome):
            wrong = [case for case, found in outcome.items() if not isinstance(found, bool | str)]
            if not wrong:
                return Verdict.of(outcome)
            raise EvaluationError(f"the outcome of case {wrong[0]!r} must be True, False or a failure message")
        case Iterable() if not isinstance(outcome, str | bytes | Mapping):
            results = tuple(outcome)
            if all(isinstance(result, CaseResult) for result in results):
                return Verdict(results)
    raise EvaluationError(
        f"the callable returned {type(outcome).__name__}: "
        "return a Verdict, CaseResults, or a mapping of case id to True, False or a failure message"
    )
