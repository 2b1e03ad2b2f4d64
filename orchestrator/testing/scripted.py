"""A generator and an evaluator that answer from a script, and remember what they were asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Generic, Literal, Protocol, TypeVar, cast

import attrs

from orchestrator.adapter_errors import EvaluationError, GeneratorUnavailableError
from orchestrator.candidate import Candidate
from orchestrator.ports import Generation, Request, Submission, Verdict
from orchestrator_events.verdict import CaseResult

__all__ = ["ScriptedEvaluator", "ScriptedGenerator"]

AfterLast = Literal["raise", "repeat"]


def in_order(answers: Iterable[object]) -> tuple[object, ...]:
    """The answers as a tuple."""
    return tuple(answers)


@attrs.define(eq=False)
class ScriptedGenerator:
    """Gives the first call of a run its first answer, the second call the second, and so on.

    An answer is a text, files (path to text), a Candidate, a Generation, an exception to raise, or a plain
    or async callable that makes any of these from the Request. Anything else is returned as it is, to see
    what the engine makes of it. After the last answer, `repeat` gives that one again and `raise` (the
    default) says that the generator is unavailable, which interrupts the run.

    >>> from orchestrator import MergedSpec, Orchestrator
    >>> generator = ScriptedGenerator(["x = 0", OSError("disk full"), "x = 1"])
    >>> judge = lambda submission: {"x is 1": submission.candidate.text == "x = 1"}
    >>> engine = Orchestrator(generator=generator, evaluator=judge)
    >>> result = engine.run(MergedSpec(intent="Set x to 1."))
    >>> result.status, [request.attempt for request in generator.requests], result.errors
    ('passed', [1, 2, 3], ('OSError: disk full',))
    """

    answers: tuple[object, ...] = attrs.field(converter=in_order)
    after: AfterLast = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "repeat")))
    name: str = attrs.field(default="scripted", kw_only=True)
    isolation: str = attrs.field(default="none", kw_only=True)
    max_prompt_characters: int | None = attrs.field(default=None, kw_only=True)
    requests: list[Request] = attrs.field(factory=list, init=False)
    """What it was asked, in order, all runs together."""
    _script: Script[Request] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = Script(self.answers, self.after)

    @property
    def prompts(self) -> tuple[str, ...]:
        """The prompts it was given, in order."""
        return tuple(request.prompt for request in self.requests)

    async def generate(self, request: Request) -> Generation:
        """The script's next answer for the request's run."""
        self.requests.append(request)
        try:
            return cast(Generation, as_generation(await self._script.next(request)))
        except ScriptEndError as end:
            raise GeneratorUnavailableError(str(end)) from None


@attrs.define(eq=False)
class ScriptedEvaluator:
    """Gives the first evaluation of a run its first verdict, the second one the second, and so on.

    A verdict is a Verdict, a mapping of case id to True, False or a failure message, case results, an
    exception to raise, or a plain or async callable that makes any of these from the Submission. Anything
    else is returned as it is. An identical candidate is not evaluated again, so it takes no verdict from the
    script. After the last one, `repeat` gives that one again and `raise` (the default) interrupts the run.

    >>> from orchestrator import MergedSpec, Orchestrator
    >>> evaluator = ScriptedEvaluator([{"a": True, "b": "expected 2, found 3"}, {"a": True, "b": True}])
    >>> engine = Orchestrator(generator=ScriptedGenerator(["x = 3", "x = 2"]), evaluator=evaluator)
    >>> result = engine.run(MergedSpec(intent="Set x to 2."))
    >>> [(attempt.passed, [case.id for case in attempt.failing]) for attempt in result.history]
    [(('a',), ['b']), (('a', 'b'), [])]
    """

    verdicts: tuple[object, ...] = attrs.field(converter=in_order)
    after: AfterLast = attrs.field(default="raise", validator=attrs.validators.in_(("raise", "repeat")))
    name: str = attrs.field(default="scripted", kw_only=True)
    submissions: list[Submission] = attrs.field(factory=list, init=False)
    """What it was given to judge, in order, all runs together."""
    _script: Script[Submission] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._script = Script(self.verdicts, self.after)

    async def evaluate(self, submission: Submission) -> Verdict:
        """The script's next verdict for the submission's run."""
        self.submissions.append(submission)
        try:
            return cast(Verdict, as_verdict(await self._script.next(submission)))
        except ScriptEndError as end:
            raise EvaluationError(str(end)) from None


class ScriptEndError(Exception):
    """The script has no answer left."""


class Asked(Protocol):
    """What both ports are asked: it belongs to a run."""

    @property
    def run_id(self) -> str:
        """The run it belongs to."""
        ...


Question = TypeVar("Question", bound=Asked)


@attrs.define(eq=False)
class Script(Generic[Question]):
    """Answers in order, from the beginning for every run."""

    answers: tuple[object, ...]
    after: AfterLast
    calls: Counter[str] = attrs.field(factory=Counter)

    async def next(self, question: Question) -> object:
        """The next answer for the question's run; callables are called, exceptions raised."""
        position = self.calls[question.run_id]
        self.calls[question.run_id] += 1
        if position >= len(self.answers) and (self.after == "raise" or not self.answers):
            raise ScriptEndError(
                f"the script has {len(self.answers)} answers and was asked for number {position + 1}: "
                'add one, or pass after="repeat"'
            )
        answer = self.answers[min(position, len(self.answers) - 1)]
        if callable(answer) and not isinstance(answer, BaseException | type):
            answer = cast(Callable[[Question], object], answer)(question)
            answer = await answer if isawaitable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        return answer


def as_generation(answer: object) -> object:
    """The short forms of an answer as a Generation; anything else as it is."""
    match answer:
        case str():
            return Generation(candidate=Candidate(answer))
        case Candidate():
            return Generation(candidate=answer)
        case Mapping():
            return Generation(candidate=Candidate(files=answer))
    return answer


def as_verdict(answer: object) -> object:
    """The short forms of a verdict as a Verdict; anything else as it is."""
    match answer:
        case Mapping():
            return Verdict.of(answer)
        case Iterable() if not isinstance(answer, str):
            results = tuple(answer)
            return Verdict(results) if all(isinstance(each, CaseResult) for each in results) else answer
    return answer
