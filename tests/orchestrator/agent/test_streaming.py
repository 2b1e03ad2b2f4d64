"""What is shown while a run is under way, and the async generator that shows it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.agent import Agent, AgentCompleted, ProviderCallError, Reply, ToolCall, TurnRequest
from orchestrator.testing import ScriptedProvider, ScriptedTool
from orchestrator_events.agent import (
    ActionFinished,
    ActionStarted,
    ContentBlockDelta,
    ContentBlockEnd,
    ContentBlockStart,
    ThinkingDelta,
    ThinkingFinal,
)

THOUGHT = {"type": "thinking", "thinking": "hm"}
TEXT = {"type": "text", "text": "Hello."}
BLOCKS = Reply(blocks=(THOUGHT, TEXT))


async def streamed(agent: Agent) -> list[Any]:
    """Everything that a stream yields."""
    return [event async for event in agent.stream("Go.")]


def test_pieces_are_shown_as_they_are_written_and_the_report_comes_last() -> None:
    """Blocks begin with their first piece and end whole; thinking has events of its own."""

    def write(request: TurnRequest) -> Reply:
        assert request.delta is not None
        for index, kind, piece in ((0, "thinking", "h"), (0, "thinking", "m"), (1, "text", "Hel"), (1, "text", "lo.")):
            request.delta(index, kind, piece)
        request.delta("x", "text", 7)  # type: ignore[arg-type]  # no piece: it is ignored
        return BLOCKS

    events = asyncio.run(streamed(Agent(providers={"p": ScriptedProvider([write])})))
    shown = [(type(event), getattr(event, "delta", getattr(event, "block_index", None))) for event in events]
    assert shown == [
        (ContentBlockStart, 0),
        (ThinkingDelta, "h"),
        (ContentBlockDelta, "h"),
        (ThinkingDelta, "m"),
        (ContentBlockDelta, "m"),
        (ContentBlockStart, 1),
        (ContentBlockDelta, "Hel"),
        (ContentBlockDelta, "lo."),
        (ThinkingFinal, None),
        (ContentBlockEnd, 0),
        (ContentBlockEnd, 1),
        (AgentCompleted, None),
    ]
    assert events[-1].answer == "Hello."


def test_a_provider_that_writes_no_pieces_is_shown_by_its_blocks() -> None:
    """content_block:start and end, and thinking:final, told from the answer; tools as they start and end."""
    call = ToolCall(id="1", tool="look", arguments={})
    agent = Agent(providers={"p": ScriptedProvider([call, BLOCKS])}, tools=[ScriptedTool("look")])
    events = asyncio.run(streamed(agent))
    assert [type(event) for event in events] == [
        *(ActionStarted, ActionFinished),
        *(ContentBlockStart, ThinkingFinal, ContentBlockEnd, ContentBlockStart, ContentBlockEnd),
        AgentCompleted,
    ]
    ends = [event for event in events if isinstance(event, ContentBlockEnd)]
    assert (ends[1].block, ends[1].total_blocks) == ('{"type":"text","text":"Hello."}', 2)


def test_nobody_is_told_pieces_where_nobody_listens() -> None:
    """A provider need not stream then."""
    provider = ScriptedProvider(["Hello."])
    Agent(providers={"p": provider}).run("Go.")
    assert provider.requests[0].delta is None


def test_closing_the_stream_early_cancels_the_run_in_order() -> None:
    """The end markers are told before the generator is closed, and nothing is left running."""
    told: list[str] = []

    async def main() -> None:
        async def hang(request: TurnRequest) -> str:
            assert request.delta is not None
            request.delta(0, "text", "Once")
            await asyncio.sleep(5)
            return "x"

        agent = Agent(providers={"p": ScriptedProvider([hang])})
        agent.bus.subscribe(lambda record: told.append(record.event.name))
        stream = agent.stream("Go.")
        async for event in stream:
            if isinstance(event, ContentBlockDelta):
                break
        await stream.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert told[-3:] == ["cancel:completed", "orchestrator:complete", "execution:end"]


def test_what_the_run_raises_is_raised_by_the_stream() -> None:
    """After the events that came before it."""
    provider = ScriptedProvider([ProviderCallError("gone")])
    with pytest.raises(ProviderCallError, match="gone"):
        asyncio.run(streamed(Agent(providers={"p": provider})))
