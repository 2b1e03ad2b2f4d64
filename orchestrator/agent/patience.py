"""How long subscribers are waited for: as long as they may take, until the host wants the run to stop.

A gate and a host's transcript are interrupted with the driver that awaits them. A batch of records is not: each
subscriber has to be told of all of it. So the batch has a task of its own, and cancelling that, as the bus
promises, ends the one subscriber that is waited for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import TYPE_CHECKING

from orchestrator.agent.cancelling import POLL_S, state_of

if TYPE_CHECKING:
    from orchestrator.agent.invocation import Invocation

__all__ = ["HOOK_GRACE_S", "LEAST_S", "patiently"]

HOOK_GRACE_S = 5.0
"""What is outstanding may take once a graceful stop is asked for, or the task is cancelled, seconds."""
LEAST_S = 0.2
"""The same once an immediate stop is asked for, or the grace was used up: a moment for each closing event."""

logger = logging.getLogger("orchestrator.agent")


async def patiently(it: Invocation, telling: Coroutine[object, object, None]) -> None:
    """Have subscribers told of what happened, and leave behind those that take too long for a run that is to stop.

    Raises what `telling` raises, and the caller's own cancellation once everyone was told.
    """
    task = asyncio.ensure_future(telling)
    loop, cancellation = asyncio.get_running_loop(), None
    since, is_due = loop.time(), False
    while not task.done():
        try:
            await asyncio.wait({task}, timeout=0 if is_due else pause(it))
        except asyncio.CancelledError as error:
            cancellation, is_due, it.is_abandoned = error, True, True
            continue
        limit = grace(it)
        since = since if limit is not None else loop.time()
        if not task.done() and (is_due or (limit is not None and loop.time() - since >= limit)):
            logger.warning("run %s: a subscriber was left behind: the run is to stop", it.run.run_id)
            task.cancel()
            since, is_due, it.is_grace_used = loop.time(), False, it.is_grace_used or not is_due
    if cancellation is not None:
        raise cancellation
    if not task.cancelled():
        task.result()


def pause(it: Invocation) -> float | None:
    """Until the next look: there is a token to look at, or a grace to end."""
    return None if it.cancellation is None and not it.is_abandoned else min(POLL_S, LEAST_S)


def grace(it: Invocation) -> float | None:
    """What a subscriber may take now, seconds; None for as long as its own limit says."""
    state = state_of(it.cancellation)
    if state == "none" and not it.is_abandoned:
        return None
    return LEAST_S if state == "immediate" or it.is_grace_used else HOOK_GRACE_S
