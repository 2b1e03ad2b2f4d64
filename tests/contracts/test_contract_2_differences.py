"""Where contract 2's text and the kernel differ: what the kernel does, so that a kernel that changes shows here.

What we do about each is in the README's table, and in the other tests of contract 2.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.amplifier import mount
from orchestrator.testing.kernel import AnsweringHooks, FunctionTool, ListContext, ScriptedChat, calling, kernel_host

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")
kernel_names = pytest.importorskip("amplifier_core.events")
session_module = pytest.importorskip("amplifier_core.session")

README = Path(__file__).parents[2] / "README.md"
ROW = re.compile(r"^\| (?P<topic>[^|]+) \|(?:[^|]+\|){3}$", re.MULTILINE)

Scenario = Callable[[], Awaitable[Any]]
TOPICS: dict[str, str] = {}


def about(topic: str) -> Callable[[Callable[[], None]], Callable[[], None]]:
    """Marks the test of a row of the README's table."""

    def marked(test: Callable[[], None]) -> Callable[[], None]:
        TOPICS[topic] = test.__name__
        return test

    return marked


def came_to(scenario: Scenario) -> Any:
    """What a scenario gives in a loop of its own."""

    async def run() -> Any:
        return await scenario()

    return asyncio.run(run())


def hook(**fields: Any) -> Callable[[str, dict[str, Any]], Awaitable[Any]]:
    """A hook that always gives this result."""

    async def give(_event: str, _data: dict[str, Any]) -> Any:
        return core.HookResult(**fields)

    return give


async def emitted(*hooks: Callable[..., Any], data: dict[str, Any] | None = None) -> Any:
    """What a real registry makes of an event with these hooks."""
    registry = core.HookRegistry()
    for number, each in enumerate(hooks):
        registry.register("tool:pre", each, name=f"hook {number}")
    return await registry.emit("tool:pre", {"a": 1} if data is None else data)


@about("mount point")
def test_the_mount_point() -> None:
    """The contract's mount point is none; ours is."""

    async def scenario() -> object:
        coordinator = core.MockCoordinator()
        with pytest.raises(ValueError, match="Unknown mount point: session"):
            await coordinator.mount("session", object(), name="orchestrator")
        await mount(coordinator, {})
        return coordinator.get("orchestrator")

    assert came_to(scenario) is not None


@about("return of mount")
def test_the_return_of_mount() -> None:
    """The kernel hands whatever mount returns to register_cleanup, which skips what it cannot call."""

    async def scenario() -> list[str]:
        coordinator, called = core.MockCoordinator(), []
        coordinator.register_cleanup(object())
        coordinator.register_cleanup(lambda: called.append("cleaned up"))
        await coordinator.cleanup()
        return called

    assert came_to(scenario) == ["cleaned up"]


@about("modify")
def test_modify() -> None:
    """The registry says continue, with the data changed."""
    result = came_to(lambda: emitted(hook(action="modify", data={"a": 2})))
    assert (result.action, result.data["a"]) == ("continue", 2)


@about("lost changes")
def test_lost_changes() -> None:
    """An injection of another hook drops a modification before anyone could see it."""
    inject = hook(action="inject_context", context_injection="x")
    result = came_to(lambda: emitted(hook(action="modify", data={"a": 2}), inject))
    assert (result.action, result.data) == ("inject_context", None)


@about("several injections")
def test_several_injections() -> None:
    """The single fields hold a joined text under the first role; the list holds each."""
    hooks = [
        hook(action="inject_context", context_injection=text, context_injection_role=role)
        for text, role in (("x", "user"), ("y", "system"))
    ]
    result = came_to(lambda: emitted(*hooks))
    assert (result.context_injection, result.context_injection_role) == ("x\n\ny", "user")
    assert [(each.content, each.role) for each in result.context_injections] == [("x", "user"), ("y", "system")]


@about("injecting")
def test_injecting() -> None:
    """process_hook_result stores a durable injection at once, wherever the conversation is."""

    async def scenario() -> list[str]:
        coordinator, context = core.MockCoordinator(), ListContext()
        await coordinator.mount("context", context)
        note = core.HookResult(action="inject_context", context_injection="x", context_injection_role="user")
        await coordinator.process_hook_result(note, "tool:pre", "hook")
        return [message["content"] for message in context.messages]

    assert came_to(scenario) == ["x"]


@about("too large")
def test_too_large() -> None:
    """process_hook_result raises where session.injection_size_limit is passed."""

    async def scenario() -> None:
        async with kernel_host(core.AmplifierSession, plan={"session": {"injection_size_limit": 3}}) as host:
            note = core.HookResult(action="inject_context", context_injection="xxxx")
            with pytest.raises(ValueError, match="exceeds"):
                await host.coordinator.process_hook_result(note, "tool:pre", "hook")

    came_to(scenario)


@about("ask_user")
def test_ask_user() -> None:
    """The coordinator has no request_approval; process_hook_result answers with continue or deny."""

    async def scenario() -> str:
        async with kernel_host(core.AmplifierSession) as host:
            assert not hasattr(host.coordinator, "request_approval")
            ask = core.HookResult(action="ask_user", approval_prompt="ok?")
            return str((await host.coordinator.process_hook_result(ask, "tool:pre", "hook")).action)

    assert came_to(scenario) == "deny"


@about("tool:post")
def test_tool_post() -> None:
    """Both keys are sent, and are the same."""

    async def scenario() -> dict[str, Any]:
        hooks, provider = AnsweringHooks(), ScriptedChat([calling(("c1", "t", {})), "Ok."])
        coordinator = core.MockCoordinator()
        await mount(coordinator, {})
        tool = FunctionTool("t", lambda _: core.ToolResult(output="x"))
        await coordinator.get("orchestrator").execute("Go.", ListContext(), {"p": provider}, {"t": tool}, hooks)
        return hooks.payloads("tool:post")[0]

    payload = came_to(scenario)
    assert payload["tool_result"] == payload["result"] == {"success": True, "output": "x", "error": None}


@about("payloads")
def test_payloads() -> None:
    """The registry refuses what JSON has no word for, even with no hook to hear it."""
    for refused in (float("nan"), "\ud800"):
        with pytest.raises((RuntimeError, ValueError)):
            came_to(lambda refused=refused: emitted(data={"a": refused}))  # type: ignore[misc]  # a lambda's default


@about("standard events")
def test_standard_events() -> None:
    """The names are the kernel's; a session with another orchestrator emits none of ours."""

    class Silent:
        async def execute(self, **_parts: Any) -> str:
            return "Fine."

    async def scenario() -> list[str]:
        async with kernel_host(core.AmplifierSession, providers=[ScriptedChat()]) as host:
            await host.coordinator.mount("orchestrator", Silent())
            await host.session.execute("Go.")
            return host.names

    assert {"execution:start", "execution:end", "orchestrator:complete"} <= set(kernel_names.ALL_EVENTS)
    assert [name for name in came_to(scenario) if not name.startswith("session:")] == []


@about("facts")
def test_facts() -> None:
    """A hook that would deny or inject at an event of the past changes nothing."""

    async def scenario() -> tuple[str, list[str]]:
        async with kernel_host(core.AmplifierSession, providers=[ScriptedChat(["Fine."])]) as host:
            host.answer("execution:start", core.HookResult(action="deny", reason="too late"))
            host.answer("orchestrator:complete", core.HookResult(action="inject_context", context_injection="x"))
            answer = await host.session.execute("Go.")
            return answer, [message["role"] for message in host.context.messages]

    assert came_to(scenario) == ("Fine.", ["user", "assistant"])


@about("denied elsewhere")
def test_denied_elsewhere() -> None:
    """The registry lets a hook deny any event; what becomes of it is the orchestrator's."""
    result = came_to(lambda: emitted(hook(action="deny", reason="no")))
    assert (result.action, result.reason) == ("deny", "no")


@about("compaction")
def test_compaction() -> None:
    """The protocol of a context has nothing to check or to start compaction with."""
    names = [name for name in vars(core.ContextManager) if not name.startswith("_")]
    assert sorted(names) == ["add_message", "clear", "get_messages", "get_messages_for_request", "set_messages"]


@about("errors")
def test_errors() -> None:
    """The Rust session has a text of what an orchestrator raised, and no cause."""
    error = core.InvalidRequestError("bad")

    async def scenario(kind: type[Any]) -> BaseException:
        async with kernel_host(kind, providers=[ScriptedChat([error])]) as host:
            with pytest.raises(Exception, match="bad") as raised:
                await host.session.execute("Go.")
            return raised.value

    wrapped = came_to(lambda: scenario(core.AmplifierSession))
    assert came_to(lambda: scenario(session_module.AmplifierSession)) is error
    assert (type(wrapped), wrapped.__cause__) == (RuntimeError, None)


@about("cancelling the task")
def test_cancelling_the_task() -> None:
    """The Rust session's caller is free at once, and the orchestrator goes on; a token stops it."""

    async def scenario() -> tuple[bool, bool, str]:
        started, ended = asyncio.Event(), asyncio.Event()

        async def work(_given: dict[str, Any]) -> str:
            started.set()
            await asyncio.Event().wait()
            return "never"

        provider = ScriptedChat([calling(("c1", "work", {}))])
        async with kernel_host(core.AmplifierSession, providers=[provider], tools=[FunctionTool("work", work)]) as host:

            async def note(_event: str, _data: dict[str, Any]) -> Any:
                ended.set()
                return core.HookResult(action="continue")

            host.hook("execution:end", note)
            running = asyncio.ensure_future(host.session.execute("Go."))
            await started.wait()
            running.cancel()
            await asyncio.wait([running])
            was_running = not ended.is_set()
            await host.coordinator.request_cancel(immediate=True)
            await asyncio.wait_for(ended.wait(), 5)
            return running.cancelled(), was_running, host.payloads("execution:end")[0]["status"]

    assert came_to(scenario) == (True, True, "cancelled")


@about("hooks that hang")
def test_hooks_that_hang() -> None:
    """The kernel's registry has no limit of its own; ours is the session's wish to stop, whatever its hooks do."""

    async def scenario() -> tuple[bool, str, list[str]]:
        async with kernel_host(session_module.AmplifierSession, providers=[ScriptedChat()]) as host:

            async def hang(_event: str, _data: dict[str, Any]) -> Any:
                await host.coordinator.request_cancel(immediate=True)
                await asyncio.Event().wait()

            registry = core.HookRegistry()
            registry.register("tool:pre", lambda *_: asyncio.Event().wait(), name="hangs")
            emitting = asyncio.ensure_future(registry.emit("tool:pre", {}))
            done, _ = await asyncio.wait([emitting], timeout=0.05)
            emitting.cancel()
            host.hook("provider:request", hang)
            answer = await asyncio.wait_for(host.session.execute("Go."), 5)
            return bool(done), answer, [name for name in host.names if name.startswith(("orchestrator:", "execution:"))]

    markers = ["execution:start", "execution:cancelled", "orchestrator:complete", "execution:end"]
    assert came_to(scenario) == (False, "", markers)


@about("cancel:completed")
def test_cancel_completed() -> None:
    """Once from us, before execution:end, and once from the kernel, after it."""

    async def scenario() -> list[str]:
        async with kernel_host(core.AmplifierSession, providers=[ScriptedChat()]) as host:
            await host.coordinator.request_cancel()
            await host.session.execute("Go.")
            return [name for name in host.names if name in ("cancel:completed", "execution:end")]

    assert came_to(scenario) == ["cancel:completed", "execution:end", "cancel:completed"]


@about("validation")
def test_validation() -> None:
    """The kernel ships a command and two suites; they are run by tests of their own."""
    shipped = ("orchestrator.py", "behavioral/test_orchestrator.py", "structural/test_orchestrator.py")
    folder = Path(core.__file__).parent / "validation"
    assert [name for name in shipped if not (folder / name).exists()] == []


def test_the_readmes_table_has_a_test_for_every_row() -> None:
    """Neither has what the other lacks, and in the same order."""
    _, found, section = README.read_text().partition("## As an Amplifier module")
    if not found:
        pytest.skip("the README has no section on Amplifier yet")
    section = section.partition("\n## ")[0]
    assert [row["topic"] for row in ROW.finditer(section) if row["topic"].strip("- ")] == list(TOPICS)
