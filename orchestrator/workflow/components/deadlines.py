"""A deadline for one call of a subagent, which holds whatever the call does.

The run's supervisor watches the phase as a whole; calls of subagents run side by side inside it, so each has a task
of its own. Past its time it is cancelled, past a grace it is left behind, and what it gives later concerns nobody.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from orchestrator.supervision import DeadlineError
from orchestrator.wording import describe

__all__ = ["AbortedCallError", "within"]

GRACE_S = 0.2
"""Between cancelling a call and leaving it behind, seconds."""

Result = TypeVar("Result")


class AbortedCallError(Exception):
    """A call raised what is no Exception, SystemExit for one, or cancelled itself; it ends no more than itself."""


async def within(seconds: float | None, call: Coroutine[Any, Any, Result]) -> Result:
    """The result of a call; DeadlineError when it takes longer, AbortedCallError when it would end more than itself."""
    task = asyncio.get_running_loop().create_task(contained(call))
    task.add_done_callback(looked_at)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await given_up(task)
        raise
    if not task.done():
        await given_up(task)
        raise DeadlineError
    if task.cancelled():
        raise AbortedCallError("the call cancelled itself")
    return task.result()


async def given_up(task: asyncio.Task[Any]) -> None:
    """Cancel, and wait a moment for the call to give way."""
    task.cancel()
    await asyncio.wait({task}, timeout=GRACE_S)


async def contained(call: Coroutine[Any, Any, Result]) -> Result:
    """The call's result; what would end the loop or the process ends the call alone."""
    try:
        return await call
    except (KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, Exception):
        raise
    except BaseException as error:
        raise AbortedCallError(describe(error)) from error


def looked_at(task: asyncio.Task[Any]) -> None:
    """Nobody may ask for the error of a call that was left behind."""
    if not task.cancelled():
        task.exception()
