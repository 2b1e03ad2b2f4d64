"""The public test kit: what hosts may rely on when they test with it."""

from __future__ import annotations

import asyncio
import doctest
from types import ModuleType
from typing import Any

import pytest

from orchestrator import (
    Budget,
    Bus,
    Candidate,
    Exhausted,
    Generation,
    GeneratorUnavailableError,
    MergedSpec,
    Orchestrator,
    Passed,
    Request,
    RunInterruptedError,
    Submission,
    Usage,
)
from orchestrator.evaluators.callable import EvaluatorLike
from orchestrator.generators.callable import GeneratorLike
from orchestrator.testing import (
    ManualClock,
    RecordedGenerator,
    RecordingSubscriber,
    ScriptedEvaluator,
    ScriptedGenerator,
    clock,
    recorded,
    scripted,
    subscriber,
)
from orchestrator_events.run import AttemptFailed, CandidateGenerated

SPEC = MergedSpec(intent="Set x to 1.")


def engine(generator: GeneratorLike, evaluator: EvaluatorLike, **options: Any) -> Orchestrator:
    """An orchestrator on two fakes."""
    return Orchestrator(generator=generator, evaluator=evaluator, **options)


def judge(submission: Submission) -> dict[str, bool | str]:
    """One case: the text must be `good`."""
    return {"case": submission.candidate.text == "good"}


@pytest.mark.parametrize("module", [clock, recorded, scripted, subscriber])
def test_examples_in_docstrings_run(module: ModuleType) -> None:
    """Every docstring example of the kit does what it shows, and each module has one."""
    outcome = doctest.testmod(module)
    assert (outcome.failed, outcome.attempted > 0) == (0, True)


def test_public_names() -> None:
    """The kit's public names are these nine."""
    import orchestrator.testing

    assert orchestrator.testing.__all__ == [
        "ManualCancellation",
        "ManualClock",
        "RecordedGenerator",
        "RecordingSubscriber",
        "ScriptedEvaluator",
        "ScriptedGenerator",
        "ScriptedProvider",
        "ScriptedTool",
        "ScriptedVerifier",
    ]


def test_script_takes_every_form_of_answer() -> None:
    """Texts, files, candidates, generations, exceptions, callables and async callables all answer in turn."""

    async def later(request: Request) -> str:
        return f"async {request.attempt}"

    generator = ScriptedGenerator(
        [
            "text",
            {"a.py": "files"},
            Candidate("candidate"),
            Generation(candidate=Candidate("generation"), usage=Usage(input_tokens=3, output_tokens=4)),
            ValueError("raised"),
            lambda request: f"plain {request.attempt}",
            later,
        ]
    )
    result = engine(generator, judge, budget=Budget(attempts=7)).run(SPEC)
    assert [attempt.candidate for attempt in result.history] == [
        Candidate("text"),
        Candidate(files={"a.py": "files"}),
        Candidate("candidate"),
        Candidate("generation"),
        None,
        Candidate("plain 6"),
        Candidate("async 7"),
    ]
    assert [request.attempt for request in generator.requests] == [1, 2, 3, 4, 5, 6, 7]


def test_end_of_script_interrupts() -> None:
    """After the last answer the default is to say so loudly: the run is interrupted, not failed quietly."""
    with pytest.raises(RunInterruptedError, match=r"has 1 answers and was asked for number 2: add one"):
        engine(ScriptedGenerator(["bad"]), judge).run(SPEC)
    with pytest.raises(RunInterruptedError, match=r"has 1 answers and was asked for number 2: add one"):
        engine(ScriptedGenerator(["a", "b"]), ScriptedEvaluator([{"case": False}])).run(SPEC)


def test_last_answer_repeats_when_asked_to() -> None:
    """With `after='repeat'` the last answer and the last verdict come again for ever."""
    generator = ScriptedGenerator([lambda request: f"bad {request.attempt}"], after="repeat")
    evaluator = ScriptedEvaluator([{"case": "no"}], after="repeat")
    result = engine(generator, evaluator, budget=Budget(attempts=3)).run(SPEC)
    assert [attempt.candidate for attempt in result.history] == [Candidate(f"bad {number}") for number in (1, 2, 3)]


def test_unknown_behaviour_after_the_last_is_refused() -> None:
    """A misspelt `after` is an error when the script is made, not when it ends."""
    with pytest.raises(ValueError, match="after"):
        ScriptedGenerator(["x"], after="loop")  # type: ignore[arg-type]


def test_concurrent_runs_each_start_at_the_beginning() -> None:
    """One scripted generator serves many runs at once: each run hears the script from its first answer."""
    generator = ScriptedGenerator(["bad", "good"])
    made = engine(generator, judge)

    async def both() -> list[Passed | Exhausted]:
        return await asyncio.gather(*(made.arun(SPEC) for _ in range(5)))

    results = asyncio.run(both())
    assert [(result.status, result.attempts) for result in results] == [("passed", 2)] * 5


def test_recording_of_a_report_replays_it() -> None:
    """A recording gives the same candidates, failures and charges by attempt; its name says so."""
    used = Usage(input_tokens=7, output_tokens=9, money_micro=5)
    generator = ScriptedGenerator(
        ["bad", OSError("gone"), Generation(candidate=Candidate("good"), usage=used)], name="model-7"
    )
    first = engine(generator, judge).run(SPEC)
    again = engine(RecordedGenerator.from_report(first), judge).run(SPEC)
    assert again.generator == "recorded model-7"
    assert [attempt.candidate for attempt in again.history] == [attempt.candidate for attempt in first.history]
    assert [attempt.charge for attempt in again.history] == [attempt.charge for attempt in first.history]
    assert again.errors == ("GenerationError: OSError: gone",)


def test_recording_answers_by_attempt_in_any_order() -> None:
    """A recording depends on the attempt number alone, so a resumed run hears the same."""
    generator = RecordedGenerator.of(["one", Candidate(files={"a": "two"})])
    ask = ScriptedGenerator([generator.generate], after="repeat")
    engine(ask, judge, budget=Budget(attempts=2)).run(SPEC)
    second, first = (asyncio.run(generator.generate(request)) for request in reversed(ask.requests))
    assert (first.candidate, second.candidate) == (Candidate("one"), Candidate(files={"a": "two"}))


def test_recording_that_ends_makes_the_generator_unavailable() -> None:
    """Past the recording the run is interrupted with the attempts it holds."""
    with pytest.raises(RunInterruptedError, match=r"recording holds attempts \[1\], not 2") as caught:
        engine(RecordedGenerator.of(["bad"]), judge).run(SPEC)
    assert isinstance(caught.value.__cause__, GeneratorUnavailableError)


def test_clock_moves_only_by_advance() -> None:
    """Both readings are integers that move together, forwards only."""
    manual = ManualClock(now_us=10, monotonic_us=5)
    manual.advance(0.0000015)
    assert (manual.now(), manual.monotonic()) == (12, 7)
    with pytest.raises(ValueError, match="never goes back"):
        manual.advance(-1)


def test_subscriber_sorts_what_it_saw() -> None:
    """Records are kept in order, and can be asked for by event class and by run."""
    seen, bus = RecordingSubscriber(), Bus()
    bus.subscribe(seen)
    made = engine(ScriptedGenerator(["bad", "good"]), judge, bus=bus)
    one, two = made.run(SPEC, run_id="one"), made.run(SPEC, run_id="two")
    assert seen.of_run("one") == one.records
    assert seen.of_run("two") == two.records
    assert [event.attempt for event in seen.events(CandidateGenerated)] == [1, 2, 1, 2]
    assert [event.failing[0].id for event in seen.events(AttemptFailed)] == ["case", "case"]
