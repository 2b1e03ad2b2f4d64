"""Metrics: time by category, counts, tokens and money, summed per attempt, per run and over all runs."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import Final

import attrs

from orchestrator_events.budget import Charge
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.execution import ApprovalAnswered, ApprovalRequested, ExecutionEnd
from orchestrator_events.record import Record
from orchestrator_events.run import AttemptFailed, AttemptPassed, CandidateGenerated
from orchestrator_events.subscribers.totals import Spending, Summary, Timing, Totals

__all__ = ["ALL", "Metrics", "Spending", "Summary", "TimerError", "Timing"]

ALL: Final = "all"
"""Scope of the sums over every run, those that ended included."""


class TimerError(OrchestratorError):
    """A timer was stopped that does not run, or started twice; `timer_id` names it."""

    def __init__(self, timer_id: str, fault: str) -> None:
        self.timer_id = timer_id
        super().__init__(f"timer {timer_id!r} {fault}")


@attrs.define(eq=False)
class RunTotals:
    """The sums of a run's invocations: what belongs to no attempt, and what belongs to each.

    A figure is in one place only, so that a record costs one addition; sums are made when they are asked for.
    """

    started_at: int
    own: Totals = attrs.Factory(Totals)
    attempts: dict[int, Totals] = attrs.Factory(dict[int, Totals])
    approval_asked_at: int | None = None
    measured_us: int = 0
    """Time that already has a category."""

    def parts(self) -> list[Totals]:
        """All totals whose sum is the run's."""
        return [self.own, *self.attempts.values()]


@attrs.frozen
class Timer:
    """A host's running timer."""

    category: str
    started_at: int
    run_id: str


@attrs.define(eq=False)
class Metrics:
    """A subscriber that sums what the records say: `metrics = Metrics(); bus.subscribe(metrics)`.

    It reads no clock. What an invocation's generation, evaluation and approval do not account for, up to its
    end, is the category `other`. The totals of a run are dropped when its invocation ends, save those of the
    last `keep` runs; the sums over all runs stay. Safe to use from several threads.
    """

    keep: int = 0
    running: dict[str, RunTotals] = attrs.field(init=False, factory=dict)
    ended: OrderedDict[str, RunTotals] = attrs.field(init=False, factory=OrderedDict)
    past: Totals = attrs.field(init=False, factory=Totals)
    timers: dict[str, Timer] = attrs.field(init=False, factory=dict)
    lock: Lock = attrs.field(init=False, factory=Lock)

    def __call__(self, record: Record) -> None:
        """Add one record to its run and its attempt."""
        with self.lock:
            run = self.running.get(record.run_id)
            if run is None:
                run = self.running[record.run_id] = RunTotals(record.at)
            event = record.event
            totals = place_of(run, event)
            totals.count_event(event.name)
            charge: Charge | None = getattr(event, "charge", None)
            if charge is not None:
                totals.spend(charge)
            category, duration_us = duration_of(event)
            if category:
                totals.time(category, duration_us)
                run.measured_us += duration_us
            elif isinstance(event, ApprovalRequested):
                run.approval_asked_at = record.at
            elif isinstance(event, ApprovalAnswered):
                time_approval(run, record.at)
            elif isinstance(event, ExecutionEnd):
                self.end(record.run_id, record.at)

    def count(self, name: str, value: int = 1, run_id: str = "") -> None:
        """Add to a count of the host's own; also to a run's, while that run is open or kept."""
        with self.lock:
            for totals in self.places(run_id):
                totals.count(name, value)

    def start_timer(self, timer_id: str, category: str, at: int, run_id: str = "") -> None:
        """Start the host's timer at a reading of its own clock, microseconds; TimerError if it runs."""
        with self.lock:
            if timer_id in self.timers:
                raise TimerError(timer_id, "already runs: stop it first, or give each timer an id of its own")
            self.timers[timer_id] = Timer(category, at, run_id)

    def stop_timer(self, timer_id: str, at: int) -> int:
        """Stop a timer at a reading of the same clock; its duration is added and returned, microseconds."""
        with self.lock:
            timer = self.timers.pop(timer_id, None)
            if timer is None:
                raise TimerError(timer_id, "does not run: start it first")
            duration_us = max(0, at - timer.started_at)
            for totals in self.places(timer.run_id):
                totals.time(timer.category, duration_us)
            return duration_us

    def summary(self, scope: str = ALL, attempt: int = 0) -> Summary:
        """The sums so far of all runs, of a run (by its id) or of one of its attempts (from 1).

        A run or attempt that is not known, or no longer, has a summary of zeros.
        """
        with self.lock:
            total = Totals()
            for totals in self.parts(scope, attempt):
                total.add(totals)
            return total.summary(scope, attempt)

    def parts(self, scope: str, attempt: int) -> list[Totals]:
        """The totals whose sum a scope is; the lock is held."""
        if scope == ALL:
            return [self.past, *(totals for run in self.running.values() for totals in run.parts())]
        runs = [runs[scope] for runs in (self.ended, self.running) if scope in runs]
        if not attempt:
            return [totals for run in runs for totals in run.parts()]
        return [run.attempts[attempt] for run in runs if attempt in run.attempts]

    def places(self, run_id: str) -> list[Totals]:
        """Where a figure of the host's own is added: once in the sums over all runs; the lock is held."""
        if run_id in self.running:
            return [self.running[run_id].own]
        return [self.past, self.ended[run_id].own] if run_id in self.ended else [self.past]

    def end(self, run_id: str, at: int) -> None:
        """Close an invocation: what is left of its time is `other`; the totals are kept or dropped."""
        run = self.running.pop(run_id)
        run.own.time("other", max(0, at - run.started_at - run.measured_us))
        for totals in run.parts():
            self.past.add(totals)
        kept = self.ended.pop(run_id, None)
        if kept is not None:
            kept.own.add(run.own)
            for number, totals in run.attempts.items():
                kept.attempts.setdefault(number, Totals()).add(totals)
        self.ended[run_id] = kept or run
        while len(self.ended) > self.keep:
            self.ended.popitem(last=False)


def place_of(run: RunTotals, event: Event) -> Totals:
    """The totals of the attempt that an event names, or of what belongs to no attempt."""
    number: int | None = getattr(event, "attempt", None)
    if number is None:
        return run.own
    totals = run.attempts.get(number)
    if totals is None:
        totals = run.attempts[number] = Totals()
    return totals


def duration_of(event: Event) -> tuple[str, int]:
    """The category and microseconds of the work that an event ends; no category where it ends none."""
    match event:
        case CandidateGenerated():
            return "generation", event.duration_us
        case AttemptPassed():
            return "evaluation", event.duration_us
        case AttemptFailed() if event.reused_from == 0:
            return event.stage, event.duration_us
        case _:
            return "", 0


def time_approval(run: RunTotals, answered_at: int) -> None:
    """Add the time from question to answer, which only the two stamps tell."""
    if run.approval_asked_at is not None:
        duration_us = max(0, answered_at - run.approval_asked_at)
        run.own.time("approval", duration_us)
        run.measured_us += duration_us
        run.approval_asked_at = None
