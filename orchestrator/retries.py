"""When a call that failed in passing is made again: one policy, in the loop, journaled."""

from __future__ import annotations

from math import isfinite

import attrs

__all__ = ["RetryPolicy"]


def _is_duration(_: object, attribute: attrs.Attribute[float], value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        raise ValueError(f"{attribute.name} must be a finite number from 0, not {value!r}")


def _is_count(_: object, attribute: attrs.Attribute[int], value: object) -> None:
    if type(value) is not int or value < 0:
        raise ValueError(f"{attribute.name} must be a whole number from 0, not {value!r}")


@attrs.frozen(kw_only=True)
class RetryPolicy:
    """How often a failed call is made again and how long is waited before, seconds.

    Without jitter, so that a run with the same failures waits the same. An SDK's own retries are to be 0.
    """

    retries: int = attrs.field(default=2, validator=_is_count)
    """How often one call is made again; 0 for never."""
    first_wait: float = attrs.field(default=1.0, validator=_is_duration)
    factor: float = attrs.field(default=2.0, validator=_is_duration)
    """How much longer each wait is than the one before."""
    longest_wait: float = attrs.field(default=30.0, validator=_is_duration)
    """Where the waits of this policy stop growing; a server's own Retry-After may be longer."""
    longest_retry_after: float = attrs.field(default=600.0, validator=_is_duration)
    """The longest Retry-After that is waited for, however much time the run has: servers ask for days."""

    def wait(self, done: int, retry_after: float | None, left: float | None) -> float | None:
        """How long to wait before the next try; None when there is to be none.

        `done` tries were made again already, the server asks for `retry_after`, the run has `left` seconds.
        """
        return None if self.refusal(done, retry_after, left) else self._planned(done, retry_after)

    def refusal(self, done: int, retry_after: float | None, left: float | None) -> str:
        """Why there is to be no further try, in words for an error message; empty when there is to be one."""
        if done >= self.retries:
            return f"tried {done + 1} times" if done else "retries are off"
        asked = _sane(retry_after)
        if asked > self.longest_retry_after:
            return f"the server asks to wait {asked:g} s, at most {self.longest_retry_after:g} s are waited"
        wait = self._planned(done, retry_after)
        if left is not None and wait >= left:
            return f"the next try would have to wait {wait:g} s, the run has {max(0.0, left):.1f} s left"
        return ""

    def puts_off(self, retry_after: float | None, left: float | None) -> bool:
        """Whether the server asks for a longer wait than there is time for: asking sooner would be pointless."""
        asked = _sane(retry_after)
        return asked > self.longest_retry_after or (left is not None and asked >= left > 0)

    def _planned(self, done: int, retry_after: float | None) -> float:
        try:
            grown = self.first_wait * self.factor**done
        except OverflowError:
            grown = self.longest_wait
        return max(min(grown, self.longest_wait), _sane(retry_after))


def _sane(retry_after: float | None) -> float:
    # An adapter may be anyone's: a negative or undefined time asks for nothing.
    return retry_after if retry_after is not None and retry_after > 0 else 0.0
