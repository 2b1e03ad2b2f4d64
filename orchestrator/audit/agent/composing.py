"""How a request is put together of recorded messages and injections: the rule itself, apart from the engine's code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from orchestrator.agent.ports import Message
from orchestrator_events.agent import ContextInjected

__all__ = ["CLOSING_REMINDER", "CUT_SHORT", "GREEN", "composed"]

CLOSING_REMINDER: Final = (
    "The limit of {limit} is reached: this is your last turn, and no tool is left. "
    "Answer now with what you have, and say what is unfinished."
)
"""What the one call without tools ends with."""
CUT_SHORT: Final = "The run reached its limit of {} before it was finished."
"""The answer of a run that a limit ended before the model had said a word."""
GREEN: Final = "Done: {} of {} cases pass."
"""The answer of a run that a green verification ended before the model had said a word."""


def composed(messages: Sequence[Message], injections: Iterable[ContextInjected]) -> list[Message]:
    """The messages with what one request carries beside them; what is appended ends the last tool's result."""
    made = list(messages)
    for each in injections:
        text = each.text.data.decode()
        position = last_result(made) if each.is_appended else None
        if position is None:
            made.append({"role": each.role, "content": text})
            continue
        content = made[position].get("content")
        if isinstance(content, list):
            made[position] = {**made[position], "content": [*content, {"type": "text", "text": text}]}
        else:
            made[position] = {**made[position], "content": f"{content or ''}\n\n{text}".lstrip("\n")}
    return made


def last_result(messages: Sequence[Message]) -> int | None:
    """Where the last tool result is, unless an answer came after it."""
    for position in range(len(messages) - 1, -1, -1):
        role = messages[position].get("role")
        if role in {"tool", "assistant"}:
            return position if role == "tool" else None
    return None
