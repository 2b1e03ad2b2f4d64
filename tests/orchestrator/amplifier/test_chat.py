"""Requests and answers between the agent and a provider of the kernel."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.agent.ports import Message, Reply, ToolCall, TurnRequest
from orchestrator.amplifier.chat import UnusableMessageError, chat_request, reply_of
from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.providers import KernelProvider
from orchestrator.amplifier.tools import tools_of
from orchestrator.testing.kernel import ScriptedChat
from orchestrator_events.budget import Usage

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")


def request(*messages: Message, **fields: Any) -> TurnRequest:
    """A request with these messages."""
    stated: dict[str, Any] = {
        "run_id": "r1",
        "turn": 1,
        "tools": (),
        "model": "",
        "parameters": {},
        "max_tokens": None,
        "seconds": None,
        "idempotency_key": "k1",
        **fields,
    }
    return TurnRequest(messages=messages, **stated)


def reply(response: object, provider: object = None) -> Reply:
    """An answer as the engine takes it."""
    return asyncio.run(reply_of(provider, response))


def test_messages_go_over_with_all_they_carry() -> None:
    """Tool calls and metadata are kept, for a provider that needs them back."""
    calls = [{"id": "c1", "tool": "t", "arguments": {"a": None}}]
    message: Message = {"role": "assistant", "content": [], "tool_calls": calls, "metadata": {"state": "x"}}
    (made,) = chat_request(request(message)).messages
    assert made.model_dump(exclude_none=True) == {**message}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, ""),
        (42, "42"),
        ({"text": "a"}, "a"),
        ([{"type": "text", "text": "a"}, "b", {"type": "unheard of", "text": "c"}], ["a", "b", "c"]),
    ],
)
def test_content_that_is_none_is_repaired(content: Any, expected: Any) -> None:
    """A context may hold what a provider cannot be sent; text stays text."""
    (made,) = chat_request(request({"role": "user", "content": content})).messages
    assert (made.content if isinstance(made.content, str) else [block.text for block in made.content]) == expected


def test_a_message_without_a_role_is_an_error_that_names_it() -> None:
    """There is no telling who said it."""
    with pytest.raises(UnusableMessageError, match=r"message 1 of the context \(role 'robot'\) cannot be sent"):
        chat_request(request({"role": "user", "content": ""}, {"role": "robot", "content": ""}))


def test_parameters_model_and_tokens_have_their_fields() -> None:
    """What the request model does not know goes along as an extra."""
    made = chat_request(request(model="m", max_tokens=7, parameters={"temperature": 0.5, "extended_thinking": True}))
    assert made.model_dump(exclude_none=True) == {
        "messages": [],
        "stream": False,
        "model": "m",
        "max_output_tokens": 7,
        "temperature": 0.5,
        "extended_thinking": True,
    }


def test_a_tool_without_a_schema_takes_any_object_and_a_native_one_says_so() -> None:
    """Both are offered."""
    bare = SimpleNamespace(execute=str)
    native = SimpleNamespace(description="Looks.", native_tool_spec={"type": "web_search", "name": "other"})
    tools = tools_of({"bare": bare, "n": native}, Exchange())
    specs = [spec.model_dump(exclude_none=True) for spec in chat_request(request(tools=tools)).tools or []]
    schema = {"type": "object", "properties": {}}
    assert specs == [
        {"name": "bare", "parameters": schema, "description": ""},
        {"name": "n", "parameters": schema, "description": "Looks.", "type": "web_search"},
    ]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("Hello.", "Hello."),
        (None, ""),
        ([{"type": "text", "text": "a"}, "b", SimpleNamespace(text="c")], "a\n\nb\n\nc"),
        ([{"type": "thinking", "thinking": "Hm."}, {"type": "text", "text": "a"}], "a"),
    ],
)
def test_whatever_content_an_answer_has_its_text_is_found(content: Any, text: str) -> None:
    """A text, blocks of any make, or nothing; thinking is no text."""
    assert reply(SimpleNamespace(content=content)).text == text


@pytest.mark.parametrize(
    "stated",
    [
        core.ToolCall(id="c1", name="t", arguments={"a": 1}),
        {"id": "c1", "name": "t", "arguments": '{"a": 1}'},
        {"id": "c1", "tool": "t", "input": {"a": 1}},
    ],
)
def test_tool_calls_are_taken_in_every_shape_providers_use(stated: Any) -> None:
    """Stated on the answer, parsed by the provider, or as blocks of the content."""
    call = ToolCall(id="c1", tool="t", arguments={"a": 1})
    block = {"type": "tool_call", **(stated if isinstance(stated, dict) else stated.model_dump())}
    parser = SimpleNamespace(parse_tool_calls=lambda _: [stated])
    found = [
        reply(SimpleNamespace(content="", tool_calls=[stated])).calls,
        reply(SimpleNamespace(content=""), parser).calls,
        reply(SimpleNamespace(content=[block])).calls,
    ]
    assert found == [(call,)] * 3


@pytest.mark.parametrize(("arguments", "taken"), [(None, {}), ("", {}), ("not json", "not json"), ([1], [1])])
def test_arguments_that_are_no_object_are_passed_on_for_refusal(arguments: Any, taken: Any) -> None:
    """None at all are no arguments; the rest the engine answers as a failed call."""
    (call,) = reply(SimpleNamespace(tool_calls=[{"id": "c", "name": "t", "arguments": arguments}])).calls
    assert call.arguments == taken


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, None),
        ({"input_tokens": 3, "output_tokens": "many"}, Usage(input_tokens=3)),
        ({"input_tokens": -1, "output_tokens": True}, None),
        (
            core.Usage(input_tokens=1, output_tokens=2, total_tokens=3, cost_usd=Decimal("0.0000015")),
            Usage(input_tokens=1, output_tokens=2, money_micro=2),
        ),
        ({"cost_usd": Decimal("NaN")}, None),
    ],
)
def test_usage_is_what_was_reported_and_nothing_else(usage: Any, expected: Usage | None) -> None:
    """Nonsense counts as not reported; a cost is rounded up."""
    assert reply(SimpleNamespace(content="", usage=usage)).usage == expected


@pytest.mark.parametrize(
    ("provider", "priority"),
    [
        (ScriptedChat(priority=7), 7),
        (SimpleNamespace(config={"priority": 3}), 3),
        (SimpleNamespace(priority=True), 100),
        (SimpleNamespace(), 100),
    ],
)
def test_a_providers_priority_is_declared_by_itself_or_in_its_config(provider: Any, priority: int) -> None:
    """100 where it says nothing."""
    assert KernelProvider("p", provider, Exchange()).priority == priority
