"""Waiting for a subscriber's awaitable, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from orchestrator_events.errors import EventError

__all__ = ["settled"]

Answer = TypeVar("Answer")


async def settled(answer: Awaitable[Answer], limit_s: float | None) -> Answer:
    """What a receiver's awaitable gives within the limit (None: whenever); past it, it is cancelled and left behind.

    `asyncio.wait_for` would wait for as long as the receiver swallows its cancellation, and would pass a
    receiver's own CancelledError off as the run's.
    """
    task = asyncio.ensure_future(answer)
    try:
        done, _ = await asyncio.wait((task,), timeout=limit_s)
    finally:
        if not task.done():
            task.cancel()
            task.add_done_callback(drop_outcome)
    if not done:
        raise TimeoutError(f"no end within {limit_s:g} s")
    if task.cancelled():
        raise EventError("it cancelled itself")
    return task.result()


def drop_outcome(task: asyncio.Future[Any]) -> None:
    """Look at what a receiver left behind came to, so that the loop does not warn about it."""
    if not task.cancelled():
        task.exception()
