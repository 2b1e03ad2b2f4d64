"""Hooks that never answer, at every place where one is asked or told: no way out of a run waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.agent import Agent, AgentCancelledError, MemoryTranscript, ToolCall, patience
from orchestrator.harness.harness import Harness
from orchestrator.testing import ManualCancellation, ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator_events import Decision, Gate, Proceed, Question
from orchestrator_events.agent import (
    AnswerProposed,
    CancelRequested,
    PromptSubmit,
    ProviderRequest,
    ProviderResponse,
    ToolPost,
    ToolPre,
)
from orchestrator_events.record import Record

Checks = Callable[[Any], None]
GATES: tuple[type[Gate], ...] = (PromptSubmit, ProviderRequest, ProviderResponse, ToolPre, ToolPost, AnswerProposed)
FACTS = (
    "execution:start",
    "isolation:established",
    "turn:started",
    "turn:answered",
    "message:added",
    "action:started",
    "action:finished",
    "verification:finished",
    "actions:settled",
    "answer:given",
    "cancel:requested",
    "execution:cancelled",
    "cancel:completed",
    "prompt:complete",
    "orchestrator:complete",
    "execution:end",
)
STATES = ("graceful", "immediate")
MARKERS = ["orchestrator:complete", "execution:end"]
LOOK = ToolCall(id="1", tool="look", arguments={})
WRITE = ToolCall(id="2", tool="write_file", arguments={"path": "a", "content": "x"})


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graces that a test can wait for; the agent asks for each whenever it needs it."""
    monkeypatch.setattr(patience, "HOOK_GRACE_S", 0.05)
    monkeypatch.setattr(patience, "LEAST_S", 0.01)


def agent_of(*replies: Any, **parts: Any) -> Agent:
    """An agent whose script asks for two tools, verifies, and answers."""
    script = replies or ([LOOK, WRITE], "Hello.")
    tools = parts.pop("tools", (ScriptedTool("look", ["seen"]), ScriptedTool("write_file")))
    return Agent(
        providers={"p": ScriptedProvider(script)},
        tools=tools,
        harness=Harness(rules=(), finish_when_green=False),
        verifier=ScriptedVerifier([(1, 1)]),
        **parts,
    )


def told_of(agent: Agent) -> list[str]:
    """What a subscriber that comes after every other is told of."""
    told: list[str] = []
    agent.bus.subscribe(lambda record: told.append(record.event.name), priority=9)
    return told


async def never() -> None:
    """Wait for nothing at all."""
    await asyncio.Event().wait()


def ended(agent: Agent, token: ManualCancellation, transcript: MemoryTranscript) -> str:
    """How the run ends, within a time that no limit of a hook's own allows."""

    async def run() -> str:
        try:
            async with asyncio.timeout(3):
                report = await agent.arun("Hi.", cancellation=token, transcript=transcript)
        except AgentCancelledError as error:
            return f"{error.outcome}: {error.reason}"
        return report.status

    return asyncio.run(run())


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("gate", GATES)
def test_a_stop_does_not_wait_for_a_gate(gate: type[Gate], state: str, well_formed: Checks) -> None:
    """Graceful, the hook has a grace; immediate, none: the run is cancelled either way, and told so."""
    token, transcript, agent = ManualCancellation(), MemoryTranscript(), agent_of()

    async def ponder(_: Question) -> Decision:
        token.state = state
        await never()
        return Proceed()

    agent.bus.answer(gate, ponder, seconds=None)
    told, levels = told_of(agent), list[bool]()
    agent.bus.subscribe(
        lambda record: levels.append(isinstance(record.event, CancelRequested) and record.event.is_immediate),
        CancelRequested,
    )
    assert ended(agent, token, transcript) == "cancelled: the host asked the run to stop"
    assert (told[-2:], levels) == (MARKERS, [state == "immediate"])
    well_formed(transcript.messages)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("name", FACTS)
def test_a_stop_does_not_wait_for_a_subscriber(name: str, state: str, well_formed: Checks) -> None:
    """Whatever event it hangs at, the others are told of everything, and both markers come."""
    token, transcript, agent = ManualCancellation(), MemoryTranscript(), agent_of()

    def stop(_: Question) -> Decision:
        token.state = state
        return Proceed()

    if name.startswith(("cancel:", "execution:cancelled")):
        agent.bus.answer(ToolPost, stop)

    async def hang(record: Record) -> None:
        if record.event.name == name:
            token.state = state
            await never()

    agent.bus.subscribe(hang, seconds=None)
    told = told_of(agent)
    assert ended(agent, token, transcript) in {"cancelled: the host asked the run to stop", "completed"}
    assert name in told
    assert told[-2:] == MARKERS
    well_formed(transcript.messages)


@pytest.mark.parametrize("state", STATES)
def test_a_subscriber_that_hangs_at_everything_has_one_grace(state: str, well_formed: Checks) -> None:
    """The grace is of the run, not of each event."""
    token, transcript, agent = ManualCancellation(state), MemoryTranscript(), agent_of()

    async def hang(_: Record) -> None:
        await never()

    agent.bus.subscribe(hang, seconds=None)
    told = told_of(agent)
    assert ended(agent, token, transcript) == "cancelled: the host asked the run to stop"
    assert told[-2:] == MARKERS
    well_formed(transcript.messages)


def test_a_cancelled_task_does_not_wait_for_a_subscriber_either() -> None:
    """Without any token: the end is told once, in bounded time."""

    async def scenario() -> tuple[bool, list[str]]:
        agent, running = agent_of(), asyncio.Event()

        async def hang(record: Record) -> None:
            running.set()
            if record.event.name != "execution:start":
                await never()

        agent.bus.answer(PromptSubmit, lambda _: waits(running), seconds=None)
        agent.bus.subscribe(hang, seconds=None)
        told = told_of(agent)
        task = asyncio.ensure_future(agent.arun("Hi."))
        await running.wait()
        task.cancel()
        await asyncio.wait({task}, timeout=3)
        return task.cancelled(), told

    async def waits(running: asyncio.Event) -> Decision:
        running.set()
        await never()
        return Proceed()

    is_cancelled, told = asyncio.run(scenario())
    assert (is_cancelled, told[-2:]) == (True, MARKERS)


@pytest.mark.parametrize("state", STATES)
def test_a_gate_that_hangs_beside_a_running_tool(state: str, well_formed: Checks) -> None:
    """Graceful, the other tool ends first and keeps its result; immediate, it is interrupted with the gate."""
    token, transcript = ManualCancellation(), MemoryTranscript()

    async def slowly(_: object) -> str:
        await asyncio.sleep(0.2)
        return "slow, but whole"

    other = ToolCall(id="2", tool="slow", arguments={})
    agent = agent_of([LOOK, other], tools=(ScriptedTool("look", ["seen"]), ScriptedTool("slow", [slowly])))

    async def ponder(question: Question) -> Decision:
        assert isinstance(question.gate, ToolPost)
        if question.gate.tool_name == "look":
            token.state = state
            await never()
        return Proceed()

    agent.bus.answer(ToolPost, ponder, seconds=None)
    assert ended(agent, token, transcript) == "cancelled: the host asked the run to stop"
    results = {m["tool_call_id"]: str(m["content"]) for m in transcript.messages if m["role"] == "tool"}
    assert results["2"].startswith("slow, but whole" if state == "graceful" else "Interrupted: ")
    well_formed(transcript.messages)


def test_a_hook_that_answers_within_the_grace_is_heard() -> None:
    """A graceful stop lets what is under way come to its end."""
    token, transcript, agent = ManualCancellation(), MemoryTranscript(), agent_of("Hello.")
    heard: list[str] = []

    async def take_a_moment(record: Record) -> None:
        if record.event.name == "turn:started":
            token.state = "graceful"
            await asyncio.sleep(0.02)
            heard.append(record.event.name)

    agent.bus.subscribe(take_a_moment, seconds=None)
    assert (ended(agent, token, transcript), heard) == ("cancelled: the host asked the run to stop", ["turn:started"])
