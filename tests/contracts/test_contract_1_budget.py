"""Contract 1, enforce-budget: 'the orchestrator does not silently exceed limits'; every limit alone and in
a mix.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator import (
    Budget,
    Candidate,
    Exhausted,
    Generation,
    MergedSpec,
    Orchestrator,
    Request,
    RunReport,
    SpecTooLargeError,
    Submission,
    Usage,
)
from orchestrator.testing import ManualClock, RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.budget import Charge
from orchestrator_events.run import BudgetExhausted, BudgetOverrun, GenerationStarted

SPEC = MergedSpec(intent="Set x to 1.")
FAILS = ScriptedEvaluator([{"case": "no"}], "repeat")


def metered(**usage: int) -> Callable[[Request], Generation]:
    """A new candidate at every attempt, with the same reported use."""
    return lambda request: Generation(candidate=Candidate(f"candidate {request.attempt}"), usage=Usage(**usage))


def exhausted(answers: list[Any], budget: Budget, **options: Any) -> Exhausted:
    """The result of a run that never passes."""
    generator = ScriptedGenerator(answers, "repeat")
    evaluator = ScriptedEvaluator([{"case": "no"}], "repeat")
    options.setdefault("evaluator", evaluator)
    result = Orchestrator(generator=generator, budget=budget, **options).run(SPEC)
    assert isinstance(result, Exhausted)
    return result


def said(report: RunReport) -> list[str]:
    """The limits that the run's records name as reached."""
    return [record.event.limit for record in report.records if isinstance(record.event, BudgetExhausted)]


def test_attempts() -> None:
    """'Maximum attempts': exactly that many, failed generations included, and the result names the limit."""
    result = exhausted([metered(), OSError("down"), metered()], Budget(attempts=3))
    assert (result.attempts, result.generator_invocations, result.limit, said(result)) == (
        3,
        3,
        "attempts",
        ["attempts"],
    )
    assert result.detail == "3 of 3 attempts used"


def test_default_budget() -> None:
    """The default is five attempts, and giving up after three identical repeats."""
    assert (exhausted([metered()], Budget()).attempts, exhausted(["same"], Budget()).attempts) == (5, 4)


def test_total_time() -> None:
    """'Total time': no call starts once the time is used, and each call is told what is left."""
    clock = ManualClock()

    def slow(request: Request) -> str:
        clock.advance(10)
        return f"candidate {request.attempt}"

    generator = ScriptedGenerator([slow], "repeat")
    made = Orchestrator(generator=generator, evaluator=FAILS, budget=Budget(attempts=None, seconds=25), clock=clock)
    result = made.run(SPEC)
    assert isinstance(result, Exhausted)
    assert (result.limit, [request.seconds for request in generator.requests]) == (
        "seconds",
        [25.0, 15.0, 5.0],
    )
    assert result.usage.active_us == 30_000_000


def test_evaluation_time_counts() -> None:
    """Time spent in the eval suite is time of the budget, and the suite is told what is left."""
    clock = ManualClock()
    left: list[float | None] = []

    def slow(submission: Submission) -> dict[str, bool]:
        left.append(submission.seconds)
        clock.advance(10)
        return {"case": False}

    result = exhausted([metered()], Budget(attempts=9, seconds=15), evaluator=slow, clock=clock)
    assert (result.limit, left) == ("seconds", [15.0, 5.0])


def test_hanging_generator_is_stopped() -> None:
    """A call that never answers ends with the time: the attempt fails, the run is exhausted."""

    async def hang(_: Request) -> str:
        await asyncio.Event().wait()
        return ""

    result = exhausted([hang], Budget(attempts=None, seconds=0.03))
    assert (result.limit, result.errors, result.attempts) == ("seconds", ("no answer within 0.0 s",), 1)


def test_hanging_evaluator_is_stopped() -> None:
    """An eval suite that never ends is stopped with the time; its candidate is not lost."""

    async def hang(_: Submission) -> dict[str, bool]:
        await asyncio.Event().wait()
        return {}

    result = exhausted([metered()], Budget(attempts=None, seconds=0.03), evaluator=hang)
    assert (result.limit, said(result), result.generator_invocations) == ("seconds", ["seconds"], 1)
    assert "candidate:generated" in [record.event.name for record in result.records]


@pytest.mark.parametrize(
    ("limit", "usage", "calls"),
    [
        ("tokens", {"input_tokens": 400, "output_tokens": 100}, 2),
        ("input_tokens", {"input_tokens": 450, "output_tokens": 9_000}, 2),
        ("output_tokens", {"input_tokens": 9_000, "output_tokens": 495}, 2),
        ("money_micro", {"input_tokens": 9_000, "output_tokens": 9_000, "money_micro": 250}, 4),
    ],
)
def test_total_spend(limit: str, usage: dict[str, int], calls: int) -> None:
    """'Total token spend', input, output and money alike: the sums stay within the limit, which is named."""
    budget = Budget(attempts=99, **{limit: 1_000})
    result = exhausted([metered(**usage)], budget)
    spent = {
        "tokens": result.usage.input_tokens + result.usage.output_tokens,
        "input_tokens": result.usage.input_tokens,
        "output_tokens": result.usage.output_tokens,
        "money_micro": result.usage.money_micro,
    }
    assert (result.limit, said(result), result.generator_invocations) == (limit, [limit], calls)
    assert spent[limit] <= 1_000
    assert result.usage.is_estimated is False


def test_remaining_tokens_are_the_calls_limit() -> None:
    """What is left is reserved before a call and handed to the generator as its `max_tokens`."""
    generator = ScriptedGenerator([metered(input_tokens=50, output_tokens=400)], "repeat")
    made = Orchestrator(
        generator=generator,
        evaluator=FAILS,
        budget=Budget(attempts=None, output_tokens=1_000),
        parameters={"max_tokens": 500},
    )
    made.run(SPEC)
    assert [request.max_tokens for request in generator.requests] == [500, 500, 200]


def test_repeats() -> None:
    """The same candidate `repeats` times more in a row ends the run; another one in between starts anew."""
    result = exhausted(["same", "same", "other", "same"], Budget(attempts=None, repeats=2, tokens=10**9))
    assert (result.limit, result.attempts, [each.repeats for each in result.history]) == (
        "repeats",
        6,
        [0, 1, 0, 0, 1, 2],
    )


@pytest.mark.parametrize(
    ("budget", "limit"),
    [
        (Budget(attempts=2, seconds=100, tokens=10_000), "attempts"),
        (Budget(attempts=9, seconds=15, tokens=10_000), "seconds"),
        (Budget(attempts=9, seconds=100, tokens=600), "tokens"),
        (
            Budget(attempts=9, seconds=100, input_tokens=600, output_tokens=9_999, money_micro=9_999),
            "input_tokens",
        ),
        (
            Budget(attempts=9, seconds=100, input_tokens=9_999, output_tokens=250, money_micro=9_999),
            "output_tokens",
        ),
        (
            Budget(attempts=9, seconds=100, input_tokens=9_999, output_tokens=9_999, money_micro=25),
            "money_micro",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_any_combination(budget: Budget, limit: str) -> None:
    """'Or any combination': whichever limit is reached first ends the run."""
    clock = ManualClock()

    def answer(request: Request) -> Generation:
        clock.advance(10)
        return metered(input_tokens=250, output_tokens=100, money_micro=20)(request)

    result = exhausted([answer], budget, clock=clock)
    assert (result.limit, said(result)) == (limit, [limit])


@pytest.mark.parametrize(
    ("budget", "usage", "limits"),
    [
        (Budget(tokens=1_000), Usage(input_tokens=100, output_tokens=5_000), ("tokens",)),
        (Budget(output_tokens=100), Usage(input_tokens=100, output_tokens=101), ("output_tokens",)),
        (Budget(input_tokens=200), Usage(input_tokens=201, output_tokens=1), ("input_tokens",)),
        (Budget(money_micro=10), Usage(input_tokens=1, output_tokens=1, money_micro=11), ("money_micro",)),
        (
            Budget(output_tokens=10, money_micro=10, attempts=9),
            Usage(input_tokens=1, output_tokens=99, money_micro=99),
            ("output_tokens", "money_micro"),
        ),
    ],
    ids=["tokens", "output", "input", "money", "two"],
)
def test_overrun_is_noted_and_stops(budget: Budget, usage: Usage, limits: tuple[str, ...]) -> None:
    """'Does not silently exceed limits': a call that used more than was reserved is an overrun in the
    records, and nothing more is bought.
    """
    if budget.output_tokens == 10:
        budget = Budget(output_tokens=20, money_micro=10, attempts=9)
    answer = Generation(candidate=Candidate("x"), usage=usage)
    result = exhausted([answer], budget)
    noted = [record.event for record in result.records if isinstance(record.event, BudgetOverrun)]
    assert noted == [BudgetOverrun(attempt=1, limits=limits)]
    assert (result.generator_invocations, result.limit) == (1, limits[0])


def test_overrun_does_not_hide_a_pass() -> None:
    """A candidate that was paid for is judged even when its call overran: it may pass."""
    answer = Generation(candidate=Candidate("x"), usage=Usage(input_tokens=1, output_tokens=5_000))
    made = Orchestrator(
        generator=ScriptedGenerator([answer]),
        evaluator=ScriptedEvaluator([{"case": True}]),
        budget=Budget(tokens=1_000),
    )
    result = made.run(SPEC)
    names = [record.event.name for record in result.records]
    assert (result.status, "budget:overrun" in names) == ("passed", True)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        Usage(),
        Usage(input_tokens=-5, output_tokens=-1),
        Usage(input_tokens=0, output_tokens=0),
        Usage(input_tokens=True, output_tokens=False),
        Usage(output_tokens=3.5),  # type: ignore[arg-type]
    ],
    ids=["none", "empty", "negative", "zero", "bool", "float"],
)
def test_missing_usage_is_estimated_and_never_zero(usage: Usage | None) -> None:
    """Use that is not reported, or not sane, is estimated and marked so; it never counts as nothing."""
    result = exhausted([Generation(candidate=Candidate("x" * 400), usage=usage)], Budget(attempts=1))
    charge = result.history[0].charge
    assert charge is not None
    assert (charge.input_tokens > 10, charge.output_tokens, charge.estimated, result.usage.is_estimated) == (
        True,
        100,
        True,
        True,
    )


def test_failed_call_is_charged() -> None:
    """A call that raised may have been billed all the same: it is charged an estimate, at least the
    prompt.
    """
    result = exhausted([OSError("reset by peer")], Budget(attempts=1))
    charge = result.history[0].charge
    assert charge is not None
    assert (charge.input_tokens > 10, charge.output_tokens >= 1, charge.estimated) == (True, True, True)


@pytest.mark.parametrize("candidate", [Candidate(""), Candidate("x" * 2_000)], ids=["empty", "flood"])
def test_answer_that_is_no_candidate_is_charged_as_reported(candidate: Candidate) -> None:
    """An answer that is refused was paid for: what it reports is charged, and overruns stop the run."""
    answer = Generation(candidate=candidate, usage=Usage(input_tokens=60, output_tokens=900))
    result = exhausted([answer], Budget(attempts=9, tokens=1_500), candidate_limit=1_000)
    assert (result.attempts, result.history[0].charge) == (2, Charge(input_tokens=60, output_tokens=900))
    assert (result.limit, said(result)) == ("tokens", ["tokens"])


def test_flood_that_is_refused_is_charged_by_its_length() -> None:
    """Without a report, a refused answer is charged for what it wrote: four characters a token."""
    result = exhausted(["x" * 2_000], Budget(attempts=1), candidate_limit=1_000)
    charge = result.history[0].charge
    assert charge is not None
    assert (charge.output_tokens, charge.estimated) == (500, True)


def test_hanging_call_is_charged_in_full() -> None:
    """A call that was stopped has an unknown outcome: its whole reservation is charged."""

    async def hang(_: Request) -> str:
        await asyncio.Event().wait()
        return ""

    budget = Budget(attempts=None, seconds=0.03, tokens=10_000)
    result = exhausted([hang], budget, parameters={"max_tokens": 300})
    started = next(record.event for record in result.records if isinstance(record.event, GenerationStarted))
    held = started.reservation
    assert result.history[0].charge == Charge(
        input_tokens=held.input_tokens, output_tokens=300, money_micro=0, estimated=True
    )


def test_spec_that_does_not_fit_is_refused_before_anything_is_spent() -> None:
    """A spec that the generator cannot take whole is refused: no section is cut, nothing bought, nothing
    recorded.
    """
    seen = RecordingSubscriber()
    generator = ScriptedGenerator(["x"], max_prompt_characters=100)
    made = Orchestrator(generator=generator, evaluator=FAILS)
    made.bus.subscribe(seen)
    with pytest.raises(SpecTooLargeError, match=r"needs \d+ characters of prompt, scripted takes 100: shorten"):
        made.run(MergedSpec(intent="x" * 101))
    assert (generator.requests, seen.records) == ([], [])


@pytest.mark.parametrize(
    "limits",
    [
        {"attempts": 0},
        {"attempts": -1},
        {"attempts": True},
        {"attempts": 2.0},
        {"seconds": 0},
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": "5"},
        {"tokens": 0},
        {"money_micro": -1},
        {"repeats": 0},
    ],
    ids=str,
)
def test_senseless_limits_are_refused(limits: dict[str, Any]) -> None:
    """A limit is a number above 0 or None, so that no budget is unlimited by accident."""
    with pytest.raises(ValueError, match=f"budget.{next(iter(limits))} must be"):
        Budget(**limits)


def test_budget_in_force_is_recorded() -> None:
    """The limits stand in the first record, for whoever audits the run."""
    budget = Budget(attempts=1, seconds=9.5, tokens=77_000)
    result = exhausted([metered()], budget)
    assert getattr(result.records[0].event, "budget", None) == budget
