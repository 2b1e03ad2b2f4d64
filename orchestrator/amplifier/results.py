"""What a tool of Amplifier returns, as the text that the model reads and the data that nobody parses back."""

from __future__ import annotations

import json

from orchestrator.agent.ports import ToolOutcome
from orchestrator.amplifier.plainness import field_of, plain, plain_text
from orchestrator.jsondata import JSON

__all__ = ["outcome_of", "result_fields", "result_text"]


def outcome_of(result: object) -> ToolOutcome:
    """A ToolResult as the engine takes it; whatever else a tool returns is a success with that output."""
    if is_tool_result(result):
        is_success, output = field_of(result, "success") is True, serialized(result)
        return ToolOutcome(is_success=is_success, output=output, data=plain(field_of(result, "output")))
    output = plain(result)
    return ToolOutcome(is_success=True, output=result_text({"output": output}), data=output)


def result_fields(result: object) -> dict[str, JSON]:
    """The fields of a result as hooks are shown them."""
    if not is_tool_result(result):
        return {"success": True, "output": plain(result), "error": None}
    fields = {name: plain(field_of(result, name)) for name in ("output", "error", "content")}
    if fields["content"] is None:
        del fields["content"]
    return {"success": field_of(result, "success") is True, **fields}


def result_text(result: dict[str, JSON]) -> str:
    """The fields of a result as the kernel's ToolResult would serialize them."""
    output = result.get("output")
    if isinstance(output, dict | list):
        return json.dumps(output)
    if output is not None:
        return plain_text(str(output))
    error = result.get("error")
    if result.get("success", True):
        return "Success"
    message = error.get("message", "Unknown error") if isinstance(error, dict) else "Failed"
    return f"Error: {message}"


def serialized(result: object) -> str:
    """The result's own serialization; ours where it has none, or fails on what is no JSON.

    A result that has nothing but rich content is read by its texts: the kernel's serialization leaves them out.
    """
    fields = result_fields(result)
    rich = texts_of(fields.get("content"))
    if rich and fields["output"] is None:
        return rich
    serialize = field_of(result, "get_serialized_output")
    try:
        text = serialize() if callable(serialize) else None
    except Exception:  # noqa: BLE001 -- the kernel's raises for objects that are no JSON
        text = None
    return plain_text(text) if isinstance(text, str) else result_text(fields)


def texts_of(content: JSON) -> str:
    """The texts of rich content; an image, which the agent's transcript has no place for, is said to be one."""
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    return "\n\n".join(str(block.get("text") or f"({block.get('type')})") for block in blocks)


def is_tool_result(result: object) -> bool:
    """Whether it is a ToolResult, or a mapping or an object that says of itself whether it succeeded."""
    return isinstance(field_of(result, "success"), bool)
