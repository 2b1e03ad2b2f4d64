"""Metrics: sums per attempt, per run and over all runs, from the records alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import pytest

from orchestrator_events import (
    ApprovalAnswered,
    ApprovalRequested,
    AttemptFailed,
    AttemptPassed,
    Batch,
    Blob,
    BudgetExhausted,
    Bus,
    CandidateGenerated,
    Charge,
    Event,
    ExecutionEnd,
    GenerationAbandoned,
    Journal,
    Metrics,
    PromptRefined,
    Record,
    Spending,
    Summary,
    TimerError,
    Timing,
)

MakeRecord = Callable[..., Record]

REPORTED = Charge(input_tokens=10, output_tokens=20, money_micro=30)
ESTIMATED = Charge(input_tokens=1, output_tokens=2, estimated=True)
NOTHING = Spending()


def generated(attempt: int, charge: Charge, duration_us: int) -> CandidateGenerated:
    """A generation's end."""
    return CandidateGenerated(
        attempt=attempt, key="k", candidate=Blob("x"), form="text", charge=charge, duration_us=duration_us
    )


TWO_ATTEMPTS: tuple[tuple[int, Event], ...] = (
    (1000, ApprovalRequested(gate="generation:requested", prompt="sure?")),
    (1400, ApprovalAnswered(gate="generation:requested", is_approved=True)),
    (2000, generated(1, REPORTED, 300)),
    (2100, AttemptFailed(attempt=1, stage="evaluation", duration_us=70)),
    (2200, PromptRefined(attempt=2, feedback="ids")),
    (2500, generated(2, ESTIMATED, 200)),
    (2600, AttemptPassed(attempt=2, passed=("a",), duration_us=30, is_pinned=True)),
    (3000, ExecutionEnd(response="", status="completed")),
)

OF_RUN = Summary(
    scope="r1",
    attempt=0,
    events={
        "approval:answered": 1,
        "approval:requested": 1,
        "attempt:failed": 1,
        "attempt:passed": 1,
        "candidate:generated": 2,
        "execution:end": 1,
        "prompt:refined": 1,
    },
    counts={},
    timings={
        "approval": Timing(1, 400, 400),
        "evaluation": Timing(2, 100, 70),
        "generation": Timing(2, 500, 300),
        "other": Timing(1, 1000, 1000),
    },
    reported=Spending(1, 10, 20, 30),
    estimated=Spending(1, 1, 2, 0),
)


def feed(metrics: Metrics, record: MakeRecord, events: tuple[tuple[int, Event], ...], run_id: str = "r1") -> None:
    """Give the subscriber the records of a run."""
    for sequence, (at, event) in enumerate(events, 1):
        metrics(record(event, run_id, sequence, at))


def zeros(scope: str, attempt: int = 0) -> Summary:
    """A summary of nothing."""
    return Summary(scope=scope, attempt=attempt, events={}, counts={}, timings={}, reported=NOTHING, estimated=NOTHING)


def test_a_run_is_summed_by_category_event_and_charge(record: MakeRecord) -> None:
    """Durations come from the records; what they leave of the invocation's time is `other`."""
    metrics = Metrics(keep=1)
    feed(metrics, record, TWO_ATTEMPTS)
    assert metrics.summary("r1") == OF_RUN


def test_an_attempt_has_sums_of_its_own(record: MakeRecord) -> None:
    """What names an attempt counts for it, and for its run as well."""
    metrics = Metrics(keep=1)
    feed(metrics, record, TWO_ATTEMPTS)
    assert metrics.summary("r1", 2) == Summary(
        scope="r1",
        attempt=2,
        events={"attempt:passed": 1, "candidate:generated": 1, "prompt:refined": 1},
        counts={},
        timings={"evaluation": Timing(1, 30, 30), "generation": Timing(1, 200, 200)},
        reported=NOTHING,
        estimated=Spending(1, 1, 2, 0),
    )


def test_the_sums_over_all_runs_outlive_them(record: MakeRecord) -> None:
    """Runs that ended and runs that go on are in `all`; an ended one is dropped unless it is kept."""
    metrics = Metrics()
    feed(metrics, record, TWO_ATTEMPTS, "r1")
    feed(metrics, record, TWO_ATTEMPTS[:3], "r2")
    everything = metrics.summary()
    assert metrics.summary("r1") == zeros("r1")
    assert metrics.summary("r2").timings == {
        "approval": Timing(1, 400, 400),
        "generation": Timing(1, 300, 300),
    }
    assert everything.timings == {
        "approval": Timing(2, 800, 400),
        "evaluation": Timing(2, 100, 70),
        "generation": Timing(3, 800, 300),
        "other": Timing(1, 1000, 1000),
    }
    assert (everything.reported, everything.estimated) == (Spending(2, 20, 40, 60), Spending(1, 1, 2, 0))


def test_memory_does_not_grow_with_the_runs(record: MakeRecord) -> None:
    """Of a thousand runs, the last two are kept as asked, and of the others nothing but the sums."""
    metrics = Metrics(keep=2)
    for number in range(1000):
        feed(metrics, record, TWO_ATTEMPTS, f"run-{number}")
    assert (list(metrics.ended), metrics.running) == (["run-998", "run-999"], {})
    assert metrics.summary().events["candidate:generated"] == 2000


def test_a_resumed_run_adds_up(record: MakeRecord) -> None:
    """A kept run that goes on is the sum of its invocations; the time in between is nobody's."""
    metrics = Metrics(keep=1)
    feed(metrics, record, TWO_ATTEMPTS)
    feed(metrics, record, ((90_000, generated(3, REPORTED, 50)),))
    during = metrics.summary("r1").timings
    feed(metrics, record, ((90_100, ExecutionEnd(response="", status="completed")),))
    after = metrics.summary("r1").timings
    assert (during["generation"], during["other"]) == (Timing(3, 550, 300), Timing(1, 1000, 1000))
    assert (after["generation"], after["other"]) == (Timing(3, 550, 300), Timing(2, 1050, 1000))
    assert metrics.summary().timings == after


def test_a_reused_verdict_and_an_abandoned_call_count_as_what_they_are(record: MakeRecord) -> None:
    """No evaluation ran for a verdict that is reused; a call whose answer is lost was charged."""
    metrics = Metrics()
    lost = GenerationAbandoned(attempt=1, key="k", charge=ESTIMATED, reason="outcome unknown")
    reused = AttemptFailed(attempt=2, stage="evaluation", reused_from=1)
    broken = AttemptFailed(attempt=3, stage="generation", duration_us=5, charge=REPORTED, error="boom")
    feed(metrics, record, ((0, lost), (1, reused), (2, broken)))
    summary = metrics.summary("r1")
    assert summary.timings == {"generation": Timing(1, 5, 5)}
    assert (summary.reported, summary.estimated) == (Spending(1, 10, 20, 30), Spending(1, 1, 2, 0))


def test_a_host_counts_and_times_what_it_likes(record: MakeRecord) -> None:
    """Its counts and timers, read on its own clock, stand beside ours, in its run and in `all`."""
    metrics = Metrics()
    feed(metrics, record, TWO_ATTEMPTS[:1])
    metrics.count("files_modified", 3, "r1")
    metrics.count("files_modified")
    metrics.start_timer("story-7", "story", at=100, run_id="r1")
    metrics.start_timer("phase-1", "phase", at=150)
    stopped = (metrics.stop_timer("story-7", at=400), metrics.stop_timer("phase-1", at=160))
    run, everything = metrics.summary("r1"), metrics.summary()
    assert stopped == (300, 10)
    assert (run.counts, run.timings) == ({"files_modified": 3}, {"story": Timing(1, 300, 300)})
    assert everything.counts == {"files_modified": 4}
    assert everything.timings == {"phase": Timing(1, 10, 10), "story": Timing(1, 300, 300)}


def test_a_figure_for_a_run_that_is_gone_is_in_the_whole(record: MakeRecord) -> None:
    """It is not lost, and the run does not come back for it."""
    metrics = Metrics()
    feed(metrics, record, TWO_ATTEMPTS)
    metrics.count("files_modified", 2, "r1")
    assert (metrics.summary("r1"), metrics.summary().counts) == (zeros("r1"), {"files_modified": 2})


def test_a_figure_for_a_kept_run_is_in_it(record: MakeRecord) -> None:
    """A run that ended and is kept still takes the host's figures, once in the whole."""
    metrics = Metrics(keep=1)
    feed(metrics, record, TWO_ATTEMPTS)
    metrics.count("files_modified", 2, "r1")
    assert (metrics.summary("r1").counts, metrics.summary().counts) == (
        {"files_modified": 2},
        {"files_modified": 2},
    )


def test_timers_are_started_once_and_stopped_once() -> None:
    """A mistake in a host's timers is an error with the timer's id, not a wrong sum."""
    metrics = Metrics()
    metrics.start_timer("t", "phase", at=0)
    with pytest.raises(TimerError, match="timer 't' already runs"):
        metrics.start_timer("t", "phase", at=1)
    metrics.stop_timer("t", at=2)
    with pytest.raises(TimerError, match="timer 't' does not run") as caught:
        metrics.stop_timer("t", at=3)
    assert (caught.value.timer_id, metrics.summary().timings) == ("t", {"phase": Timing(1, 2, 2)})


def test_a_clock_that_goes_back_takes_no_time(record: MakeRecord) -> None:
    """Stamps are wall time, which may be set back; no sum ever shrinks."""
    metrics = Metrics(keep=1)
    feed(metrics, record, ((500, TWO_ATTEMPTS[0][1]), (100, TWO_ATTEMPTS[1][1]), (50, TWO_ATTEMPTS[-1][1])))
    assert metrics.summary("r1").timings == {"approval": Timing(1, 0, 0), "other": Timing(1, 0, 0)}


def test_the_export_is_plain_data(record: MakeRecord) -> None:
    """A summary goes into a JSON file and comes back the same."""
    metrics = Metrics(keep=1)
    feed(metrics, record, TWO_ATTEMPTS)
    data = metrics.summary("r1").as_json()
    assert json.loads(json.dumps(data)) == data
    assert data["reported"] == {"calls": 1, "input_tokens": 10, "output_tokens": 20, "money_micro": 30}


def test_the_average_is_rounded_down_and_that_of_nothing_is_zero() -> None:
    """Whole microseconds in, whole microseconds out."""
    assert (Timing(3, 100, 50).average_us, Timing().average_us) == (33, 0)


def test_it_subscribes_to_a_bus_under_its_name(journal: Journal, record: MakeRecord) -> None:
    """`bus.subscribe(metrics)` is all a host writes."""
    metrics, bus = Metrics(), Bus()
    subscription = bus.subscribe(metrics)
    event = BudgetExhausted(limit="tokens", detail="10 of 10 used")
    failures = asyncio.run(bus.publish(Batch("r1", (record(event),)), journal))
    assert (failures, subscription.subscriber) == ([], "Metrics")
    assert metrics.summary().events == {"budget:exhausted": 1}
