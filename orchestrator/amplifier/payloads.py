"""What Amplifier's hooks are told with each event: plain JSON objects with at least the contract's keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.plainness import plain_object
from orchestrator.jsondata import JSON
from orchestrator_events import agent as turns
from orchestrator_events import execution
from orchestrator_events.blob import Blob
from orchestrator_events.event import Event

__all__ = ["payload_of", "result_of"]

IN_JSON = frozenset({"block", "input", "message", "parameters", "reply", "tool_input"})
"""Fields that hold JSON as text."""


def payload_of(event: Event, run_id: str, exchange: Exchange) -> dict[str, JSON]:
    """The payload of an event: its own fields, and the kernel's where the kernel names them differently."""
    worded = WORDED.get(type(event))
    fields = as_recorded(event) if worded is None else worded(event, exchange)
    turn = getattr(event, "turn", None)
    if turn is not None:
        fields.setdefault("iteration", turn)
    return {**fields, "run_id": run_id}


def as_recorded(event: Event) -> dict[str, Any]:
    """An event's fields under their own names, texts in full."""
    return {field.name: shown(field.name, getattr(event, field.name)) for field in attrs.fields(type(event))}


def shown(name: str, value: Any) -> Any:
    """One field: a stored text as the text, JSON decoded, a value of ours by its fields."""
    if isinstance(value, Blob):
        return shown(name, value.text)
    if name in IN_JSON and isinstance(value, str):
        return decoded(value)
    if isinstance(value, tuple):
        return [shown(name, item) for item in value]
    if attrs.has(type(value)):
        return {field.name: shown(field.name, getattr(value, field.name)) for field in attrs.fields(type(value))}
    return value


def decoded(text: str) -> JSON:
    """The data in a JSON text; the text itself where it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def result_of(event: turns.ToolPost, exchange: Exchange) -> Mapping[str, JSON]:
    """A tool's result as the tool gave it, where there is one, else as the model would read it."""
    original = exchange.results.get(event.call_id)
    if original is not None:
        return original
    error = None if event.is_success else {"message": event.output}
    return {"success": event.is_success, "output": event.output, "error": error}


def execution_start(event: execution.ExecutionStart, _exchange: Exchange) -> dict[str, Any]:
    """The prompt alone; identity and budget are the journal's."""
    return {"prompt": event.prompt.text}


def provider_request(event: turns.ProviderRequest, _exchange: Exchange) -> dict[str, Any]:
    """The keys of the contract: provider, messages, model."""
    return {
        "provider": event.provider,
        "messages": [decoded(message) for message in event.messages],
        "model": event.model,
        "max_tokens": event.max_tokens,
    }


def provider_response(event: turns.ProviderResponse, exchange: Exchange) -> dict[str, Any]:
    """The keys of the contract, usage as the provider reports it, and whether tools are asked for."""
    response = plain_object(decoded(event.reply))
    usage = exchange.usages.get(event.turn, response.get("usage"))
    return {
        "provider": event.provider,
        "response": response,
        "usage": usage,
        "tool_calls": bool(response.get("tool_calls")),
    }


def provider_error(event: turns.ProviderError, _exchange: Exchange) -> dict[str, Any]:
    """With the error as the other loops word it."""
    return {
        "provider": event.provider,
        "error": {"type": event.error_type, "msg": event.message},
        "retryable": event.is_retryable,
        "status_code": event.status_code,
    }


def turn_started(event: turns.TurnStarted, _exchange: Exchange) -> dict[str, Any]:
    """With the digests of the messages."""
    # The messages were in provider:request; once is enough for a conversation that grows with every turn.
    return {**as_recorded(event), "messages": [blob.digest for blob in event.messages]}


def tool_pre(event: turns.ToolPre, _exchange: Exchange) -> dict[str, Any]:
    """The keys of the contract: tool_name, tool_input."""
    return {
        "tool_name": event.tool_name,
        "tool_input": plain_object(decoded(event.tool_input)),
        "tool_call_id": event.call_id,
    }


def tool_post(event: turns.ToolPost, exchange: Exchange) -> dict[str, Any]:
    """The result under the contract's key and under the one that the other loops send."""
    result = result_of(event, exchange)
    return {
        "tool_name": event.tool_name,
        "tool_input": plain_object(decoded(event.tool_input)),
        "tool_call_id": event.call_id,
        "tool_result": result,
        "result": result,
    }


def tool_error(event: turns.ToolError, _exchange: Exchange) -> dict[str, Any]:
    """With the error as the other loops word it."""
    return {
        "tool_name": event.tool_name,
        "tool_call_id": event.call_id,
        "error": {"type": event.error_type, "msg": event.message.removeprefix(f"{event.error_type}: ")},
    }


def cancel_requested(event: turns.CancelRequested, _exchange: Exchange) -> dict[str, Any]:
    """With the level in the kernel's words."""
    level = "immediate" if event.is_immediate else "graceful"
    return {"level": level, "is_immediate": event.is_immediate, "running_tools": list(event.running)}


WORDED: Mapping[type[Event], Callable[[Any, Exchange], dict[str, Any]]] = {
    execution.ExecutionStart: execution_start,
    turns.ProviderRequest: provider_request,
    turns.ProviderResponse: provider_response,
    turns.ProviderError: provider_error,
    turns.TurnStarted: turn_started,
    turns.ToolPre: tool_pre,
    turns.ToolPost: tool_post,
    turns.ToolError: tool_error,
    turns.CancelRequested: cancel_requested,
}
