"""Cascades of failures: a true sliding window over the last outcomes, which successes move as well."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

__all__ = ["CascadeRule", "failures_in_window", "is_cascade"]


def is_positive(_: object, field: attrs.Attribute[int], value: int) -> None:
    """Refuse anything but a whole number above 0."""
    if type(value) is not int or value < 1:
        raise ValueError(f"{field.name} must be a whole number above 0, not {value!r}")


@attrs.frozen
class CascadeRule:
    """From how many failures among how many last outcomes on there is a cascade (contract 4: 3 of 5)."""

    threshold: int = attrs.field(default=3, validator=is_positive)
    window: int = attrs.field(default=5, validator=is_positive)

    def __attrs_post_init__(self) -> None:
        if self.threshold > self.window:
            raise ValueError(f"threshold {self.threshold} is above the window of {self.window}: lower it")


def failures_in_window(outcomes: Sequence[bool], rule: CascadeRule) -> int:
    """Failures among the last outcomes, oldest first; True is a success."""
    return list(outcomes[-rule.window :]).count(False)


def is_cascade(outcomes: Sequence[bool], rule: CascadeRule) -> bool:
    """Whether the last outcomes are a cascade; only a failure begins one."""
    return bool(outcomes) and not outcomes[-1] and failures_in_window(outcomes, rule) >= rule.threshold
