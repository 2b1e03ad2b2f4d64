"""The loop with parts that are not quite the kernel's."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.amplifier import ConformanceLoop
from orchestrator.testing.kernel import AnsweringHooks, FunctionTool, ListContext, ScriptedChat, calling

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")


def test_parts_without_a_single_coroutine_will_do() -> None:
    """Hooks, provider, tool, context and coordinator of plain functions."""
    stored: list[dict[str, Any]] = []
    answers = [calling(("c1", "t", {})), "Ok."]
    note = SimpleNamespace(action="inject_context", context_injection="x", context_injection_role="user")
    context = SimpleNamespace(add_message=stored.append, get_messages_for_request=lambda **_: list(stored))
    provider = SimpleNamespace(complete=lambda _request: answers.pop(0) if len(answers) > 1 else "Fine.")
    hooks = SimpleNamespace(emit=lambda name, _data: note if name == "tool:post" else None)
    processed: list[str] = []
    coordinator = SimpleNamespace(process_hook_result=lambda _result, event, _name: processed.append(event))
    execution = ConformanceLoop().execute(
        "Go.", context, {"p": provider}, {"t": SimpleNamespace(execute=str)}, hooks, coordinator=coordinator
    )
    assert asyncio.run(execution) == "Fine."
    assert ([message["role"] for message in stored[:3]], processed) == (["user", "assistant", "tool"], ["tool:post"])


def test_closing_a_stream_early_cancels_the_execution_in_order() -> None:
    """The tool is interrupted, the transcript is whole, and the brackets are closed."""

    async def scenario() -> tuple[AnsweringHooks, ListContext]:
        async def hang(_given: dict[str, Any]) -> None:
            await asyncio.Event().wait()

        hooks, context = AnsweringHooks(), ListContext()
        provider, tools = ScriptedChat([calling(("c1", "hang", {}))]), {"hang": FunctionTool("hang", hang)}
        stream = ConformanceLoop().stream("Go.", context, {"p": provider}, tools, hooks)
        async for event in stream:
            if getattr(event, "name", "") == "action:started":
                break
        await stream.aclose()
        return hooks, context

    hooks, context = asyncio.run(scenario())
    assert hooks.names[-2:] == ["orchestrator:complete", "execution:end"]
    assert hooks.payloads("execution:end")[0]["status"] == "cancelled"
    assert [message["role"] for message in context.messages] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("hook_answers", "said"),
    [({"prompt:submit": {"action": "deny", "reason": "no"}}, "Operation denied: no"), ({}, "Fine.")],
)
def test_a_stream_ends_with_what_execute_returns(hook_answers: dict[str, Any], said: str) -> None:
    """A denial, too, is said in words."""

    async def scenario() -> list[Any]:
        hooks = AnsweringHooks(hook_answers)
        stream = ConformanceLoop().stream("Go.", ListContext(), {"p": ScriptedChat(["Fine."])}, {}, hooks)
        return [event async for event in stream]

    assert asyncio.run(scenario())[-1] == said


def test_a_harness_of_the_mount_plan_holds() -> None:
    """An automatic verification follows a write; the model reads it, and nothing of it costs a turn."""
    written = calling(("w1", "write_file", {"path": "a", "content": "1"}))
    tools = {
        "write_file": FunctionTool("write_file", lambda _: core.ToolResult(output="written")),
        "verify_progress": FunctionTool("verify_progress", lambda _: core.ToolResult(output={"passed": 2, "total": 2})),
    }
    hooks, provider = AnsweringHooks(), ScriptedChat([written, "never asked"])
    loop = ConformanceLoop({"harness": True})
    asyncio.run(loop.execute("Go.", ListContext(), {"p": provider}, tools, hooks))
    (verified,) = hooks.payloads("verification:finished")
    assert (verified["passed"], verified["total"], verified["is_automatic"]) == (2, 2, True)
    assert (len(provider.requests), hooks.payloads("orchestrator:complete")[0]["turn_count"]) == (1, 1)
