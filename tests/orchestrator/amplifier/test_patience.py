"""Hooks of the kernel that never answer: a prompt that is to stop does not wait for them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from orchestrator.agent import patience
from orchestrator.testing.kernel import FunctionTool, KernelHost, ScriptedChat, calling, kernel_host

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")
session_module = pytest.importorskip("amplifier_core.session")

PYTHON, RUST = session_module.AmplifierSession, core.AmplifierSession
GATES = ("prompt:submit", "provider:request", "provider:response", "tool:pre", "tool:post")
TOLD = (
    "execution:start",
    "content_block:start",
    "content_block:end",
    "action:finished",
    "cancel:requested",
    "cancel:completed",
    "orchestrator:complete",
    "execution:end",
)
MARKERS = ["orchestrator:complete", "execution:end"]


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Graces that a test can wait for."""
    monkeypatch.setattr(patience, "HOOK_GRACE_S", 0.05)
    monkeypatch.setattr(patience, "LEAST_S", 0.01)


def stopped(kind: type[Any], name: str, *, is_immediate: bool) -> tuple[str, KernelHost]:
    """What a prompt came to, of which a hook at `name` has the session cancelled and then never answers."""

    async def scenario() -> tuple[str, KernelHost]:
        tool = FunctionTool("echo", lambda given: core.ToolResult(output=given))
        provider = ScriptedChat([calling(("c1", "echo", {}), text="I look."), "Done."])
        async with kernel_host(kind, providers=[provider], tools=[tool]) as host:

            async def hang(_event: str, _data: dict[str, Any]) -> Any:
                await host.coordinator.request_cancel(is_immediate)
                if host.names.count(name) == 1:  # of cancel:completed, the second is the kernel's own
                    await asyncio.Event().wait()

            host.hook(name, hang)
            if name.startswith("cancel:"):
                host.hook("tool:post", lambda *_: host.coordinator.request_cancel(is_immediate))
            async with asyncio.timeout(5):
                return await host.session.execute("Go."), host

    return asyncio.run(scenario())


@pytest.mark.parametrize("is_immediate", [False, True], ids=["graceful", "immediate"])
@pytest.mark.parametrize("name", [*GATES, *TOLD])
def test_a_hook_that_never_answers_holds_up_no_stop(name: str, is_immediate: bool) -> None:
    """Wherever it hangs; the hooks are told of the end, and the transcript closes with an answer."""
    answer, host = stopped(PYTHON, name, is_immediate=is_immediate)
    ours = [each for each in host.names if each not in {"cancel:completed", "session:end"}]
    assert (answer in {"", "Done."}, ours[-2:]) == (True, MARKERS)
    assert not host.context.messages or host.context.messages[-1]["role"] == "assistant"


@pytest.mark.parametrize("name", ["tool:pre", "orchestrator:complete"])
def test_the_other_kernel_as_well(name: str) -> None:
    """Its hooks, too, are left behind."""
    answer, host = stopped(RUST, name, is_immediate=False)
    assert answer in {"", "Done."}
    assert host.names.count("execution:end") == 1
