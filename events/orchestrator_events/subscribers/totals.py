"""Sums of time, counts and charges: growing ones, and the frozen summary of them."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from orchestrator_events.budget import Charge

__all__ = ["Spending", "Summary", "Timing", "Totals"]


@attrs.frozen
class Timing:
    """The time of one category, integer microseconds."""

    number: int = 0
    total_us: int = 0
    longest_us: int = 0

    @property
    def average_us(self) -> int:
        """The mean, rounded down; 0 of none."""
        return self.total_us // self.number if self.number else 0


@attrs.frozen
class Spending:
    """The charges of a number of calls; money in millionths of the currency that the generator reports."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    money_micro: int = 0


@attrs.frozen(kw_only=True)
class Summary:
    """What was summed for a scope. Calls whose figures the generator reported stand apart from estimates."""

    scope: str
    attempt: int
    """Number of the attempt; 0 for the whole scope."""
    events: Mapping[str, int]
    """Records by wire name."""
    counts: Mapping[str, int]
    """The host's own counts."""
    timings: Mapping[str, Timing]
    """By category: generation, evaluation, approval, other, and the host's own."""
    reported: Spending
    estimated: Spending

    def as_json(self) -> dict[str, object]:
        """The summary as plain data, for `json.dumps` or a metrics file."""
        return attrs.asdict(self)


@attrs.define(eq=False)
class Totals:
    """Growing sums."""

    events: dict[str, int] = attrs.Factory(dict[str, int])
    counts: dict[str, int] = attrs.Factory(dict[str, int])
    timings: dict[str, Timing] = attrs.Factory(dict[str, Timing])
    reported: Spending = Spending()
    estimated: Spending = Spending()

    def count_event(self, name: str) -> None:
        """One more record of this wire name."""
        self.events[name] = self.events.get(name, 0) + 1

    def count(self, name: str, value: int) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + value

    def time(self, category: str, duration_us: int) -> None:
        """Add one duration to a category."""
        self.timings[category] = joined(self.timings.get(category), Timing(1, duration_us, duration_us))

    def spend(self, charge: Charge) -> None:
        """Add the charge of one call."""
        spent = Spending(1, charge.input_tokens, charge.output_tokens, charge.money_micro)
        if charge.estimated:
            self.estimated = together(self.estimated, spent)
        else:
            self.reported = together(self.reported, spent)

    def add(self, other: Totals) -> None:
        """Add all of another's sums."""
        for name, number in other.events.items():
            self.events[name] = self.events.get(name, 0) + number
        for name, number in other.counts.items():
            self.count(name, number)
        for category, timing in other.timings.items():
            self.timings[category] = joined(self.timings.get(category), timing)
        self.reported = together(self.reported, other.reported)
        self.estimated = together(self.estimated, other.estimated)

    def summary(self, scope: str, attempt: int) -> Summary:
        """The sums as they stand, sorted by name."""
        return Summary(
            scope=scope,
            attempt=attempt,
            events=dict(sorted(self.events.items())),
            counts=dict(sorted(self.counts.items())),
            timings=dict(sorted(self.timings.items())),
            reported=self.reported,
            estimated=self.estimated,
        )


def joined(one: Timing | None, other: Timing) -> Timing:
    """Two timings of a category as one."""
    if one is None:
        return other
    return Timing(
        one.number + other.number, one.total_us + other.total_us, max(one.longest_us, other.longest_us)
    )


def together(one: Spending, other: Spending) -> Spending:
    """The charges of both."""
    return Spending(
        one.calls + other.calls,
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.money_micro + other.money_micro,
    )
