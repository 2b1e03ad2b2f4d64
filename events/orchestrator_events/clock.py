"""Time as a port: every stamp and every budget sum reads it, and nothing else does."""

from __future__ import annotations

import time
from typing import Protocol

__all__ = ["Clock", "SystemClock"]


class Clock(Protocol):
    """Two readings in integer microseconds. Waiting is never done with a clock, always by the loop."""

    def now(self) -> int:
        """Microseconds since 1970-01-01T00:00:00 UTC."""
        ...

    def monotonic(self) -> int:
        """Microseconds since an arbitrary start; never goes back."""
        ...


class SystemClock:
    """The machine's clocks, looked up at each reading so that a test can freeze them."""

    def now(self) -> int:
        """Microseconds since the Unix epoch, UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> int:
        """Microseconds of the monotonic clock."""
        return time.monotonic_ns() // 1000
