"""What tools have in common: how they read their arguments, and how they say what came of a call."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.jsondata import JSON

__all__ = ["done", "failed", "schema_of", "text_in"]


def schema_of(required: Mapping[str, Mapping[str, JSON]]) -> dict[str, JSON]:
    """The JSON Schema of arguments that must all be there."""
    return {
        "type": "object",
        "properties": {name: dict(schema) for name, schema in required.items()},
        "required": list(required),
        "additionalProperties": False,
    }


def text_in(request: CallRequest, name: str) -> str:
    """A text among the arguments; ValueError, which the model reads, when it is none."""
    value = request.arguments.get(name)
    if not isinstance(value, str):
        raise ValueError(f"the argument {name!r} must be a text, not {type(value).__name__}")  # noqa: TRY004 -- the model's
    return value


def done(output: str, data: JSON = None) -> ToolOutcome:
    """A call that did what was asked."""
    return ToolOutcome(is_success=True, output=output, data=data)


def failed(error: Exception) -> ToolOutcome:
    """A call that could not do it, with the reason."""
    return ToolOutcome(is_success=False, output=str(error))
