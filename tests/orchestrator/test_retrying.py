"""Calls that fail in passing are made again by the loop: journaled, under one key, within the budget."""

from __future__ import annotations

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
    RunInterruptedError,
    RunReport,
    Usage,
)
from orchestrator.adapter_errors import GenerationError, TransientGenerationError
from orchestrator.retries import RetryPolicy
from orchestrator.testing import RecordingSubscriber, ScriptedEvaluator, ScriptedGenerator
from orchestrator_events.budget import Charge
from orchestrator_events.bus import Bus
from orchestrator_events.record import Record
from orchestrator_events.run import AnswerReceived, AttemptFailed, GenerationProgressed, GenerationRetried

SPEC = MergedSpec(intent="Set x to 1.")
AT_ONCE = RetryPolicy(retries=2, first_wait=0.0)


def run(script: list[Any], **options: Any) -> RunReport:
    """A run whose generator plays this script and whose evaluator passes everything."""
    options.setdefault("retries", AT_ONCE)
    generator = ScriptedGenerator(script)
    return Orchestrator(generator=generator, evaluator=ScriptedEvaluator([{"case": True}]), **options).run(SPEC)


def names(report: RunReport) -> list[str]:
    """Wire names from the first generation to its end."""
    found = [record.event.name for record in report.records]
    return found[found.index("generation:started") : found.index("orchestrator:complete")]


def busy(**options: Any) -> TransientGenerationError:
    """What a busy server amounts to."""
    return TransientGenerationError("503 busy", status=503, **options)


def test_a_busy_server_is_asked_again() -> None:
    """A call that failed in passing is made again within its attempt, and each retry is in the history."""
    report = run([busy(), busy(), "x = 1"])
    retried = [record.event for record in report.records if isinstance(record.event, GenerationRetried)]
    key = f"{report.run_id}:1"
    reason = "TransientGenerationError: 503 busy"
    expected = [
        GenerationRetried(attempt=1, key=key, retry=number, reason=reason, wait_us=0, charge=Charge())
        for number in (1, 2)
    ]
    assert (report.status, report.attempts, retried) == ("passed", 1, expected)
    assert names(report) == [
        "generation:started", "generation:retried", "generation:retried", "candidate:generated", "attempt:passed",
    ]  # fmt: skip


def test_after_the_last_retry_the_attempt_has_failed() -> None:
    """The policy's count bounds the tries of one attempt; the next attempt has its own."""
    report = run([busy()] * 6, budget=Budget(attempts=2))
    failed = [record.event.error for record in report.records if isinstance(record.event, AttemptFailed)]
    assert isinstance(report, Exhausted)
    assert (report.limit, failed) == ("attempts", ["TransientGenerationError: 503 busy"] * 2)
    assert [name for name in names(report) if name == "generation:retried"] == ["generation:retried"] * 4


def test_retry_after_is_honoured_only_within_the_budget() -> None:
    """A server that asks for three days is not waited for: the run is left open, with the reason, and loses nothing."""
    with pytest.raises(
        RunInterruptedError, match=r"503 busy: the server asks to wait 259200 s, at most 600 s are"
    ) as it:
        run([busy(retry_after=259_200.0)], budget=Budget(attempts=5, seconds=5))
    assert names(it.value.report) == ["generation:started", "generation:abandoned"]
    assert (it.value.report.attempts, it.value.report.usage.output_tokens) == (1, 0)


@pytest.mark.parametrize(
    ("done", "retry_after", "left", "expected"),
    [
        (0, None, None, 1.0),
        (1, None, None, 2.0),
        (2, None, None, None),
        (0, 7.5, None, 7.5),
        (0, 0.1, None, 1.0),
        (0, 7.5, 7.0, None),
        (0, None, 0.5, None),
        (0, None, 60.0, 1.0),
    ],
)
def test_waits(done: int, retry_after: float | None, left: float | None, expected: float | None) -> None:
    """Each wait is longer than the last, at least what the server asks, and never longer than what is left."""
    assert RetryPolicy(retries=2).wait(done, retry_after, left) == expected


def test_a_failed_try_that_was_charged_counts() -> None:
    """Tokens that the server reports for a try that failed are spent, and the sums of the run say so."""
    report = run(
        [
            busy(usage=Usage(input_tokens=30, output_tokens=4)),
            Generation(candidate=Candidate("x"), usage=Usage(input_tokens=30, output_tokens=6)),
        ]
    )
    assert (report.usage.input_tokens, report.usage.output_tokens) == (60, 10)


def test_a_try_that_uses_up_the_budget_is_the_last() -> None:
    """Once a failed try has spent what there was, nothing more is bought."""
    spent = busy(usage=Usage(input_tokens=30, output_tokens=900))
    report = run([spent], budget=Budget(attempts=3, tokens=800), parameters={"max_tokens": 100})
    assert isinstance(report, Exhausted)
    assert (report.limit, [name for name in names(report) if "retried" in name]) == ("tokens", [])


def test_the_raw_answer_is_kept() -> None:
    """Where an adapter takes the candidate out of an answer, the answer is in the history before the candidate."""
    report = run([Generation(candidate=Candidate("x = 1"), answer="Sure!\n```\nx = 1\n```", extraction="fenced")])
    kept = [record.event for record in report.records if isinstance(record.event, AnswerReceived)]
    assert [(each.answer.text, each.extraction) for each in kept] == [("Sure!\n```\nx = 1\n```", "fenced")]
    assert names(report)[:3] == ["generation:started", "answer:received", "candidate:generated"]


def test_an_answer_without_a_candidate_is_kept_too() -> None:
    """The answer that no candidate could be taken from is what an auditor wants to see."""
    report = run([GenerationError("no fenced block", answer="I would rather not."), "x = 1"])
    kept = [record.event for record in report.records if isinstance(record.event, AnswerReceived)]
    assert [(each.answer.text, each.extraction) for each in kept] == [("I would rather not.", "")]


def test_live_progress_reaches_those_who_ask_for_it_and_no_record() -> None:
    """Tokens of a call in flight are told live, at most ten times a second; the history does not change."""

    async def writes(request: Request) -> str:
        for tokens in (1, 2, 3, -1, "many"):
            if request.progress is not None:
                request.progress(tokens)  # type: ignore[arg-type]  # an adapter that tells nonsense
        return "x = 1"

    told: list[Record] = []
    everything, bus = RecordingSubscriber(), Bus()
    bus.subscribe(told.append, GenerationProgressed)
    bus.subscribe(everything)
    quiet = Orchestrator(generator=writes, evaluator=ScriptedEvaluator([{"case": True}])).run(SPEC)
    loud = Orchestrator(generator=writes, evaluator=ScriptedEvaluator([{"case": True}]), bus=bus).run(SPEC)
    assert [(record.source, getattr(record.event, "output_tokens", None)) for record in told] == [("generating", 1)]
    assert [each.event.name for each in loud.records] == [each.event.name for each in quiet.records]
    assert everything.records == list(loud.records)
