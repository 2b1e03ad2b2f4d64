"""An agent's events in words."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from orchestrator.narration import charged, decided, held, joined
from orchestrator_events.agent import (
    ActionDenied,
    ActionFinished,
    ActionStarted,
    ContextInjected,
    MessageAdded,
    TurnAnswered,
    TurnStarted,
    VerificationFinished,
)

__all__ = ["TOLD"]


def added(event: MessageAdded) -> str:
    """Who says what."""
    source = "" if event.origin in {event.role, "model"} else f" ({event.origin})"
    try:
        message = json.loads(event.message.data.decode())
    except (ValueError, RecursionError):
        return f"{event.role}{source}: no message"
    content = message.get("content") if isinstance(message, dict) else ""
    blocks = content if isinstance(content, list) else [{"text": content}]
    texts = [str(block.get("text") or block.get("type") or "") for block in blocks if isinstance(block, dict)]
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    named = [str(call.get("tool")) for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return f"{event.role}{source}: " + joined(
        " ".join(filter(None, texts)), f"asks for {', '.join(named)}" if named else ""
    )


def injected(event: ContextInjected) -> str:
    """Who adds what."""
    span = "for one request" if event.is_ephemeral else "for good"
    return f"{event.source or 'a subscriber'} adds as {event.role}, {span}: {event.text.data.decode()}"


def begun(event: TurnStarted) -> str:
    """Who is asked, and what is held for it."""
    asked = "/".join(filter(None, (event.provider, event.model)))
    last = ", the last one, without tools" if event.is_closing else ""
    messages = f"{len(event.messages)} messages"
    return joined(
        f"turn {event.turn}{last}: {asked} reads {messages}, held {held(event.reservation)}", *decided(event.decisions)
    )


def answered(event: TurnAnswered) -> str:
    """What kind of answer came, and what it cost."""
    kind = "asks for tools" if event.wants_tools else "answers"
    return joined(f"turn {event.turn} {kind}, charged {charged(event.charge)}", *decided(event.decisions))


def acted(event: ActionStarted) -> str:
    """What is run."""
    mark = "[AUTO] " if event.is_automatic else ""
    return joined(f"{mark}{event.tool} {event.input.data.decode()}", *decided(event.decisions))


def refused(event: ActionDenied) -> str:
    """What is not, and why."""
    instead = f"instead: {event.suggestion}" if event.suggestion else ""
    return joined(f"{event.tool} is denied by {event.rule}: {event.reason}", instead)


def finished(event: ActionFinished) -> str:
    """What came of it."""
    return joined(f"{event.tool} {event.outcome}: {event.output.data.decode()}", *decided(event.decisions))


def verified(event: VerificationFinished) -> str:
    """How far the work has come."""
    mark = "[AUTO] " if event.is_automatic else ""
    if event.error:
        return f"{mark}no verdict: {event.error}"
    failing = ", ".join(case.id for case in event.failing)
    return joined(f"{mark}{event.passed} of {event.total} cases passed", f"failing: {failing}" if failing else "")


TOLD: Final[Mapping[str, Callable[[Any], str]]] = MappingProxyType(
    {
        "message:added": added,
        "context:injected": injected,
        "turn:started": begun,
        "turn:answered": answered,
        "turn:abandoned": lambda event: f"turn {event.turn}, charged {charged(event.charge)}: {event.reason}",
        "turn:ended": lambda event: event.reason,
        "provider:retry": lambda event: f"retry {event.retry} after {event.wait_us / 1_000_000:g} s: {event.reason}",
        "provider:error": lambda event: f"{event.provider}: {event.error_type}: {event.message}",
        "action:started": acted,
        "action:denied": refused,
        "action:finished": finished,
        "tool:error": lambda event: f"{event.tool_name}: {event.error_type}: {event.message}",
        "harness:warned": lambda event: event.warnings,
        "verification:finished": verified,
        "answer:given": lambda event: joined(event.answer.data.decode(), *decided(event.decisions)),
        "prompt:complete": lambda event: f"answered with {event.length} characters",
        "cancel:requested": lambda event: "the host stops it" + (" at once" if event.is_immediate else ""),
        "cancel:completed": lambda event: "stopped" + (", what ran was interrupted" if event.was_immediate else ""),
    }
)
"""What each event says, by its name."""
