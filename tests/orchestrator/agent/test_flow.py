"""The course of a run that goes well: order of the steps, what is told, what the conversation holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import pytest

from orchestrator.agent import (
    Agent,
    AgentLimits,
    MemoryTranscript,
    Message,
    NoProviderError,
    Provider,
    ProviderCallError,
    Reply,
    ToolCall,
    UnknownProviderError,
)
from orchestrator.retries import RetryPolicy
from orchestrator.testing import ManualClock, ScriptedProvider, ScriptedTool
from orchestrator_events import Budget, Proceed, Usage
from orchestrator_events.agent import PromptSubmit, ProviderRequest, ProviderResponse, ToolPost, ToolPre, TurnStarted
from orchestrator_events.record import Record

Names = Callable[[Sequence[Record]], list[str]]
CALL = ToolCall(id="1", tool="look", arguments={"at": "x"})


def test_a_plain_answer_is_one_turn(names: Names) -> None:
    """The markers stand first and last, the isolation second, and one call of the model counts as one turn."""
    report = Agent(providers={"p": ScriptedProvider(["Hello."])}).run("Say hello.")
    assert (report.status, report.answer, report.turns, report.tool_calls) == ("completed", "Hello.", 1, 0)
    assert names(report.records) == [
        "execution:start",
        "isolation:established",
        "message:added",
        "turn:started",
        "turn:answered",
        "message:added",
        "answer:given",
        "prompt:complete",
        "orchestrator:complete",
        "execution:end",
    ]
    complete, end = (attrs.asdict(record.event) for record in report.records[-2:])
    assert complete == {"orchestrator": "agent", "turn_count": 1, "status": "success"}
    assert (end["response"], end["status"], end["reason"]) == ("Hello.", "completed", "")


@attrs.define
class Witness:
    """Writes down what happens around the ports, in order."""

    seen: list[str] = attrs.Factory(list[str])
    transcript: MemoryTranscript = attrs.Factory(MemoryTranscript)

    async def add(self, message: Message) -> None:
        """A message joins the conversation."""
        self.seen.append(f"add {message['role']}")
        await self.transcript.add(message)

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """The conversation is read."""
        self.seen.append("messages")
        return await self.transcript.for_request(provider)

    def told(self, what: str) -> Callable[[object], Any]:
        """A gate's subscriber, a tool or a provider that says it was there."""

        def answer(_: object) -> object:
            self.seen.append(what)
            return Proceed()

        return answer

    def doing(self, what: str, result: object) -> Callable[[object], object]:
        """An effect."""

        def act(_: object) -> object:
            self.seen.append(what)
            return result

        return act


def test_the_steps_come_in_the_order_of_the_contract() -> None:
    """Contract 2, steps 1 to 8, around one tool call and the answer after it."""
    witness = Witness()
    provider = ScriptedProvider([witness.doing("complete", CALL), witness.doing("complete", "Done.")])
    agent = Agent(providers={"p": provider}, tools=[ScriptedTool("look", [witness.doing("execute", "seen")])])
    for gate in (PromptSubmit, ProviderRequest, ProviderResponse, ToolPre, ToolPost):
        agent.bus.answer(gate, witness.told(gate.name))
    agent.run("Look.", transcript=witness)
    assert witness.seen == [
        "prompt:submit",
        "add user",
        "messages",
        "provider:request",
        "complete",
        "provider:response",
        "add assistant",
        "tool:pre",
        "execute",
        "tool:post",
        "add tool",
        "messages",
        "provider:request",
        "complete",
        "provider:response",
        "add assistant",
    ]


def test_what_the_model_reads_is_the_conversation_so_far() -> None:
    """Each request carries the system text, the conversation with calls and results, the tools, and its key."""
    provider = ScriptedProvider([CALL, "Done."])
    tool = ScriptedTool("look", ["seen"])
    agent = Agent(providers={"p": provider}, tools=[tool], system="Be brief.", model="m", parameters={"max_tokens": 99})
    agent.run("Look.", run_id="r")
    first, second = provider.requests
    system, user = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Look."}
    assert first.messages == (system, user)
    assert second.messages == (
        system,
        user,
        {"role": "assistant", "content": [], "tool_calls": [{"id": "1", "tool": "look", "arguments": {"at": "x"}}]},
        {"role": "tool", "tool_call_id": "1", "name": "look", "content": "seen"},
    )
    assert (second.run_id, second.turn, second.idempotency_key) == ("r", 2, "r:2")
    assert (second.model, second.max_tokens, second.tools) == ("m", 99, (tool,))
    assert (tool.requests[0].call_id, dict(tool.requests[0].arguments)) == ("1", {"at": "x"})


@pytest.mark.parametrize(
    ("wanted", "default", "chosen"), [("", "", "cheap"), ("", "dear", "dear"), ("plain", "dear", "plain")]
)
def test_the_provider_is_the_request_s_then_the_default_then_the_one_of_lowest_priority(
    wanted: str, default: str, chosen: str
) -> None:
    """Contract 2: per-request selection, then the configured default, then what providers declare."""
    providers = {
        "plain": ScriptedProvider(["plain"]),
        "dear": ScriptedProvider(["dear"], priority=200),
        "cheap": ScriptedProvider(["cheap"], priority=10),
    }
    assert Agent(providers=providers, default_provider=default).run("Go.", provider=wanted).answer == chosen


def test_without_priorities_the_first_provider_answers() -> None:
    """Contract 2: list(providers.keys())[0]."""
    providers = {"b": ScriptedProvider(["b"]), "a": ScriptedProvider(["a"])}
    assert Agent(providers=providers).run("Go.").answer == "b"


@pytest.mark.parametrize(
    ("providers", "wanted", "error", "message"),
    [
        ({}, "", NoProviderError, "no provider is available: give the agent one"),
        ({"a": ScriptedProvider([])}, "x", UnknownProviderError, "there is no provider 'x'; there are: a"),
    ],
)
def test_no_fitting_provider_is_an_error_between_the_markers(
    providers: Mapping[str, Any], wanted: str, error: type[Exception], message: str
) -> None:
    """The choices are listed, and the run is bracketed all the same."""
    told: list[str] = []
    agent = Agent(providers=providers)
    agent.bus.subscribe(lambda record: told.append(record.event.name))
    with pytest.raises(error) as caught:
        agent.run("Go.", provider=wanted)
    assert str(caught.value) == message
    assert told == ["execution:start", "isolation:established", "orchestrator:complete", "execution:end"]


@pytest.mark.parametrize("iterations", [None, 0, -1, True, 1.5])
def test_the_iteration_limit_is_always_finite(iterations: Any) -> None:
    """Contract 2, prevent infinite loops: it cannot be switched off."""
    with pytest.raises(ValueError, match="iterations must be a whole number from 1"):
        AgentLimits(iterations=iterations)


def test_retries_stay_in_the_turn_and_keep_the_key(names: Names) -> None:
    """A call that failed in passing is made again under the same key, each retry told before its wait."""
    busy = ProviderCallError("busy", is_retryable=True, usage=Usage(input_tokens=7, output_tokens=0))
    provider = ScriptedProvider([busy, busy, "At last."])
    report = Agent(providers={"p": provider}, retries=RetryPolicy(retries=2, first_wait=0.0)).run("Go.", run_id="r")
    assert (report.turns, [request.idempotency_key for request in provider.requests]) == (1, ["r:1"] * 3)
    assert names(report.records)[3:7] == ["turn:started", "provider:retry", "provider:retry", "turn:answered"]
    assert report.usage.input_tokens >= 14


def test_a_conversation_goes_on_over_runs(well_formed: Callable[[Any], None]) -> None:
    """A transcript that is given is gone on with, and stays whole."""
    transcript = MemoryTranscript()
    agent = Agent(providers={"p": ScriptedProvider([CALL, "One."])}, tools=[ScriptedTool("look")])
    agent.run("First.", transcript=transcript)
    other = ScriptedProvider(["Two."])
    report = Agent(providers={"p": other}).run("Second.", transcript=transcript)
    assert [message["role"] for message in transcript.messages] == [
        *("user", "assistant", "tool", "assistant"),
        *("user", "assistant"),
    ]
    assert (other.requests[0].messages, report.answer) == (tuple(transcript.messages[:-1]), "Two.")
    well_formed(transcript.messages)


def test_empty_answers_are_sent_back_twice_and_then_taken(names: Names) -> None:
    """Two empty answers in a row are counted and answered with a reminder; the third is the answer."""
    provider = ScriptedProvider([Reply(), Reply(blocks=({"type": "thinking", "thinking": "hm"},)), Reply()])
    report = Agent(providers={"p": provider}).run("Go.")
    assert (report.status, report.answer, report.turns) == ("completed", "", 3)
    assert names(report.records).count("turn:ended") == 2
    assert [len(request.messages) for request in provider.requests] == [1, 2, 2]
    assert report.messages[-1]["content"] == [{"type": "text", "text": "(The model gave no answer.)"}]


def test_what_is_recorded_of_a_request_is_what_was_sent() -> None:
    """The intent holds every message of the request, and the budget's reservation for it."""
    provider = ScriptedProvider(["Yes."])
    report = Agent(providers={"p": provider}, budget=Budget(tokens=10_000), clock=ManualClock()).run("Go.")
    started = next(record.event for record in report.records if isinstance(record.event, TurnStarted))
    assert [json.loads(blob.text or "") for blob in started.messages] == list(provider.requests[0].messages)
    assert started.reservation.output_tokens == provider.requests[0].max_tokens
