"""What gates' subscribers add to what the model reads: for one request, or for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.agent.invocation import Invocation
from orchestrator.agent.messages import WrittenMessage
from orchestrator.agent.plainjson import clean
from orchestrator.agent.ports import Message
from orchestrator_events.agent import ContextInjected
from orchestrator_events.blob import Blob
from orchestrator_events.decision import Inject, Ruling
from orchestrator_events.event import Gate

__all__ = ["ROLES", "remind", "take_injections", "with_injections"]

ROLES = frozenset({"system", "developer", "user", "assistant"})
"""Roles that an injection may have; another one becomes system."""


def take_injections(it: Invocation, gate: Gate, ruling: Ruling) -> None:
    """Record each injection with its own role; the run's fold has them wait for their place."""
    sources = [taken.subscriber for taken in ruling.taken if taken.action == "inject"]
    for number, injection in enumerate(ruling.injections):
        source = sources[number] if number < len(sources) else ""
        it.fire(injected(gate.name, source, injection))


def injected(gate: str, source: str, injection: Inject) -> ContextInjected:
    """The record of one injection."""
    return ContextInjected(
        gate=gate,
        source=clean(source),
        role=injection.role if injection.role in ROLES else "system",
        text=Blob(clean(injection.text)),
        is_ephemeral=injection.is_ephemeral,
        is_appended=injection.is_appended,
    )


def remind(it: Invocation, text: str) -> None:
    """Have the next request, and no other, carry a word of the engine's."""
    it.fire(ContextInjected(gate="", source=it.parts.name, role="user", text=Blob(text), is_ephemeral=True))


def with_injections(
    it: Invocation, messages: Iterable[WrittenMessage], injections: Iterable[ContextInjected]
) -> list[WrittenMessage]:
    """The messages of one request with the injections that it carries, in order."""
    made, written = list(messages), it.writing.written
    for each in injections:
        text = each.text.text or ""
        position = last_result(made) if each.is_appended else None
        if position is None:
            made.append(written({"role": each.role, "content": text}))
        else:
            made[position] = written(with_more(made[position].message, text))
    return made


def last_result(messages: Sequence[WrittenMessage]) -> int | None:
    """Where the last tool result is, unless an answer came after it."""
    for position in range(len(messages) - 1, -1, -1):
        role = messages[position].message.get("role")
        if role == "tool":
            return position
        if role == "assistant":
            return None
    return None


def with_more(message: Message, text: str) -> Message:
    """The message with a text at its end."""
    content = message.get("content")
    if isinstance(content, list):
        return {**message, "content": [*content, {"type": "text", "text": text}]}
    return {**message, "content": f"{content or ''}\n\n{text}".lstrip("\n")}
