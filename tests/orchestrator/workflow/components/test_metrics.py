"""The metrics collector: counts, times and tokens, summed by scope."""

from __future__ import annotations

import asyncio

import pytest

from orchestrator.workflow.components.metrics import MetricError, metrics_of
from orchestrator.workflow.components.settings import ComponentSettings, MetricsSettings
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.subscribers.metrics import TimerError
from orchestrator_events.subscribers.totals import Spending, Timing
from orchestrator_events.workflow import (
    MetricRecorded,
    PhaseFinished,
    PhaseStarted,
    SubagentFinished,
    SubagentSpawned,
)


def test_a_count_is_an_event_and_sums_up_by_scope() -> None:
    """What is recorded counts for its scope, for the phase, and for the whole workflow."""
    host = RecordingHost(phase="03-implement")
    host.history.append(PhaseStarted(phase="03-implement", number=1, executor="callable"))

    async def phase() -> list[dict[str, int]]:
        metrics = host.components().metrics
        await metrics.count("files_modified", 2)
        await metrics.count("files_modified", 3, scope="story-1")
        await metrics.count("bugs_found")
        return [dict(metrics.summary(scope).counts) for scope in ("all", "03-implement", "story-1", "nowhere")]

    everything = {"bugs_found": 1, "files_modified": 5}
    assert asyncio.run(phase()) == [everything, everything, {"files_modified": 3}, {}]
    assert host.history[1:3] == [
        MetricRecorded(metric="files_modified", measure="count", value=2, scope="03-implement"),
        MetricRecorded(metric="files_modified", measure="count", value=3, scope="story-1"),
    ]


def test_a_timer_adds_its_time_to_its_category() -> None:
    """Timers of a category are summed with number, total and longest; timers of other ids may run at once."""
    host = RecordingHost()

    async def phase() -> tuple[int, Timing]:
        metrics = host.components().metrics
        metrics.start_timer("a", "chunk")
        host.clock.advance(1)
        metrics.start_timer("b", "chunk")
        host.clock.advance(2)
        await metrics.stop_timer("b")
        return await metrics.stop_timer("a"), metrics.summary().timings["chunk"]

    assert asyncio.run(phase()) == (3_000_000, Timing(number=2, total_us=5_000_000, longest_us=3_000_000))


def test_subagents_and_phases_are_metered_by_themselves() -> None:
    """Tokens of subagents by role, time of phases and subagents by category, without anybody recording them."""
    history = [
        PhaseStarted(phase="plan", number=1, executor="callable"),
        SubagentSpawned(subagent_id="plan-1", role="PLANNER", context=Blob("{}")),
        SubagentFinished(
            subagent_id="plan-1",
            status="success",
            result=Blob("{}"),
            charge=Charge(input_tokens=10, output_tokens=5, money_micro=7),
            duration_us=40,
        ),
        MetricRecorded(metric="search", measure="input_tokens", value=100, scope="plan"),
        MetricRecorded(metric="search", measure="output_tokens", value=20, scope="plan"),
        PhaseFinished(
            phase="plan", next_phase="x", updates=Blob("{}"), output=Blob(""), duration_us=90, charge=Charge()
        ),
    ]

    planner, phase = metrics_of(history, "PLANNER"), metrics_of(history, "plan")

    assert planner.reported == Spending(calls=1, input_tokens=10, output_tokens=5, money_micro=7)
    assert phase.reported == Spending(calls=2, input_tokens=110, output_tokens=25, money_micro=7)
    assert phase.timings == {"phase": Timing(1, 90, 90), "subagent": Timing(1, 40, 40)}
    assert phase.timings == metrics_of(history).timings


def test_a_domain_declares_its_own_metrics_and_nothing_else_is_taken() -> None:
    """A metric that nobody declared is a misspelling until it is declared."""
    settings = ComponentSettings(metrics_collector=MetricsSettings(counts=("stories_done",), categories=("qa",)))
    host = RecordingHost(settings=settings)

    async def phase() -> None:
        metrics = host.components().metrics
        await metrics.count("stories_done")
        metrics.start_timer("t", "qa")
        await metrics.stop_timer("t")
        with pytest.raises(MetricError, match=r"did you mean 'stories_done'\?"):
            await metrics.count("story_done")
        with pytest.raises(MetricError, match=r"declare it under metrics-collector\.categories"):
            metrics.start_timer("t", "review")

    asyncio.run(phase())
    assert [event.name for event in host.history] == ["metric:recorded"] * 2


@pytest.mark.parametrize("value", [-1, True, 1.5, 2**53, "3"])
def test_a_value_that_is_no_count_is_refused(value: object) -> None:
    """Sums stay whole numbers that every reader of JSON keeps exactly."""
    host = RecordingHost()

    async def phase() -> None:
        await host.components().metrics.count("bugs_found", value)  # type: ignore[arg-type]  # what is tested

    with pytest.raises(MetricError, match="give a whole number from 0"):
        asyncio.run(phase())
    assert host.history == []


def test_timers_are_started_once_and_stopped_once() -> None:
    """A timer that runs cannot be started, one that does not cannot be stopped."""
    host = RecordingHost()

    async def phase() -> None:
        metrics = host.components().metrics
        metrics.start_timer("t", "chunk")
        with pytest.raises(TimerError, match="already runs"):
            metrics.start_timer("t", "story")
        await metrics.stop_timer("t")
        with pytest.raises(TimerError, match="does not run"):
            await metrics.stop_timer("t")

    asyncio.run(phase())
    assert [event.metric for event in host.history if isinstance(event, MetricRecorded)] == ["chunk"]
