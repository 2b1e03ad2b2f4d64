"""Ends that are themselves interrupted, and what hangs where no deadline of its own holds: the markers come once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from orchestrator.agent import Agent, AgentCancelledError, MemoryTranscript, Message, Provider, ToolCall
from orchestrator.agent import transcript as storing
from orchestrator.testing import ManualCancellation, ScriptedProvider, ScriptedTool
from orchestrator_events import Decision, Proceed, Question
from orchestrator_events.agent import ToolPre
from orchestrator_events.record import Record

Checks = Callable[[Any], None]
MARKERS = ["orchestrator:complete", "execution:end"]
LOOK = ToolCall(id="1", tool="look", arguments={})


def agent_of(*replies: Any, tool: Any = "seen") -> Agent:
    """An agent with a scripted model and one tool."""
    return Agent(providers={"p": ScriptedProvider(list(replies))}, tools=[ScriptedTool("look", [tool])])


def told_of(agent: Agent) -> list[str]:
    """The end markers that a subscriber is told of, as they come."""
    told: list[str] = []

    async def hear(record: Record) -> None:
        if record.event.name in MARKERS:
            told.append(record.event.name)

    agent.bus.subscribe(hear)
    return told


def slow_at(agent: Agent, name: str) -> asyncio.Event:
    """Set while a subscriber takes its time at an event."""
    begun = asyncio.Event()

    async def wait(record: Record) -> None:
        if record.event.name == name:
            begun.set()
            await asyncio.sleep(5)

    agent.bus.subscribe(wait)
    return begun


@pytest.mark.parametrize("name", ["prompt:complete", "orchestrator:complete", "execution:end"])
def test_a_task_cancelled_while_the_end_is_told_still_tells_all_of_it(name: str) -> None:
    """A subscriber may take its time at the end; a host that does not wait for it takes no marker from the others."""

    async def scenario() -> tuple[bool, list[str]]:
        agent = agent_of("Hello.")
        begun, told = slow_at(agent, name), told_of(agent)
        task = asyncio.ensure_future(agent.arun("Hi."))
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), told

    assert asyncio.run(scenario()) == (True, MARKERS)


@pytest.mark.parametrize("first", ["graceful", "immediate", "task"])
@pytest.mark.parametrize("name", ["cancel:requested", "action:finished", "cancel:completed", "execution:end"])
def test_a_second_cancellation_in_the_midst_of_the_first_loses_nothing(
    first: str, name: str, well_formed: Checks
) -> None:
    """Whoever presses the key twice ends the run once: markers once, the conversation whole."""
    token, transcript = ManualCancellation(), MemoryTranscript()

    async def scenario() -> tuple[bool, list[str]]:
        running = asyncio.Event()

        async def run_on(_: Any) -> str:
            running.set()
            await asyncio.sleep(0.02 if first == "graceful" else 5)
            return "seen"

        agent = agent_of(LOOK, tool=run_on)
        begun, told = slow_at(agent, name), told_of(agent)
        task = asyncio.ensure_future(agent.arun("Hi.", cancellation=token, transcript=transcript))
        await running.wait()
        if first == "task":
            task.cancel()
        else:
            token.state = first
        await begun.wait()
        task.cancel()
        await asyncio.wait({task})
        return task.cancelled(), told

    assert asyncio.run(scenario()) == (True, MARKERS)
    well_formed(transcript.messages)


def test_an_immediate_cancellation_ends_a_gate_that_waits(well_formed: Checks) -> None:
    """A hook or a person that is asked does not look at the token: the run does not wait for the answer."""
    token, transcript = ManualCancellation(), MemoryTranscript()
    agent = agent_of(LOOK)

    async def ponder(_: Question) -> Decision:
        token.state = "immediate"
        await asyncio.sleep(20)
        return Proceed()

    agent.bus.answer(ToolPre, ponder)
    told = told_of(agent)
    with pytest.raises(AgentCancelledError, match="the host asked the run to stop"):
        agent.run("Hi.", cancellation=token, transcript=transcript)
    assert told == MARKERS
    well_formed(transcript.messages)


class Hanging(MemoryTranscript):
    """Takes so many messages, and then hangs at each."""

    most = 0

    async def add(self, message: Message) -> None:
        """Hang, or add it."""
        if len(self.messages) >= self.most:
            await asyncio.sleep(20)
        await super().add(message)

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """All of it."""
        return await super().for_request(provider)


@pytest.mark.parametrize("most", [0, 1, 2, 3])
@pytest.mark.parametrize("wish", ["none", "immediate", "task"])
def test_a_transcript_that_hangs_does_not_hang_the_run(most: int, wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It fails as one that raises does; and no cancellation waits for it."""
    monkeypatch.setattr(storing, "STORING_S", 0.02 if wish == "none" else 20.0)
    monkeypatch.setattr(storing, "CLOSING_S", 0.02)
    token = ManualCancellation()

    async def scenario() -> tuple[BaseException | None, list[str]]:
        agent, transcript = agent_of(LOOK, "Hello."), Hanging()
        transcript.most = most
        told = told_of(agent)
        task = asyncio.ensure_future(agent.arun("Hi.", cancellation=token, transcript=transcript))
        await asyncio.sleep(0.01)
        if wish == "task":
            task.cancel()
        elif wish == "immediate":
            token.state = wish
        await asyncio.wait({task})
        return (asyncio.CancelledError() if task.cancelled() else task.exception()), told

    error, told = asyncio.run(scenario())
    kinds = {"none": TimeoutError, "immediate": AgentCancelledError, "task": asyncio.CancelledError}
    assert (type(error), told) == (kinds[wish], MARKERS)


def test_a_limit_before_any_word_of_the_model_is_the_answer() -> None:
    """Who asked reads that a limit ended it, not an empty text."""
    from orchestrator.agent import AgentLimits

    provider = ScriptedProvider([LOOK, ToolCall(id="2", tool="look", arguments={})])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("look", ["seen"])], limits=AgentLimits(iterations=1))
    report = agent.run("Hi.")
    sentence = "The run reached its limit of iterations before it was finished."
    assert (report.status, report.answer) == ("incomplete", sentence)
    assert report.messages[-1] == {"role": "assistant", "content": [{"type": "text", "text": sentence}]}
