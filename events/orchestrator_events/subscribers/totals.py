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
    """Growing sums, in lists that are added to in place: `[number, total, longest]` of a category's time,
    `[calls, input, output, money]` of charges.
    """

    events: dict[str, int] = attrs.Factory(dict[str, int])
    counts: dict[str, int] = attrs.Factory(dict[str, int])
    timings: dict[str, list[int]] = attrs.Factory(dict[str, list[int]])
    reported: list[int] = attrs.field(factory=lambda: [0, 0, 0, 0])
    estimated: list[int] = attrs.field(factory=lambda: [0, 0, 0, 0])

    def count_event(self, name: str) -> None:
        """One more record of this wire name."""
        self.events[name] = self.events.get(name, 0) + 1

    def count(self, name: str, value: int) -> None:
        """Add to a count."""
        self.counts[name] = self.counts.get(name, 0) + value

    def time(self, category: str, duration_us: int) -> None:
        """Add one duration to a category."""
        self.add_timing(category, 1, duration_us, duration_us)

    def spend(self, charge: Charge) -> None:
        """Add the charge of one call."""
        sums = self.estimated if charge.estimated else self.reported
        sums[0] += 1
        sums[1] += charge.input_tokens
        sums[2] += charge.output_tokens
        sums[3] += charge.money_micro

    def add(self, other: Totals) -> None:
        """Add all of another's sums."""
        for name, number in other.events.items():
            self.events[name] = self.events.get(name, 0) + number
        for name, number in other.counts.items():
            self.count(name, number)
        for category, timing in other.timings.items():
            self.add_timing(category, *timing)
        self.reported = [sum(pair) for pair in zip(self.reported, other.reported, strict=True)]
        self.estimated = [sum(pair) for pair in zip(self.estimated, other.estimated, strict=True)]

    def add_timing(self, category: str, number: int, total_us: int, longest_us: int) -> None:
        """Add to the time of a category."""
        sums = self.timings.setdefault(category, [0, 0, 0])
        sums[0] += number
        sums[1] += total_us
        sums[2] = max(sums[2], longest_us)

    def summary(self, scope: str, attempt: int) -> Summary:
        """The sums as they stand, sorted by name."""
        return Summary(
            scope=scope,
            attempt=attempt,
            events=dict(sorted(self.events.items())),
            counts=dict(sorted(self.counts.items())),
            timings={category: Timing(*sums) for category, sums in sorted(self.timings.items())},
            reported=Spending(*self.reported),
            estimated=Spending(*self.estimated),
        )
