"""The host's wish that a run should stop, as a token that is looked at again and again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, cast

__all__ = ["POLL_S", "Cancellation", "StopRequestedError", "state_of", "tell_tool"]

POLL_S = 0.05
"""How often the token is looked at while something runs, seconds: hosts' tokens cannot be waited for."""


class Cancellation(Protocol):
    """Whether the host wants the run to stop.

    It may also have `tool_started(call_id, name)` and `tool_ended(call_id)`, which are called around each tool.
    """

    @property
    def state(self) -> str:
        """none, graceful (what runs may finish) or immediate (it is interrupted)."""
        ...


class StopRequestedError(Exception):
    """The host's cancellation was seen; nothing new is begun."""


def state_of(cancellation: Cancellation | None) -> str:
    """none, graceful or immediate; what a token says beyond those is none."""
    if cancellation is None:
        return "none"
    state = str(cancellation.state)
    return state if state in {"graceful", "immediate"} else "none"


def tell_tool(cancellation: Cancellation | None, hook: str, *arguments: str) -> None:
    """Tell the token of a tool, where it wants to know; what it raises is its own affair."""
    told = cast("Callable[..., object] | None", getattr(cancellation, hook, None))
    if callable(told):
        with suppress(Exception):
            told(*arguments)
