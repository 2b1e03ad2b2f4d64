"""What a conversation costs: each message is written and hashed once, sent as recorded, and nobody can change it."""

from __future__ import annotations

import copy
import json
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

import attrs
import pytest

from orchestrator.agent import (
    Agent,
    AgentLimits,
    MemoryTranscript,
    Message,
    Provider,
    Reply,
    ToolCall,
    Transcript,
    TurnRequest,
)
from orchestrator.agent.messages import Writing
from orchestrator.agent.plainjson import written
from orchestrator.agent.readonly import read_only
from orchestrator.redaction import Secrets
from orchestrator.testing import ScriptedProvider, ScriptedTool
from orchestrator_events.agent import MessageAdded, TurnStarted

MESSAGE = {"role": "assistant", "content": [{"type": "text", "text": "é"}], "tool_calls": [], "metadata": {"a": None}}
FEW, MANY = 10, 80
KEY = "sk-3fa85f64"


def agent(turns: int, secrets: Secrets | None = None) -> Agent:
    """An agent that looks in every turn but the last, in which it answers."""
    asked = [ToolCall(id=str(turn), tool="look", arguments={"at": turn}) for turn in range(1, turns)]
    return Agent(
        providers={"p": ScriptedProvider([*([call] for call in asked), "Done."])},
        tools=[ScriptedTool("look", ["seen"])],
        limits=AgentLimits(iterations=turns),
        secrets=secrets,
    )


def calls_a_turn(turns: int, secrets: Secrets | None, transcript: Callable[[], Transcript | None]) -> float:
    """Python functions that a run calls for each of its turns: a count, so that no machine's load is in it."""
    made, conversation, count = agent(turns, secrets), transcript(), 0

    def counted(_: FrameType, event: str, __: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        made.run(f"Go: {KEY}.", transcript=conversation)
    finally:
        sys.setprofile(None)
    return count / turns


@pytest.mark.parametrize("transcript", [lambda: None, MemoryTranscript], ids=["own", "host"])
@pytest.mark.parametrize("secrets", [None, Secrets({"key": KEY}), Secrets({"other": KEY[::-1]})], ids=repr)
def test_a_turn_costs_the_same_however_long_the_conversation_is(
    secrets: Secrets | None, transcript: Callable[[], Transcript | None]
) -> None:
    """Late turns call no more functions than early ones: no earlier message is converted, written or searched again."""
    calls_a_turn(FEW, secrets, transcript)  # what is made once for the process
    few, many = calls_a_turn(FEW, secrets, transcript), calls_a_turn(MANY, secrets, transcript)
    assert many <= few, f"{few:.0f} calls a turn of {FEW}, {many:.0f} of {MANY}"


@pytest.mark.parametrize("transcript", [None, MemoryTranscript()], ids=["own", "host"])
def test_a_message_with_a_secret_is_cleansed_once_and_never_sent_or_recorded(transcript: Transcript | None) -> None:
    """All records share the one blob of what is left of it; a host's own transcript keeps what it was given."""
    made = agent(3, Secrets({"key": KEY}))
    report = made.run(f"Go: {KEY}.", transcript=transcript)
    (provider,) = made.providers.values()
    assert isinstance(provider, ScriptedProvider)
    assert [request.messages[0]["content"] for request in provider.requests] == ["Go: [redacted key]."] * 3
    blobs = [record.event.messages[0] for record in report.records if isinstance(record.event, TurnStarted)]
    added = next(record.event.message for record in report.records if isinstance(record.event, MessageAdded))
    assert [blob is added for blob in blobs] == [True] * 3


def test_a_message_is_one_blob_in_every_record() -> None:
    """The record that added a message and all that sent it share one blob, which is hashed once."""
    events = [record.event for record in agent(4).run("Go.").records]
    added = [event.message for event in events if isinstance(event, MessageAdded)]
    turns = [event.messages for event in events if isinstance(event, TurnStarted)]
    assert [[any(blob is one for one in added) for blob in blobs] for blobs in turns] == [
        [True] * 1, [True] * 3, [True] * 5, [True] * 7
    ]  # fmt: skip


@attrs.define(eq=False)
class Meddler:
    """A provider that changes the messages it is sent."""

    name: str = "meddler"

    async def complete(self, request: TurnRequest) -> Reply:
        """Change the first one."""
        assert isinstance(request.messages[0], dict)
        request.messages[0]["content"] = "Something else."
        raise AssertionError("unreachable")


def test_a_provider_cannot_change_what_is_sent_again() -> None:
    """The messages of a request are read-only: a provider that changes one is told at once to take a copy."""
    provider: Provider = Meddler()
    with pytest.raises(TypeError, match="change a copy"):
        Agent(providers={"p": provider}).run("Go.")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.update(role="user"),
        lambda data: data.pop("role"),
        lambda data: data.__ior__({"role": "user"}),
        lambda data: data.__delitem__("role"),
        lambda data: data["metadata"].setdefault("b", 1),
        lambda data: data["content"].append("more"),
        lambda data: data["content"].__setitem__(0, "other"),
        lambda data: data["content"].__iadd__(["more"]),
        lambda data: data["content"][0].clear(),
    ],
)
def test_read_only_data_is_read_only_to_its_leaves(change: Any) -> None:
    """Whatever would change it raises TypeError and changes nothing."""
    data = read_only(MESSAGE)
    with pytest.raises(TypeError, match="cannot be changed"):
        change(data)
    assert data == MESSAGE


def test_read_only_data_is_data_like_any_other() -> None:
    """It is a dict of lists and dicts, JSON of the same text, and its copies can be changed."""
    data = read_only(MESSAGE)
    copied = copy.deepcopy(data)
    copied["content"][0]["text"] = "other"
    assert (isinstance(data, dict), json.dumps(data), type(copy.copy(data)), type(copied["content"]), data) == (
        True, json.dumps(MESSAGE), dict, list, MESSAGE
    )  # fmt: skip


@pytest.mark.parametrize(
    "message",
    [MESSAGE, {"role": "user", "content": float("nan")}, {1: (2, {3})}, {"role": "\ud800"}, {"n": 2**70}, "no object"],
)
def test_a_message_is_found_again_by_its_text(message: Any) -> None:
    """Other objects with the same text are the same written message, with the text that records have."""
    writing = Writing()
    one, other = writing.written(message), writing.written(copy.deepcopy(message))
    assert (one is other, one.text, one.blob.text) == (True, written(message), written(message))


@attrs.define(eq=False)
class Revising(MemoryTranscript):
    """A host's transcript that changes an old message in place, as compaction does."""

    async def for_request(self, provider: Provider) -> Sequence[Message]:
        """All of it, the first message shortened once there are more."""
        if len(self.messages) > 1:
            assert isinstance(self.messages[0], dict)
            self.messages[0]["content"] = "(shortened)"
        return await super().for_request(provider)


def test_a_host_that_changes_a_message_in_place_has_it_sent_as_it_is_now() -> None:
    """Messages are known by their text and not as objects; earlier requests stay as they were."""
    made = agent(2)
    made.run("A long prompt.", transcript=Revising())
    provider = made.providers["p"]
    assert isinstance(provider, ScriptedProvider)
    assert [request.messages[0]["content"] for request in provider.requests] == ["A long prompt.", "(shortened)"]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ("1", 1),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([1], (1,)),
        (None, "null"),
        (b"a", bytearray(b"b")),
        (b"a", memoryview(b"a")),
        (OrderedDict(a=1), OrderedDict(a=True)),
        (float("nan"), float("inf")),
    ],
)
def test_what_a_host_puts_in_the_place_of_another_is_seen_however_alike_they_are(before: object, after: object) -> None:
    """Each time a conversation gives what writing its messages one by one gives, of equal values too."""
    writing, message = Writing(), {"role": "user", "content": before}
    conversations = []
    for content in (before, before, after, after, before):
        message["content"] = content
        conversations.append(([dict(message)], [each.text for each in writing.conversation(iter([message, message]))]))
    assert [texts for _, texts in conversations] == [[written(made)] * 2 for (made,), _ in conversations]


def test_a_host_conversation_is_written_whatever_is_in_it() -> None:
    """Objects, cycles, lone surrogates and deep nesting become what they become when written one by one."""
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(3_000):
        deep = [deep]
    messages = [MESSAGE, {"content": object}, {"content": cycle}, {"content": "\ud800"}, {"content": deep}, None, 7]
    writing = Writing()
    for some in (messages, messages[:4], messages[:1], messages[3:4]):
        assert [each.text for each in writing.conversation(some)] == [written(each) for each in some]
