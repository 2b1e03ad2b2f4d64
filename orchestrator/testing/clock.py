"""A clock that stands still until it is told to go on."""

from __future__ import annotations

import attrs

__all__ = ["ManualClock"]

NEW_YEAR_2026_US = 1_767_225_600_000_000


@attrs.define(eq=False)
class ManualClock:
    """Both readings in integer microseconds; they move together, and only by `advance`.

    The engine waits with the loop and not with a clock, so a call that hangs still needs a real deadline.

    >>> clock = ManualClock()
    >>> clock.advance(1.5)
    >>> clock.monotonic(), clock.now() - NEW_YEAR_2026_US
    (1500000, 1500000)
    """

    now_us: int = NEW_YEAR_2026_US
    """Microseconds since the Unix epoch, UTC."""
    monotonic_us: int = 0

    def now(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return self.now_us

    def monotonic(self) -> int:
        """Microseconds since the clock was made."""
        return self.monotonic_us

    def advance(self, seconds: float) -> None:
        """Let time pass; ValueError for a negative time, which no monotonic clock can show."""
        if seconds < 0:
            raise ValueError(f"a clock never goes back: advance by 0 or more seconds, not {seconds!r}")
        passed = round(seconds * 1_000_000)
        self.now_us += passed
        self.monotonic_us += passed
