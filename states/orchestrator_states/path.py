"""The way a run took through its lifecycle, as a picture shows it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs

__all__ = ["PathOverlay", "span"]

MINUTE_S = 60
ROUNDS_UP_US = 59_950_000


@attrs.frozen
class PathOverlay:
    """Where a run has been: visits by state, how often it took each (state, event, next state), and how long.

    `times_us` is the time in each state, all visits together, microseconds; a state that is left out, or has 0,
    is shown without a time.
    """

    visits: Mapping[str, int] = attrs.field(factory=dict)
    moves: Mapping[tuple[str, str, str], int] = attrs.field(factory=dict)
    times_us: Mapping[str, int] = attrs.field(factory=dict)

    def taken(self, moves: Iterable[tuple[str, str, str]]) -> int:
        """How often the run took any of these moves."""
        return sum(self.moves.get(move, 0) for move in moves)

    def time(self, state: str) -> str:
        """The time in a state, in words; empty without one."""
        time_us = self.times_us.get(state, 0)
        return span(time_us) if time_us > 0 else ""


def span(time_us: int) -> str:
    """A length of time in words: `12ms`, `8.1s`, `2m 05s`, `1h 02m`."""
    if time_us < 100_000:  # noqa: PLR2004 -- a tenth of a second
        return f"{max(time_us, 0) / 1_000:.0f}ms" if time_us >= 1_000 else "<1ms"  # noqa: PLR2004 -- a millisecond
    if time_us < ROUNDS_UP_US:
        return f"{time_us / 1_000_000:.1f}s"
    seconds = round(time_us / 1_000_000)
    hours, minutes = divmod(seconds // MINUTE_S, MINUTE_S)
    return f"{hours}h {minutes:02}m" if hours else f"{minutes}m {seconds % MINUTE_S:02}s"
