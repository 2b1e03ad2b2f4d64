"""Contract 2, "Event Emission" and "Observability": names, keys, brackets and the contribution, on the real kernel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.amplifier import MODULE_ID, ConformanceLoop
from orchestrator.amplifier.names import FACTS, GATES, LIVES, custom_events, kernel_events
from orchestrator.testing.kernel import (
    AnsweringHooks,
    FunctionTool,
    KernelHost,
    ListContext,
    ScriptedChat,
    calling,
    kernel_host,
)

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")
kernel_names = pytest.importorskip("amplifier_core.events")
session_module = pytest.importorskip("amplifier_core.session")

BOTH_KERNELS = pytest.mark.parametrize(
    "kind", [session_module.AmplifierSession, core.AmplifierSession], ids=["python", "rust"]
)
ASKS = calling(("c1", "echo", {"a": 1}), text="Let me see.")


def echo() -> FunctionTool:
    """A tool that says what it was given."""
    return FunctionTool("echo", lambda given: core.ToolResult(success=True, output=given))


def constantly(result: Any) -> Callable[[dict[str, Any]], Any]:
    """A function of a tool's arguments that always gives this."""
    return lambda _given: result


def broken() -> FunctionTool:
    """A tool that raises."""

    def execute(_given: dict[str, Any]) -> None:
        raise OSError("disk full")

    return FunctionTool("broken", execute)


def heard(kind: type[Any], **parts: Any) -> KernelHost:
    """What the hooks of a real session heard of one prompt."""

    async def scenario() -> KernelHost:
        async with kernel_host(kind, **parts) as host:
            await host.session.execute("Go.")
            return host

    return asyncio.run(scenario())


def test_our_wire_names_are_the_kernels_constants() -> None:
    """Use the constants rather than string literals; an event we name as the kernel does is the kernel's."""
    renamed = {"approval:requested": "approval:required"}
    assert {name: renamed.get(event.name, event.name) for event, name in kernel_events().items()} == {
        name: name for name in kernel_events().values()
    }
    known = set(kernel_names.ALL_EVENTS)
    assert set(kernel_events().values()) <= known
    assert [
        event.name for event in (*GATES, *LIVES, *FACTS) if event.name in known and event not in kernel_events()
    ] == []


@BOTH_KERNELS
def test_every_execution_is_bracketed(kind: type[Any]) -> None:
    """execution:start at the very beginning, execution:end at the end, orchestrator:complete once before it."""
    host = heard(kind, providers=[ScriptedChat([ASKS, "Done."])], tools=[echo()])
    inside = [name for name in host.names if not name.startswith("session:")]
    assert (inside[0], inside[-2:]) == ("execution:start", ["orchestrator:complete", "execution:end"])
    assert [inside.count(name) for name in (inside[0], *inside[-2:])] == [1, 1, 1]
    (start,), (complete,), (end,) = (host.payloads(name) for name in (inside[0], *inside[-2:]))
    assert start["prompt"] == "Go."
    assert (complete["orchestrator"], complete["turn_count"], complete["status"]) == (MODULE_ID, 2, "success")
    assert (end["response"], end["status"]) == ("Done.", "completed")


@BOTH_KERNELS
def test_standard_events_carry_the_keys_of_the_contract(kind: type[Any]) -> None:
    """provider:request, provider:response, tool:pre and tool:post; the last also with the key that loops send."""
    host = heard(kind, providers=[ScriptedChat([ASKS, "Done."])], tools=[echo()], config={"model": "m1"})
    request, response = host.payloads("provider:request")[0], host.payloads("provider:response")[0]
    (pre,), (post,) = host.payloads("tool:pre"), host.payloads("tool:post")
    assert (request["provider"], request["messages"], request["model"]) == (
        "scripted",
        [{"role": "user", "content": "Go."}],
        "m1",
    )
    usage = response["usage"]
    assert (response["provider"], usage["input_tokens"], usage["output_tokens"], usage["total_tokens"]) == (
        "scripted",
        10,
        5,
        15,
    )
    assert response["response"]["content"][0] == {"type": "text", "text": "Let me see."}
    assert (pre["tool_name"], pre["tool_input"], pre["tool_call_id"]) == ("echo", {"a": 1}, "c1")
    result = {"success": True, "output": {"a": 1}, "error": None}
    assert (post["tool_name"], post["tool_input"], post["tool_result"], post["result"]) == (
        "echo",
        {"a": 1},
        result,
        result,
    )


@BOTH_KERNELS
def test_tool_error_is_emitted_for_a_tool_that_raises_and_for_one_that_is_not_there(kind: type[Any]) -> None:
    """The loop goes on, and the model reads what went wrong."""
    provider = ScriptedChat([calling(("c1", "broken", {}), ("c2", "missing", {})), "Done."])
    host = heard(kind, providers=[provider], tools=[broken()])
    told = {event["tool_call_id"]: (event["tool_name"], event["error"]) for event in host.payloads("tool:error")}
    assert told["c1"] == ("broken", {"type": "OSError", "msg": "disk full"})
    assert told["c2"][0] == "missing"
    answers = {
        message["tool_call_id"]: message["content"] for message in host.context.messages if message["role"] == "tool"
    }
    assert ("disk full" in answers["c1"], "missing" in answers["c2"]) == (True, True)


@BOTH_KERNELS
def test_content_blocks_and_thinking_are_told(kind: type[Any]) -> None:
    """Each block its start and its end, in order, with the block as plain data; thinking once more, whole."""
    models = core.message_models
    blocks = [models.ThinkingBlock(thinking="Hm.", signature="s"), models.TextBlock(text="Done.")]
    host = heard(kind, providers=[ScriptedChat([core.ChatResponse(content=blocks)])])
    names = [name for name in host.names if name.startswith(("content_block", "thinking"))]
    ends = [
        (event["block_index"], event["total_blocks"], event["block"]) for event in host.payloads("content_block:end")
    ]
    assert names == [
        "content_block:start",
        "thinking:final",
        "content_block:end",
        "content_block:start",
        "content_block:end",
    ]
    assert ends == [
        (0, 2, {"type": "thinking", "thinking": "Hm.", "signature": "s"}),
        (1, 2, {"type": "text", "text": "Done."}),
    ]


@BOTH_KERNELS
def test_prompt_submit_and_prompt_complete_frame_the_prompt(kind: type[Any]) -> None:
    """The kernel has names for both; it is the orchestrator that emits them."""
    host = heard(kind, providers=[ScriptedChat(["x" * 300])])
    (submitted,), (complete,) = host.payloads("prompt:submit"), host.payloads("prompt:complete")
    assert (submitted["prompt"], complete["response_preview"], complete["length"]) == ("Go.", "x" * 200, 300)


@BOTH_KERNELS
def test_our_own_events_are_contributed(kind: type[Any]) -> None:
    """Orchestrators MUST register the custom events they emit via the observability.events channel."""

    async def scenario() -> list[Any]:
        async with kernel_host(kind, providers=[ScriptedChat()]) as host:
            found: list[Any] = await host.coordinator.collect_contributions("observability.events")
            return found

    assert asyncio.run(scenario()) == [custom_events()]


def test_no_standard_event_is_contributed() -> None:
    """The standard events are the kernel's and need not be registered; only what is unique to the module is."""
    assert [name for name in custom_events() if name in kernel_names.ALL_EVENTS] == []


def test_every_custom_event_that_is_emitted_was_contributed() -> None:
    """Whatever way a prompt goes: nothing undeclared reaches a hook."""
    emitted: set[str] = set()
    for hooks in every_way():
        emitted |= set(hooks.names)
    assert emitted - set(kernel_names.ALL_EVENTS) - set(custom_events()) == set()


def test_every_contributed_event_is_emitted_on_some_way() -> None:
    """Nothing is declared that cannot happen, but for failures of a subscriber and of the engine itself."""
    emitted: set[str] = set()
    for hooks in every_way():
        emitted |= set(hooks.names)
    rare = {"subscriber:failed", "execution:failed", f"{MODULE_ID}:injection_dropped"}
    assert set(custom_events()) - emitted - rare == set()


def every_way() -> list[AnsweringHooks]:
    """What raw hooks heard on ways that between them bring up every event."""
    inject = core.HookResult(action="inject_context", context_injection="Mind the gap.")
    writes = [calling((f"w{turn}", "write_file", {"path": "a", "content": str(turn)})) for turn in (1, 2)]
    write_file = FunctionTool("write_file", lambda _: core.ToolResult(success=True, output="written"))
    verify = FunctionTool("verify_progress", lambda _: core.ToolResult(success=True, output={"passed": 1, "total": 2}))
    greedy = ASKS.model_copy(update={"usage": core.Usage(input_tokens=10, output_tokens=500, total_tokens=510)})
    ways: list[tuple[dict[str, Any], list[Any], list[Any], dict[str, Any]]] = [
        ({}, [ASKS, "Done."], [echo(), broken()], {"tool:post": [inject]}),
        ({"max_iterations": 1}, [ASKS, "Closing."], [echo()], {}),
        ({"tokens": 200}, [greedy, "More."], [echo()], {}),
        ({}, [core.ProviderUnavailableError("down"), "Done."], [], {}),
        ({}, [core.InvalidRequestError("no")], [], {}),
        ({}, [ASKS, "Done."], [echo()], {"tool:pre": [core.HookResult(action="deny", reason="no")]}),
        ({}, ["Done."], [], {"prompt:submit": core.HookResult(action="deny", reason="no")}),
        ({}, ["Done."], [], {"prompt:submit": core.HookResult(action="ask_user", approval_prompt="ok?")}),
        ({"harness": {"auto_verify": True}}, [*writes, "Done."], [write_file, verify], {}),
        ({"harness": {"rules": ["overwrite"], "auto_verify": False}}, [*writes, "Done."], [write_file], {}),
    ]
    return [way(*each) for each in ways]


def way(config: dict[str, Any], answers: list[Any], tools: list[Any], hook_answers: dict[str, Any]) -> AnsweringHooks:
    """One prompt with raw hooks, however it ends."""
    hooks = AnsweringHooks(dict(hook_answers))
    config = {"retries": {"first_wait": 0.001}, **config}
    loop, providers = ConformanceLoop(config), {"p": ScriptedChat(answers)}
    mounted = {tool.name: tool for tool in tools}

    async def scenario() -> None:
        try:
            await loop.execute("Go.", ListContext(), providers, mounted, hooks)
        except core.LLMError:
            return

    asyncio.run(scenario())
    return hooks


@BOTH_KERNELS
def test_payloads_are_plain_whatever_a_tool_returns(kind: type[Any]) -> None:
    """The registry refuses NaN, lone surrogates and cycles with an error; none of them gets there."""
    cycle: list[Any] = []
    cycle.append(cycle)
    strange = {"nan": float("nan"), "bytes": b"\xff", "set": {1}, "text": "\ud800", "cycle": cycle, "object": object()}
    provider = ScriptedChat([ASKS, "Done."])
    host = heard(kind, providers=[provider], tools=[FunctionTool("echo", lambda _: strange)])
    (post,) = host.payloads("tool:post")
    output = post["tool_result"]["output"]
    assert (output["nan"], output["set"], sorted(output)) == ("nan", [1], sorted(strange))
    assert json.dumps(host.heard, allow_nan=False).encode()


@BOTH_KERNELS
def test_the_tools_own_serialization_is_what_the_model_reads(kind: type[Any]) -> None:
    """`get_serialized_output` is respected: JSON for structured output, control characters taken out."""
    outputs = {
        "json": core.ToolResult(success=True, output={"b": [1]}),
        "text": core.ToolResult(success=True, output="a\x00b"),
        "nothing": core.ToolResult(success=True),
        "image": core.ToolResult(success=True, output="a chart", content=[core.TextBlock(text="more")]),
        "failed": core.ToolResult(success=False, error={"message": "no such file"}),
    }
    tools = [FunctionTool(name, constantly(result)) for name, result in outputs.items()]
    provider = ScriptedChat([calling(*((name, name, {}) for name in outputs)), "Done."])
    host = heard(kind, providers=[provider], tools=tools)
    read = {message["name"]: message["content"] for message in host.context.messages if message["role"] == "tool"}
    assert read == {name: result.get_serialized_output() for name, result in outputs.items()}
