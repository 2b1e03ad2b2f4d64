"""The metrics collector: counts, times and tokens as events, summed by the same totals as those of every run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import attrs

from orchestrator.faults import closest_name
from orchestrator.workflow.components.checking import is_name
from orchestrator.workflow.components.port import ComponentHost
from orchestrator.workflow.components.settings import MetricsSettings
from orchestrator_events.budget import Charge
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.event import Event
from orchestrator_events.subscribers.metrics import ALL, Metrics
from orchestrator_events.subscribers.totals import Summary, Totals
from orchestrator_events.workflow import (
    MetricRecorded,
    PhaseFailed,
    PhaseFinished,
    PhaseStarted,
    SubagentFinished,
    SubagentSpawned,
)

__all__ = ["CATEGORIES", "COUNTS", "MetricError", "MetricsCollector", "metrics_of"]

COUNTS: Final = ("files_modified", "tests_written", "tests_failed", "review_iterations", "bugs_found", "bugs_fixed")
"""Counts that every domain has; its own it declares."""
CATEGORIES: Final = ("story", "chunk", "phase", "subagent")
"""Categories of timers that every domain has."""
LARGEST: Final = 2**53 - 1


class MetricError(OrchestratorError, ValueError):
    """A metric nobody declared, or a value it cannot have; `metric` names it."""

    def __init__(self, metric: object, fault: str, hint: str = "") -> None:
        self.metric = metric
        suggestion = f" (did you mean {hint!r}?)" if hint else ""
        super().__init__(f"metric {str(metric)[:80]!r} {fault}{suggestion}")


@attrs.define(eq=False)
class MetricsCollector:
    """Records metrics for one execution of a phase; what they sum up to is the fold of the run's events.

    A scope is a phase, an item or a role; empty, the phase. Whatever is recorded counts for the phase as well, and
    for `all`. A timer that runs when a phase is cut off is lost.
    """

    settings: MetricsSettings
    host: ComponentHost
    timers: Metrics = attrs.field(factory=Metrics, init=False)
    """Keeps what runs: ids are used once at a time."""
    categories: dict[str, tuple[str, str]] = attrs.field(factory=dict, init=False)
    """Category and scope of each timer that runs."""

    async def count(self, metric: str, value: int = 1, scope: str = "") -> None:
        """Add to a count, `files_modified` or one that the domain declares; MetricError for any other."""
        refuse_undeclared(metric, (*COUNTS, *self.settings.counts), "metrics-collector.counts")
        await self.host.record(self.event(metric, "count", value, scope))

    async def tokens(self, metric: str, input_tokens: int, output_tokens: int, scope: str = "") -> None:
        """Add tokens that something else than a subagent used: those of subagents are metered already."""
        if not is_name(metric):
            raise MetricError(metric, "is no name: use letters, digits, '.', '_', ':' and '-'")
        await self.host.record(
            self.event(metric, "input_tokens", input_tokens, scope),
            self.event(metric, "output_tokens", output_tokens, scope),
        )

    def start_timer(self, timer_id: str, category: str, scope: str = "") -> None:
        """Start a timer of a category: story, chunk, phase, subagent or one that the domain declares.

        MetricError for any other category, TimerError where a timer of this id runs.
        """
        refuse_undeclared(category, (*CATEGORIES, *self.settings.categories), "metrics-collector.categories")
        self.event(category, "duration_us", 0, scope)
        self.timers.start_timer(timer_id, category, self.host.clock.monotonic())
        self.categories[timer_id] = (category, scope)

    async def stop_timer(self, timer_id: str) -> int:
        """Stop a timer and record its time, which is returned, microseconds; TimerError where none runs."""
        duration_us = self.timers.stop_timer(timer_id, self.host.clock.monotonic())
        category, scope = self.categories.pop(timer_id)
        await self.host.record(self.event(category, "duration_us", duration_us, scope))
        return duration_us

    def summary(self, scope: str = ALL) -> Summary:
        """The sums of the whole workflow so far, or of a phase, an item or a role; of an unknown scope, zeros."""
        return metrics_of(self.host.history, scope)

    def event(self, metric: str, measure: str, value: int, scope: str) -> MetricRecorded:
        """The event that adds a value."""
        if type(value) is not int or not 0 <= value <= LARGEST:
            raise MetricError(metric, f"cannot add {value!r:.40}: give a whole number from 0")
        if scope and not is_name(scope):
            raise MetricError(metric, f"has the scope {scope!r:.80}: use letters, digits, '.', '_', ':' and '-'")
        return MetricRecorded(metric=metric, measure=measure, value=value, scope=scope or self.host.phase)


def metrics_of(history: Iterable[Event], scope: str = ALL) -> Summary:
    """What a run's events sum up to for a scope: counts, times by category, calls and tokens."""
    totals, phase = Totals(), ""
    roles: dict[str, str] = {}
    for event in history:
        if isinstance(event, PhaseStarted):
            phase = event.phase
        elif isinstance(event, SubagentSpawned):
            roles[event.subagent_id] = event.role
        if scope in scopes_of(event, phase, roles):
            add(totals, event)
    return totals.summary(scope, 0)


def scopes_of(event: Event, phase: str, roles: dict[str, str]) -> tuple[str, ...]:
    """What an event counts for."""
    if isinstance(event, MetricRecorded):
        return (ALL, phase, event.scope)
    if isinstance(event, SubagentFinished):
        return (ALL, phase, event.subagent_id, roles.get(event.subagent_id, ""))
    return (ALL, phase) if isinstance(event, PhaseStarted | PhaseFinished | PhaseFailed | SubagentSpawned) else ()


def add(totals: Totals, event: Event) -> None:
    """Add an event to the sums."""
    totals.count_event(event.name)
    match event:
        case MetricRecorded(measure="count"):
            totals.count(event.metric, event.value)
        case MetricRecorded(measure="duration_us"):
            totals.time(event.metric, event.value)
        case MetricRecorded(measure="input_tokens"):
            totals.spend(Charge(input_tokens=event.value))
        case MetricRecorded(measure="output_tokens"):
            totals.reported[2] += event.value  # of the call that its input tokens were counted as
        case SubagentFinished():
            totals.spend(event.charge)
            totals.time("subagent", event.duration_us)
        case PhaseFinished() | PhaseFailed():
            totals.time("phase", event.duration_us)
        case _:
            pass


def refuse_undeclared(name: str, known: tuple[str, ...], place: str) -> None:
    """Raise MetricError for a name that is not among those declared."""
    if name not in known:
        raise MetricError(
            name,
            f"is not declared: use {', '.join(known)}, or declare it under {place}",
            closest_name(str(name), known),
        )
