"""The invocation's brackets, on every way out of a run, and the states and statuses they carry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import attrs
import pytest

from orchestrator import (
    Attempt,
    Budget,
    Bus,
    EvaluationError,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Refinement,
    RunCancelledError,
    RunFailedError,
    RunInterruptedError,
)
from orchestrator.journal.memory import MemoryJournal
from orchestrator.outcome import RunEndedError
from orchestrator.run import Run
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.decision import Deny, Modify
from orchestrator_events.event import Gate
from orchestrator_events.execution import ExecutionEnd, OrchestratorComplete
from orchestrator_events.record import Record
from orchestrator_events.run import EvaluationRequested, GenerationRequested, RefinementRequested

SPEC = MergedSpec(intent="Set x to 1.")
FAILS = {"case": "no"}
PASSES = {"case": True}


@attrs.frozen
class BrokenStrategy:
    """Raises at its first or its second decision."""

    at: int
    name: str = "broken"

    def refine(self, run: Run, attempt: Attempt | None) -> Refinement:  # noqa: ARG002 -- the port's signature
        """Raise when it is time."""
        if self.at == (1 if attempt is None else 2):
            raise KeyError("no such thing")
        return Refinement()


def denying(gate: type[Gate]) -> Bus:
    """A bus with one subscriber that denies."""
    bus = Bus()
    bus.answer(gate, lambda _: Deny("not today"), name="policy")
    return bus


def emptying() -> Bus:
    """A bus with one subscriber that empties the prompt."""
    bus = Bus()
    bus.answer(GenerationRequested, lambda _: Modify({"prompt": ""}))
    return bus


def engine(answers: list[Any], verdicts: list[Any], **options: Any) -> Orchestrator:
    """An orchestrator on scripts."""
    options.setdefault("budget", Budget(attempts=2))
    return Orchestrator(generator=ScriptedGenerator(answers), evaluator=ScriptedEvaluator(verdicts), **options)


def stopped(state: str) -> list[Record]:
    """The records of a run whose task is cancelled while the effect of that state never ends."""
    seen, begun = RecordingSubscriber(), asyncio.Event()

    async def hang(_: object) -> str:
        begun.set()
        await asyncio.Event().wait()
        return ""

    made = engine([hang if state == "generating" else "x"], [hang])
    made.bus.subscribe(seen)

    async def cancel() -> None:
        task = asyncio.create_task(made.arun(SPEC))
        await begun.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    return seen.records


def ended(made: Orchestrator) -> list[Record]:
    """The records of a run, whether it has a result or an error."""
    try:
        return list(made.run(SPEC).records)
    except RunEndedError as error:
        return list(error.report.records)


WAYS_OUT: dict[str, tuple[Callable[[], list[Record]], str, str, str]] = {
    "passed": (lambda: ended(engine(["x"], [PASSES])), "passed", "success", "completed"),
    "exhausted": (lambda: ended(engine(["x", "y"], [FAILS, FAILS])), "exhausted", "incomplete", "completed"),
    "no candidate": (
        lambda: ended(engine([OSError("a"), OSError("b")], [])),
        "exhausted",
        "incomplete",
        "completed",
    ),
    "denied generation": (
        lambda: ended(engine(["x"], [FAILS], bus=denying(GenerationRequested))),
        "cancelled",
        "incomplete",
        "error",
    ),
    "denied evaluation": (
        lambda: ended(engine(["x"], [FAILS], bus=denying(EvaluationRequested))),
        "cancelled",
        "incomplete",
        "error",
    ),
    "denied refinement": (
        lambda: ended(engine(["x"], [FAILS], bus=denying(RefinementRequested))),
        "cancelled",
        "incomplete",
        "error",
    ),
    "weakened spec": (
        lambda: ended(engine(["x"], [FAILS], bus=emptying())),
        "generating",
        "incomplete",
        "error",
    ),
    "generator unavailable": (
        lambda: ended(engine([GeneratorUnavailableError("401")], [])),
        "generating",
        "incomplete",
        "error",
    ),
    "evaluator broken": (
        lambda: ended(engine(["x"], [EvaluationError("no report")])),
        "evaluating",
        "incomplete",
        "error",
    ),
    "no case reported": (lambda: ended(engine(["x"], [{}])), "evaluating", "incomplete", "error"),
    "strategy broken at once": (
        lambda: ended(engine(["x"], [FAILS], strategy=BrokenStrategy(1))),
        "failed",
        "incomplete",
        "error",
    ),
    "strategy broken later": (
        lambda: ended(engine(["x"], [FAILS], strategy=BrokenStrategy(2))),
        "failed",
        "incomplete",
        "error",
    ),
    "task cancelled in a generation": (
        lambda: stopped("generating"),
        "generating",
        "cancelled",
        "cancelled",
    ),
    "task cancelled in an evaluation": (
        lambda: stopped("evaluating"),
        "evaluating",
        "cancelled",
        "cancelled",
    ),
}


@pytest.mark.parametrize("way", WAYS_OUT)
def test_every_invocation_is_bracketed(way: str) -> None:
    """`execution:start` is first, `orchestrator:complete` then `execution:end` are last, each exactly
    once.
    """
    make, _, _, _ = WAYS_OUT[way]
    names = [record.event.name for record in make()]
    markers = ("execution:start", "orchestrator:complete", "execution:end")
    assert (names[0], *names[-2:]) == markers
    assert [names.count(marker) for marker in markers] == [1, 1, 1]


@pytest.mark.parametrize("way", WAYS_OUT)
def test_state_and_statuses(way: str) -> None:
    """Passed is success, exhausted incomplete, a cancelled task cancelled, everything broken or denied an
    error.
    """
    make, state, completion, status = WAYS_OUT[way]
    records = make()
    complete, end = records[-2].event, records[-1].event
    assert isinstance(complete, OrchestratorComplete)
    assert isinstance(end, ExecutionEnd)
    assert (records[-1].target, complete.status, end.status, complete.orchestrator) == (
        state,
        completion,
        status,
        "conformance",
    )


@pytest.mark.parametrize("way", WAYS_OUT)
def test_stream_is_gapless(way: str) -> None:
    """The records are numbered from 1 without a gap, and each starts in the state the one before it left."""
    make, _, _, _ = WAYS_OUT[way]
    records = make()
    assert [record.sequence for record in records] == list(range(1, len(records) + 1))
    assert [record.source for record in records[1:]] == [record.target for record in records[:-1]]


@pytest.mark.parametrize(
    ("made", "error", "state", "message"),
    [
        (
            lambda: engine(["x"], [FAILS], bus=denying(GenerationRequested)),
            RunCancelledError,
            "cancelled",
            "not today",
        ),
        (
            lambda: engine([GeneratorUnavailableError("401")], []),
            RunInterruptedError,
            "generating",
            "unavailable: 401",
        ),
        (
            lambda: engine(["x"], [EvaluationError("gone")]),
            RunInterruptedError,
            "evaluating",
            "no verdict: .*gone",
        ),
        (
            lambda: engine(["x"], [FAILS], strategy=BrokenStrategy(2)),
            RunFailedError,
            "failed",
            "no such thing",
        ),
    ],
    ids=["denied", "unavailable", "no-verdict", "strategy"],
)
def test_endings_without_a_result(
    made: Callable[[], Orchestrator], error: type[RunEndedError], state: str, message: str
) -> None:
    """`run()` gives a result or raises an error that carries the same report: history, usage, records,
    head.
    """
    with pytest.raises(error, match=message) as caught:
        made().run(SPEC)
    report = caught.value.report
    assert (report.state, report.spec_digest, report.journal_head.count) == (
        state,
        SPEC.digest,
        len(report.records),
    )


def test_interruption_costs_no_attempt_of_the_history() -> None:
    """A broken evaluator is no verdict: the attempt is not judged, the candidate is kept for the resume."""
    with pytest.raises(RunInterruptedError) as caught:
        engine(["x"], [EvaluationError("gone")]).run(SPEC)
    report = caught.value.report
    assert (report.history, report.generator_invocations) == ((), 1)
    assert [record.event.name for record in report.records if "candidate" in record.event.name] == [
        "candidate:generated"
    ]


def test_unavailable_generator_is_not_charged() -> None:
    """A call that could not be made costs nothing."""
    with pytest.raises(RunInterruptedError) as caught:
        engine([GeneratorUnavailableError("401")], []).run(SPEC)
    usage = caught.value.report.usage
    assert (usage.input_tokens, usage.output_tokens, usage.money_micro) == (0, 0, 0)


def test_response_is_the_conforming_candidate() -> None:
    """`execution:end` names the conforming candidate by digest, and nothing when there is none."""
    passed, failed = engine(["x"], [PASSES]).run(SPEC), engine(["x", "y"], [FAILS, FAILS]).run(SPEC)
    ends = [result.records[-1].event for result in (passed, failed)]
    digest = sha256(b"x").hexdigest()
    assert [getattr(end, "response", None) for end in ends] == [digest, ""]


def test_turn_count_is_the_number_of_answers() -> None:
    """`orchestrator:complete` counts the generator calls that answered."""
    result = engine([OSError("down"), "x"], [FAILS]).run(SPEC)
    assert getattr(result.records[-2].event, "turn_count", None) == 1


def test_journal_holds_what_the_result_holds() -> None:
    """The journal, the subscribers and the result show the same records."""
    journal, seen = MemoryJournal(), RecordingSubscriber()
    made = engine(["x"], [PASSES], journal=journal)
    made.bus.subscribe(seen)
    result = made.run(SPEC, run_id="r")

    async def stored() -> list[Record]:
        return [entry.record async for entry in journal.read("r")]

    assert asyncio.run(stored()) == list(result.records) == seen.records
    assert asyncio.run(journal.head("r")) == result.journal_head
