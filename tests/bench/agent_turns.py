"""What a turn of the agent loop costs beside a plain loop with the same provider and tool: run it as a script.

The plain loop is written as such loops are: a list of messages, a call, its tools, and again; nothing is recorded,
nothing can be asked, limited, resumed or audited. Both take the same turns in the same process, round by round, and
the ratio of their medians is what is compared; absolute figures are this machine's.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from orchestrator.agent import Agent, AgentLimits, CallRequest, Reply, Tool, ToolCall, ToolOutcome, TurnRequest
from orchestrator_events.bus import Bus
from orchestrator_events.subscribers.metrics import Metrics

ASKED = Reply(calls=(ToolCall(id="1", tool="echo", arguments={"text": "hello"}),))
ANSWER = Reply(blocks=({"type": "text", "text": "done"},))


class Provider:
    """Asks for one tool a turn, and answers in the last one."""

    name = "bench"

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.calls = 0

    async def complete(self, request: TurnRequest) -> Reply:  # noqa: ARG002 -- the port's signature
        """The next reply."""
        self.calls += 1
        return ANSWER if self.calls % self.turns == 0 else ASKED


class Echo:
    """Gives back what it is given."""

    name = "echo"
    description = "Echo a text."
    is_idempotent = True

    def __init__(self) -> None:
        self.schema: Mapping[str, Any] = {"type": "object"}

    async def call(self, request: CallRequest) -> ToolOutcome:
        """The text."""
        return ToolOutcome(is_success=True, output=str(request.arguments["text"]))


async def plain(provider: Provider, tools: dict[str, Tool], prompt: str, most: int) -> str:
    """A loop without any of it."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
    for turn in range(1, most + 1):
        request = TurnRequest(
            run_id="plain", turn=turn, messages=tuple(messages), tools=tuple(tools.values()), model="", parameters={},
            max_tokens=None, seconds=None, idempotency_key="",
        )  # fmt: skip
        reply = await provider.complete(request)
        calls = [{"id": call.id, "tool": call.tool, "arguments": dict(call.arguments)} for call in reply.calls]
        messages.append({"role": "assistant", "content": list(reply.blocks), "tool_calls": calls})
        if not reply.calls:
            return reply.text
        for call in reply.calls:
            given = CallRequest(run_id="plain", call_id=call.id, arguments=call.arguments, seconds=None)
            outcome = await tools[call.tool].call(given)
            messages.append({"role": "tool", "tool_call_id": call.id, "content": outcome.output})
    return ""


async def timed(work: Callable[[], Awaitable[object]], turns: int) -> float:
    """Microseconds a turn."""
    began = time.perf_counter()
    await work()
    return (time.perf_counter() - began) / turns * 1e6


async def measured(turns: int, rounds: int) -> dict[str, list[float]]:
    """Both loops, in turn, and ours with three subscribers."""
    limits = AgentLimits(iterations=turns + 1)
    watched = Bus()
    watched.subscribe(Metrics())
    for _ in range(2):
        watched.subscribe(lambda _: None)
    figures: dict[str, list[float]] = {"plain": [], "ours": [], "ours, 3 subscribers": []}
    for _ in range(rounds):
        figures["plain"].append(await timed(lambda: plain(Provider(turns), {"echo": Echo()}, "Go.", turns + 1), turns))
        for name, bus in (("ours", Bus()), ("ours, 3 subscribers", watched)):
            agent = Agent(providers={"bench": Provider(turns)}, tools=[Echo()], limits=limits, bus=bus)
            figures[name].append(await timed(lambda agent=agent: agent.arun("Go."), turns))  # type: ignore[misc]  # bound here
    return figures


def main() -> None:
    """Print medians for each length of conversation, and how much ours are above the plain loop's."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--turns", type=int, nargs="+", default=[10, 50, 200])
    arguments.add_argument("--rounds", type=int, default=15)
    given = arguments.parse_args()
    for turns in given.turns:
        asyncio.run(measured(turns, 2))  # imports and caches
        figures = asyncio.run(measured(turns, given.rounds))
        base = statistics.median(figures["plain"])
        for name, each in figures.items():
            median = statistics.median(each)
            print(f"{turns:4} turns  {name:<20} {median:8.1f} us a turn {median / base:8.1f} times the plain loop")


if __name__ == "__main__":
    main()
