"""What one execution in Amplifier has to remember between its parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

import attrs

from orchestrator.agent.ports import Message
from orchestrator.amplifier.awaiting import awaited
from orchestrator.jsondata import JSON

__all__ = ["Exchange", "Injection"]


@attrs.frozen
class Injection:
    """A text that a hook wants to stay in the conversation, until the engine has come to the place for it."""

    text: str
    role: str
    hook_name: str
    event: str


@attrs.define(eq=False)
class Exchange:
    """One execution's coordinator, and the originals of what the engine sees in its own words."""

    coordinator: Any = None
    """None, or anything that answers `process_hook_result`."""
    durable: list[Injection] = attrs.Factory(list[Injection])
    """Injections that the engine was told of and has not yet added, in order."""
    questions: dict[str, deque[tuple[object, str]]] = attrs.Factory(dict[str, "deque[tuple[object, str]]"])
    """By prompt: the hook results that ask the user, each with the event it came from."""
    usages: dict[int, Mapping[str, JSON]] = attrs.Factory(dict[int, "Mapping[str, JSON]"])
    """By turn: what the provider reported, whole."""
    results: dict[str, Mapping[str, JSON]] = attrs.Factory(dict[str, "Mapping[str, JSON]"])
    """By call: what the tool returned, whole."""

    @property
    def can_process(self) -> bool:
        """Whether there is a coordinator that processes what hooks answer."""
        return callable(getattr(self.coordinator, "process_hook_result", None))

    async def process(self, result: object, event: str, hook_name: str = "hook") -> object:
        """Have the coordinator carry out what a hook answered; raises what it raises."""
        return await awaited(self.coordinator.process_hook_result(result, event, hook_name))

    def take(self, message: Message) -> Injection | None:
        """The injection that is added with this message, which then waits no more; None for any other message."""
        marks = message.get("metadata")
        event = marks.get("event") if isinstance(marks, Mapping) else None
        sought = (message.get("content"), message.get("role"), event)
        for index, each in enumerate(self.durable):
            if (each.text, each.role, each.event) == sought:
                return self.durable.pop(index)
        return None
