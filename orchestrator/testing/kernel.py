"""Parts of an Amplifier session for tests: a provider with a script, a tool from a function, a context in a list.

Needs the extra `amplifier`; not exported from `orchestrator.testing`, which does without.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from inspect import isawaitable
from types import ModuleType
from typing import Any

import attrs

from orchestrator.jsondata import JSON

__all__ = [
    "AnsweringHooks",
    "FunctionTool",
    "KernelHost",
    "ListContext",
    "ScriptedChat",
    "as_module",
    "calling",
    "kernel_host",
    "saying",
]


@attrs.define(eq=False)
class ListContext:
    """A context manager of the kernel that keeps every message and compacts nothing."""

    messages: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])
    readers: list[object] = attrs.Factory(list[object])
    """The provider of every request that read the messages."""

    async def add_message(self, message: dict[str, Any]) -> None:
        """One more message."""
        self.messages.append(dict(message))

    async def get_messages_for_request(
        self,
        token_budget: int | None = None,  # noqa: ARG002 -- the kernel's signature
        provider: object = None,
    ) -> list[dict[str, Any]]:
        """All messages."""
        self.readers.append(provider)
        return [dict(message) for message in self.messages]

    async def get_messages(self) -> list[dict[str, Any]]:
        """All messages."""
        return list(self.messages)

    async def set_messages(self, messages: list[dict[str, Any]]) -> None:
        """Other messages."""
        self.messages = list(messages)

    async def clear(self) -> None:
        """No messages."""
        self.messages.clear()


@attrs.define(eq=False)
class ScriptedChat:
    """A provider of the kernel that gives its first call the first answer, and so on; then says `done`.

    An answer is a text, an exception to raise, a ChatResponse, or a callable that makes one from the request.
    """

    answers: tuple[Any, ...] = attrs.field(default=(), converter=tuple[Any, ...])
    name: str = "scripted"
    priority: int | None = None
    requests: list[Any] = attrs.Factory(list[Any])
    """The ChatRequests so far."""

    def get_info(self) -> Any:
        """What the kernel wants to know of a provider."""
        from amplifier_core.models import ProviderInfo

        return ProviderInfo(id=self.name, display_name=self.name)

    async def list_models(self) -> list[Any]:
        """None."""
        return []

    async def complete(self, request: Any, **_options: Any) -> Any:
        """The next answer."""
        self.requests.append(request)
        number = len(self.requests)
        answer = self.answers[number - 1] if number <= len(self.answers) else "done"
        if callable(answer) and not isinstance(answer, type):
            answer = answer(request)
            answer = await answer if isawaitable(answer) else answer
        if isinstance(answer, BaseException):
            raise answer
        return saying(answer) if isinstance(answer, str) else answer

    def parse_tool_calls(self, response: Any) -> list[Any]:
        """The tool calls that the answer states."""
        return list(response.tool_calls or ())


def saying(text: str) -> Any:
    """An answer of one text, ten tokens in and five out."""
    from amplifier_core.message_models import ChatResponse, TextBlock

    return ChatResponse(content=[TextBlock(text=text)], usage=used(), finish_reason="stop")


def calling(*calls: tuple[str, str, Mapping[str, JSON]], text: str = "") -> Any:
    """An answer that asks for tools: each call its id, the tool's name and the arguments."""
    from amplifier_core.message_models import ChatResponse, TextBlock, ToolCall, ToolCallBlock

    blocks = [ToolCallBlock(id=identity, name=name, input=dict(arguments)) for identity, name, arguments in calls]
    stated = [ToolCall(id=identity, name=name, arguments=dict(arguments)) for identity, name, arguments in calls]
    said = [TextBlock(text=text)] if text else []
    return ChatResponse(content=[*said, *blocks], tool_calls=stated, usage=used(), finish_reason="tool_calls")


def used() -> Any:
    """Ten tokens in and five out."""
    from amplifier_core.message_models import Usage

    return Usage(input_tokens=10, output_tokens=5, total_tokens=15)


@attrs.define(eq=False)
class FunctionTool:
    """A tool of the kernel made of a function of its arguments, plain or async."""

    name: str
    function: Callable[[dict[str, Any]], Awaitable[Any] | Any]
    description: str = "Does what the test needs."
    input_schema: dict[str, Any] = attrs.Factory(lambda: {"type": "object", "properties": {}})
    inputs: list[dict[str, Any]] = attrs.Factory(list[dict[str, Any]])
    """The arguments of every execution so far."""

    async def execute(self, input: dict[str, Any]) -> Any:  # noqa: A002 -- the kernel's signature
        """What the function returns."""
        self.inputs.append(input)
        result = self.function(input)
        return await result if isawaitable(result) else result


@attrs.define(eq=False)
class AnsweringHooks:
    """A hook registry that is none: records every event, and answers those it has an answer for.

    An answer is anything, or a callable that makes it from the payload; the first use of a list takes its first.
    """

    answers: dict[str, Any] = attrs.Factory(dict[str, Any])
    events: list[tuple[str, dict[str, Any]]] = attrs.Factory(list[tuple[str, dict[str, Any]]])

    async def emit(self, event: str, data: dict[str, Any]) -> Any:
        """Record the event; the answer to it."""
        self.events.append((event, dict(data)))
        answer = self.answers.get(event)
        if isinstance(answer, list):
            answer = answer.pop(0) if answer else None
        return answer(data) if callable(answer) else answer

    @property
    def names(self) -> list[str]:
        """Names of the events, in order."""
        return [name for name, _ in self.events]

    def payloads(self, event: str) -> list[dict[str, Any]]:
        """What every event of one name carried, in order."""
        return [data for name, data in self.events if name == event]


@contextmanager
def as_module(module_id: str, mount: Callable[..., Awaitable[Any]]) -> Iterator[str]:
    """Within the block, the kernel finds a module of this id, as if a package of its own were installed."""
    name = f"amplifier_module_{module_id.replace('-', '_')}"
    module = ModuleType(name)
    module.__dict__["mount"] = mount
    sys.modules[name] = module
    try:
        yield module_id
    finally:
        sys.modules.pop(name, None)


@attrs.define(eq=False)
class KernelHost:
    """A session of the real kernel with parts of a test, and what its hooks heard."""

    session: Any
    context: ListContext
    heard: list[tuple[str, dict[str, Any]]] = attrs.Factory(list[tuple[str, dict[str, Any]]])

    @property
    def coordinator(self) -> Any:
        """The session's coordinator."""
        return self.session.coordinator

    @property
    def names(self) -> list[str]:
        """Names of the events that were heard, in order."""
        return [name for name, _ in self.heard]

    def payloads(self, event: str) -> list[dict[str, Any]]:
        """What every event of one name carried, in order."""
        return [data for name, data in self.heard if name == event]

    def hook(self, event: str, handler: Callable[..., Any], *, name: str = "test", priority: int = 0) -> None:
        """Register a hook of the test's own."""
        self.coordinator.hooks.register(event, handler, priority=priority, name=name)

    def answer(self, event: str, *results: Any, name: str = "test") -> None:
        """Register a hook that gives these results, one an event, and then a plain yes."""
        from amplifier_core.models import HookResult

        left = list(results)

        async def give(_event: str, _data: dict[str, Any]) -> Any:
            return left.pop(0) if left else HookResult(action="continue")

        self.hook(event, give, name=name)

    async def listen(self, events: Iterable[str]) -> None:
        """Hear these events, before any other hook does."""
        from amplifier_core.models import HookResult

        async def hear(event: str, data: dict[str, Any]) -> Any:
            self.heard.append((event, data))
            return HookResult(action="continue")

        for event in events:
            self.hook(event, hear, name="listener", priority=-1_000)


@asynccontextmanager
async def kernel_host(
    kind: type[Any],
    *,
    config: Mapping[str, JSON] | None = None,
    providers: Sequence[Any] = (),
    tools: Sequence[Any] = (),
    context: Any = None,
    plan: Mapping[str, JSON] | None = None,
    approval_system: Any = None,
    display_system: Any = None,
) -> AsyncIterator[KernelHost]:
    """A session of a mount plan with our orchestrator and these parts.

    `kind` is one of the kernel's two session classes; `plan` is what the plan says besides.
    """
    from amplifier_core.events import ALL_EVENTS

    from orchestrator.amplifier.names import MODULE_ID, custom_events

    held = ListContext() if context is None else context

    async def mount_context(coordinator: Any, _config: object) -> None:
        await coordinator.mount("context", held)

    async def mount_parts(coordinator: Any, _config: object) -> None:
        for provider in providers:
            await coordinator.mount("providers", provider, name=provider.name)
        for tool in tools:
            await coordinator.mount("tools", tool, name=tool.name)

    with as_module("context-list", mount_context), as_module("tool-parts", mount_parts):
        stated = dict(plan or {})
        ours = {"module": MODULE_ID, "config": dict(config or {})}
        stated["session"] = {"orchestrator": ours, "context": "context-list", **stated.get("session", {})}
        stated["tools"] = [{"module": "tool-parts"}]
        made = kind(stated, approval_system=approval_system, display_system=display_system)
        await made.initialize()
        host = KernelHost(made, held)
        await host.listen([*ALL_EVENTS, *custom_events()])
        try:
            yield host
        finally:
            await made.cleanup()
