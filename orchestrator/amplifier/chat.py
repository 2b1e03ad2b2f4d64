"""Our requests and answers as Amplifier's ChatRequest and ChatResponse."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.agent.ports import Block, Message, Reply, Tool, ToolCall, TurnRequest
from orchestrator.amplifier.awaiting import awaited
from orchestrator.amplifier.plainness import field_of, is_model, plain, plain_object, plain_text
from orchestrator.jsondata import JSON
from orchestrator_events.budget import Usage

if TYPE_CHECKING:
    from amplifier_core.message_models import ChatRequest

__all__ = ["UnusableMessageError", "chat_request", "reply_of", "usage_fields"]

ROLES = ("system", "developer", "user", "assistant", "function", "tool")


class UnusableMessageError(ValueError):
    """A message of the context is none that a provider can be sent; `index` and `role` say which."""

    def __init__(self, index: int, role: object, reason: str) -> None:
        super().__init__(f"message {index} of the context (role {role!r}) cannot be sent: {reason}")
        self.index = index
        self.role = role


def chat_request(request: TurnRequest) -> ChatRequest:
    """A turn's request as the kernel's; raises UnusableMessageError for a message without a role to send it under."""
    from amplifier_core.message_models import ChatRequest

    fields: dict[str, Any] = {
        **request.parameters,
        "messages": [chat_message(index, message) for index, message in enumerate(request.messages)],
        "tools": [tool_spec(tool) for tool in request.tools] or None,
    }
    if request.model:
        fields["model"] = request.model
    if request.max_tokens is not None:
        fields["max_output_tokens"] = request.max_tokens
    return ChatRequest(**fields)


def chat_message(index: int, message: Message) -> Any:
    """One message as the kernel's, its content repaired where it is not what a message may hold."""
    from amplifier_core.message_models import Message as ChatMessage
    from pydantic import ValidationError

    fields = dict(message)
    if fields.get("role") not in ROLES:
        raise UnusableMessageError(index, fields.get("role"), f"its role is none of {', '.join(ROLES)}")
    try:
        return ChatMessage(**fields)
    except ValidationError:
        fields["content"] = repaired(fields.get("content"))
    for name, kind in (("name", str), ("tool_call_id", str), ("metadata", dict)):
        if not isinstance(fields.get(name), kind):
            fields.pop(name, None)
    try:
        return ChatMessage(**fields)
    except ValidationError as error:
        raise UnusableMessageError(index, fields["role"], str(error)) from error


def repaired(content: JSON) -> JSON:
    """Content that a message may hold: text, or blocks of which those that are none became text."""
    if content is None:
        return ""
    if isinstance(content, list):
        return [block if is_block(block) else {"type": "text", "text": as_text(block)} for block in content]
    return as_text(content)


def is_block(block: JSON) -> bool:
    """Whether the kernel takes it as a block of content."""
    from amplifier_core.message_models import Message as ChatMessage
    from pydantic import ValidationError

    try:
        ChatMessage(role="user", content=[block])
    except ValidationError:
        return False
    return True


def as_text(value: JSON) -> str:
    """What stands for data where a text is needed."""
    if isinstance(value, dict) and isinstance(value.get("text"), str):
        return str(value["text"])
    return value if isinstance(value, str) else json.dumps(value)


def tool_spec(tool: Tool) -> Any:
    """A tool as the model is offered it; what a tool of the kernel wants sent natively goes with it."""
    from amplifier_core.message_models import ToolSpec

    native = plain_object(getattr(tool, "native", None))
    return ToolSpec(**{**native, "name": tool.name, "description": tool.description, "parameters": dict(tool.schema)})


async def reply_of(provider: object, response: object) -> Reply:
    """A provider's answer as the engine takes it; whatever the provider leaves out is left out."""
    usage = field_of(response, "usage")
    finish_reason = field_of(response, "finish_reason")
    return Reply(
        blocks=blocks_of(response if isinstance(response, str) else field_of(response, "content")),
        calls=tuple(call_of(call) for call in await calls_of(provider, response)),
        usage=usage_of(usage),
        finish_reason=finish_reason if isinstance(finish_reason, str) else "",
        metadata=plain_object(field_of(response, "metadata")),
    )


def blocks_of(content: object) -> tuple[Block, ...]:
    """The blocks of an answer's content, which may be a text, a list, or nothing."""
    if content is None:
        return ()
    if isinstance(content, Sequence) and not isinstance(content, str | bytes):
        return tuple(block_of(block) for block in content)
    return (block_of(content),) if content else ()


def block_of(block: object) -> Block:
    """One block as an object with a type; what says of itself nothing but a text is one of text."""
    fields = plain(block)
    if isinstance(fields, dict) and isinstance(fields.get("type"), str):
        return {name: value for name, value in fields.items() if value is not None}
    if isinstance(fields, dict) or not isinstance(block, str):
        text = field_of(block, "text")
        return {"type": "text", "text": plain_text(text) if isinstance(text, str) else as_text(fields)}
    return {"type": "text", "text": plain_text(block)}


async def calls_of(provider: object, response: object) -> Sequence[object]:
    """The tool calls of an answer: stated, else as the provider parses them, else as its blocks say."""
    stated = listed(field_of(response, "tool_calls"))
    parse = getattr(provider, "parse_tool_calls", None)
    if stated:
        return stated
    if callable(parse):
        return listed(await awaited(parse(response)))
    return [block for block in listed(field_of(response, "content")) if field_of(block, "type") == "tool_call"]


def listed(value: object) -> Sequence[object]:
    """A list that is one; empty for anything else, a mock's attribute for one."""
    return value if isinstance(value, list | tuple) else ()


def call_of(call: object) -> ToolCall:
    """One tool call; arguments that came as JSON text are decoded, what is no object is the engine's to refuse."""
    arguments = field_of(call, "arguments")
    if arguments is None:
        arguments = field_of(call, "input")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments or "{}")
        except ValueError:
            arguments = plain_text(arguments)
    name = field_of(call, "name") or field_of(call, "tool")
    identity = field_of(call, "id")
    return ToolCall(
        id=plain_text(str(identity)) if identity else "",
        tool=plain_text(str(name)) if name else "",
        arguments={} if arguments is None else plain(arguments),
    )


def usage_of(usage: object) -> Usage | None:
    """What the call used; None where the provider does not say."""
    counts = {name: count_of(field_of(usage, name)) for name in ("input_tokens", "output_tokens")}
    money = money_of(field_of(usage, "cost_usd"))
    if money is None and all(count is None for count in counts.values()):
        return None
    return Usage(**counts, money_micro=money)


def usage_fields(response: object) -> Mapping[str, JSON] | None:
    """What the provider reports of a call, whole, for the hooks; None where it reports nothing."""
    usage = field_of(response, "usage")
    return plain_object(usage) if isinstance(usage, Mapping) or is_model(usage) else None


def count_of(value: object) -> int | None:
    """A number of tokens; None for what is none."""
    return value if type(value) is int and value >= 0 else None


def money_of(value: object) -> int | None:
    """Millionths of a dollar, rounded up so that no cost is nothing; None for what is no amount."""
    from decimal import ROUND_CEILING, Decimal

    if not isinstance(value, Decimal) or not value.is_finite() or value < 0:
        return None
    return int((value * 1_000_000).to_integral_value(ROUND_CEILING))
