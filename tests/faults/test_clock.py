"""Clocks that jump, stand still or begin anew: deadlines, budgets and order do not depend on the wall clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from freezegun import freeze_time

from orchestrator import (
    Budget,
    Exhausted,
    MergedSpec,
    Orchestrator,
    Passed,
    Request,
    RunInterruptedError,
    RunReport,
    Submission,
    Verdict,
)
from orchestrator.history import load_run, report_of
from orchestrator.journal import MemoryJournal
from orchestrator.resuming import ResumeRefusedError
from orchestrator.testing import ManualClock
from orchestrator_events.clock import SystemClock
from orchestrator_events.execution import ExecutionEnd, ExecutionInterrupted

SPEC = MergedSpec(name="clock", intent="Count to the number of the attempt.")
DAY_S = 86_400
JUMPS_S = (400 * DAY_S, -3_600, -400 * DAY_S, 0)
CALL_S, SUITE_S, PASSES_AT = 10, 5, 4
LONG_ENOUGH = Budget(attempts=10, seconds=100)


@attrs.define(eq=False)
class Day:
    """A clock, and what the wall clock does whenever something happens; each call takes its time regardless."""

    clock: ManualClock = attrs.Factory(ManualClock)
    jumps_s: tuple[int, ...] = (0,)
    breaks_at: int = 0
    """The attempt whose evaluation breaks; 0 for none."""
    happened: int = 0

    def jump(self) -> None:
        """The next jump."""
        self.clock.now_us += self.jumps_s[self.happened % len(self.jumps_s)] * 1_000_000
        self.happened += 1

    def generate(self, request: Request) -> str:
        """A candidate, in 10 s."""
        self.jump()
        self.clock.advance(CALL_S)
        self.jump()
        return f"candidate {request.attempt}"

    def evaluate(self, submission: Submission) -> Verdict:
        """A verdict, in 5 s."""
        self.jump()
        self.clock.advance(SUITE_S)
        if submission.attempt == self.breaks_at:
            raise OSError("the suite is not there")
        self.jump()
        return Verdict.of({"a": True, "b": submission.attempt >= PASSES_AT or "too early"})

    def orchestrator(self, journal: MemoryJournal, budget: Budget = LONG_ENOUGH) -> Orchestrator:
        """An orchestrator on this day."""
        return Orchestrator(
            generator=self.generate, evaluator=self.evaluate, budget=budget, journal=journal, clock=self.clock
        )


def told(report: RunReport) -> dict[str, Any]:
    """All that a report says but the time of day, which the head of its journal depends on."""
    return {name: value for name, value in report.as_json().items() if name not in ("journal_head", "run")}


def loaded(journal: MemoryJournal) -> RunReport:
    """The report of the run as its journal tells it; reading checks order and chain."""
    return report_of(asyncio.run(load_run(journal, "r")))


@pytest.mark.parametrize("jumps_s", [JUMPS_S, JUMPS_S[1:], (400 * DAY_S,), (-3_600,), (-400 * DAY_S,)])
@pytest.mark.parametrize(
    "budget", [LONG_ENOUGH, Budget(attempts=10, seconds=42), Budget(attempts=None, seconds=45), Budget(attempts=2)]
)
def test_the_wall_clock_jumps(budget: Budget, jumps_s: tuple[int, ...]) -> None:
    """Verdicts, limits, active time and order are those of a day with a steady clock."""
    steady = Day().orchestrator(MemoryJournal(), budget).run(SPEC, run_id="r")
    journal = MemoryJournal()
    jumped = Day(jumps_s=jumps_s).orchestrator(journal, budget).run(SPEC, run_id="r")
    assert told(jumped) == told(steady)
    assert told(loaded(journal)) == told(steady)
    assert [record.event.name for record in jumped.records] == [record.event.name for record in steady.records]
    assert [record.sequence for record in jumped.records] == list(range(1, len(jumped.records) + 1))


def test_the_limit_that_the_steady_day_reaches() -> None:
    """The comparison above is not empty: 45 s are three attempts of 15 s."""
    result = Day(jumps_s=JUMPS_S).orchestrator(MemoryJournal(), Budget(attempts=None, seconds=45)).run(SPEC)
    assert isinstance(result, Exhausted)
    assert (result.limit, result.attempts, result.usage.active_us) == ("seconds", 3, 45_000_000)


def resumed_after(interval: Callable[[ManualClock], ManualClock]) -> tuple[RunReport, MemoryJournal]:
    """A run that is interrupted in its second evaluation, and goes on with the clock that `interval` makes."""
    journal, first = MemoryJournal(), Day(jumps_s=JUMPS_S, breaks_at=2)
    with pytest.raises(RunInterruptedError) as caught:
        first.orchestrator(journal).run(SPEC, run_id="r")
    assert caught.value.report.usage.active_us == 30_000_000
    second = Day(clock=interval(first.clock), jumps_s=JUMPS_S)
    return second.orchestrator(journal).resume("r"), journal


INTERVALS: dict[str, Callable[[ManualClock], ManualClock]] = {
    "none": lambda clock: clock,
    "three days": lambda clock: ManualClock(clock.now_us + 3 * DAY_S * 10**6, clock.monotonic_us + 3 * DAY_S * 10**6),
    "reboot": lambda clock: ManualClock(clock.now_us + 60 * 10**6, 0),
    "another machine": lambda clock: ManualClock(clock.now_us, clock.monotonic_us + 10**15),
    "clock set back": lambda clock: ManualClock(clock.now_us - 3_600 * 10**6, 17),
}


@pytest.mark.parametrize("name", INTERVALS)
def test_active_time_goes_on_over_a_resume(name: str) -> None:
    """Whatever the clocks did between two invocations is not charged: 30 s and 35 s are 65 s."""
    result, journal = resumed_after(INTERVALS[name])
    assert isinstance(result, Passed)
    assert (result.attempts, result.generator_invocations, result.usage.active_us) == (4, 4, 65_000_000)
    ends = [record.event.active_us for record in result.records if isinstance(record.event, ExecutionEnd)]
    assert ends == [30_000_000, 65_000_000]
    assert told(loaded(journal)) == told(result)


@pytest.mark.parametrize("name", INTERVALS)
def test_a_time_limit_holds_over_a_resume(name: str) -> None:
    """What is left of it is what the first invocation left, and a resume with nothing left is refused."""
    journal, first = MemoryJournal(), Day(jumps_s=JUMPS_S, breaks_at=2)
    budget = Budget(attempts=None, seconds=47)
    with pytest.raises(RunInterruptedError):
        first.orchestrator(journal, budget).run(SPEC, run_id="r")
    second = Day(clock=INTERVALS[name](first.clock), jumps_s=JUMPS_S)
    result = second.orchestrator(journal, budget).resume("r")
    assert isinstance(result, Exhausted)
    assert (result.limit, result.attempts, result.usage.active_us) == ("seconds", 3, 50_000_000)
    with pytest.raises(ResumeRefusedError, match="'seconds' is still reached"):
        Day(clock=INTERVALS[name](second.clock)).orchestrator(journal, budget).resume("r")


def cut_off(journal: MemoryJournal, appends: int) -> MemoryJournal:
    """The journal as it was after so many appends: three a failed attempt's two, one for the first intent."""
    names = ("generation:started", "candidate:generated", "attempt:failed")
    kept = MemoryJournal()
    source = journal.streams["r"]
    stream = type(source)()
    for record in source.records:
        if record.event.name in names:
            appends -= 1
        if appends < 0:
            break
        stream.records.append(record)
    kept.streams["r"] = stream
    return kept


@pytest.mark.parametrize("jumps_s", [(0,), JUMPS_S])
def test_a_crash_is_carried_over_by_what_was_measured(jumps_s: tuple[int, ...]) -> None:
    """An invocation without an end counts with the durations in its records, not with the time of day."""
    journal = MemoryJournal()
    Day(jumps_s=jumps_s).orchestrator(journal).run(SPEC, run_id="r")
    kept = cut_off(journal, 5)  # two calls answered and one judged: 10 s + 5 s + 10 s
    result = Day(clock=ManualClock(monotonic_us=3), jumps_s=jumps_s).orchestrator(kept).resume("r")
    (closed,) = [record.event for record in result.records if isinstance(record.event, ExecutionInterrupted)]
    assert (closed.active_us, result.usage.active_us, result.status) == (25_000_000, 60_000_000, "passed")


@pytest.mark.parametrize("jump_s", [400 * DAY_S, -3_600])
def test_a_deadline_does_not_see_the_wall_clock(monkeypatch: pytest.MonkeyPatch, jump_s: int) -> None:
    """The machine's time of day jumps while a call hangs: the call is ended by its deadline of 50 ms all the same."""
    steady = time.time_ns

    async def hang(_: Request) -> str:
        monkeypatch.setattr(time, "time_ns", lambda: steady() + jump_s * 10**9)
        await asyncio.Event().wait()
        return ""

    budget = Budget(attempts=None, seconds=0.05)
    result = Orchestrator(generator=hang, evaluator=lambda _: {"a": True}, budget=budget).run(SPEC)
    assert isinstance(result, Exhausted)
    assert (result.limit, result.attempts) == ("seconds", 1)
    assert 50_000 <= result.usage.active_us < 10_000_000
    assert abs(result.records[-1].at - result.records[0].at) > 3_500 * 10**6


def test_a_jump_between_the_effects_of_the_system_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """No time limit is reached, and none avoided, by setting the machine's time of day."""
    steady, shift_s = time.time_ns, iter([400 * DAY_S, -3_600] * 8)

    def jump(question: Request | Submission) -> str:
        shift = next(shift_s)
        monkeypatch.setattr(time, "time_ns", lambda: steady() + shift * 10**9)
        return f"candidate {question.attempt}"

    def judged(submission: Submission) -> Verdict:
        jump(submission)
        return Verdict.of({"a": submission.attempt >= PASSES_AT})

    result = Orchestrator(generator=jump, evaluator=judged, budget=Budget(attempts=5, seconds=60)).run(SPEC)
    assert (result.status, result.attempts) == ("passed", PASSES_AT)
    assert 0 <= result.usage.active_us < 60_000_000


def test_a_clock_that_stands_still() -> None:
    """Frozen, the system clock charges nothing, and the deadline of a call that hangs still fires: waiting is real."""

    async def hang(_: Request) -> str:
        await asyncio.Event().wait()
        return ""

    with freeze_time("2026-01-01", real_asyncio=True):
        result = Orchestrator(
            generator=hang, evaluator=lambda _: {"a": True}, budget=Budget(attempts=2, seconds=0.05)
        ).run(SPEC)
    assert isinstance(result, Exhausted)
    assert (result.limit, result.attempts, result.usage.active_us) == ("attempts", 2, 0)
    assert {f"{record.time:%F %T}" for record in result.records} == {"2026-01-01 00:00:00"}


def test_a_night_between_two_invocations_of_the_system_clock() -> None:
    """400 days pass between interruption and resume; the time limit of a minute has its minute."""
    journal = MemoryJournal()

    def judged(submission: Submission) -> Verdict:
        if submission.attempt == 2 and SystemClock().now() < 1_800_000_000 * 10**6:
            raise OSError("the suite is not there")
        return Verdict.of({"a": submission.attempt >= 3})

    def orchestrator() -> Orchestrator:
        return Orchestrator(
            generator=lambda request: f"candidate {request.attempt}",
            evaluator=judged,
            budget=Budget(attempts=5, seconds=60),
            journal=journal,
        )

    with freeze_time("2026-01-01", real_asyncio=True) as frozen:
        with pytest.raises(RunInterruptedError):
            orchestrator().run(SPEC, run_id="r")
        frozen.tick(400 * DAY_S)
        result = orchestrator().resume("r")
    assert (result.status, result.attempts, result.usage.active_us) == ("passed", 3, 0)
