"""The async generator face: what happens in a run as it happens, then what it came to."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from orchestrator.agent.outcome import AgentCompleted, AgentIncomplete, AgentReport
from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    ActionStarted,
    ContentBlockDelta,
    ContentBlockEnd,
    ContentBlockStart,
    ProviderRetry,
    ThinkingDelta,
    ThinkingFinal,
    ToolError,
    VerificationFinished,
)
from orchestrator_events.bus import Bus
from orchestrator_events.event import Event
from orchestrator_events.record import Record

__all__ = ["AgentEvent", "fed"]

AgentEvent = (
    ContentBlockStart
    | ContentBlockDelta
    | ContentBlockEnd
    | ThinkingDelta
    | ThinkingFinal
    | ActionStarted
    | ActionDenied
    | ActionFinished
    | ToolError
    | ProviderRetry
    | VerificationFinished
    | AgentCompleted
    | AgentIncomplete
)
"""What a stream yields: events of the run, and its report as the last."""

SHOWN = (
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockEnd,
    ThinkingDelta,
    ThinkingFinal,
    ActionStarted,
    ActionDenied,
    ActionFinished,
    ToolError,
    ProviderRetry,
    VerificationFinished,
)


async def fed(bus: Bus, run_id: str, work: Coroutine[Any, Any, AgentReport]) -> AsyncGenerator[AgentEvent, None]:
    """The events of a run while `work` does it, then what it returns; raises what it raises.

    Closing the generator early cancels the work, and waits until it has ended in order.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()

    def taken(record: Record) -> None:
        events.put_nowait(record.event)

    subscription = bus.subscribe(taken, *SHOWN, run_id=run_id, name="stream")
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            assert isinstance(event, SHOWN)
            yield event
        yield task.result()
    finally:
        subscription.close()
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
        if not task.cancelled():
            task.exception()
