"""What a hook answered, as the decisions of a gate. A mock, a dict or nonsense may come instead of a HookResult."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from orchestrator.amplifier.plainness import field_of, plain, plain_text
from orchestrator.amplifier.results import result_text
from orchestrator.jsondata import JSON
from orchestrator_events import agent as turns
from orchestrator_events.decision import Decision, Deny, Modify
from orchestrator_events.event import Gate

__all__ = ["Wish", "action_of", "changes", "refusal", "wishes"]

ACTIONS = frozenset({"continue", "modify", "inject_context", "ask_user", "deny"})
ROLES = frozenset({"system", "user", "assistant"})


@attrs.frozen
class Wish:
    """One text that a hook wants the model to read."""

    text: str
    role: str
    is_ephemeral: bool
    is_appended: bool
    hook_name: str


def action_of(result: object) -> str:
    """What the answer asks for; nothing at all is a plain yes, and an empty text stands for nonsense."""
    if result is None:
        return "continue"
    action = field_of(result, "action")
    return action if isinstance(action, str) and action in ACTIONS else ""


def refusal(result: object, event: str) -> Deny:
    """The denial in an answer, or the one that nonsense is."""
    if action_of(result) == "deny":
        reason = field_of(result, "reason")
        return Deny(plain_text(reason) if isinstance(reason, str) and reason else f"denied by a hook at {event}")
    return Deny(f"a hook answered {plain_text(repr(result))[:80]} at {event}: return a HookResult")


def wishes(result: object) -> tuple[Wish, ...]:
    """Every injection of an answer, in order, each with its own role; the single fields where there is no list."""
    several = field_of(result, "context_injections")
    if isinstance(several, Sequence) and not isinstance(several, str) and several:
        found = [
            wish(each, "content", "role", "append_to_last_tool_result", str(field_of(each, "hook_name") or "hook"))
            for each in several
        ]
    else:
        found = [wish(result, "context_injection", "context_injection_role", "append_to_last_tool_result", "hook")]
    return tuple(each for each in found if each.text)


def wish(source: object, text: str, role: str, appended: str, hook_name: str) -> Wish:
    """One injection; a role that no message has becomes system, the kernel's own default."""
    said, told = field_of(source, text), field_of(source, role)
    is_ephemeral = field_of(source, "ephemeral") is True
    return Wish(
        plain_text(said) if isinstance(said, str) else "",
        told if isinstance(told, str) and told in ROLES else "system",
        is_ephemeral,
        is_ephemeral and field_of(source, appended) is True,
        hook_name,
    )


def changes(gate: Gate, sent: Mapping[str, JSON], result: object) -> Decision | None:
    """The modification in an answer's data; None where nothing that counts was changed.

    The kernel's registry says `continue` of a modification and stamps fields of its own into the data, so it is
    the values that are compared; a raw mock may give back only what it changed.
    """
    data = field_of(result, "data")
    if data is None:
        return None
    if not isinstance(data, Mapping):
        return Deny(f"a hook answered data of type {type(data).__name__} at {gate.name}: return a dict")
    changed = {key: plain(data[key]) for key in sent if key in data}
    changed = {key: value for key, value in changed.items() if value != sent[key]}
    return READERS[type(gate)](changed, sent) if changed else None


def prompt(changed: Mapping[str, JSON], _sent: Mapping[str, JSON]) -> Decision | None:
    """A changed prompt."""
    return modified({"prompt": changed["prompt"]}, str) if "prompt" in changed else None


def request(changed: Mapping[str, JSON], _sent: Mapping[str, JSON]) -> Decision | None:
    """Changed messages, model or max_tokens; another provider is refused where changes are checked."""
    made: dict[str, object] = {key: changed[key] for key in ("provider", "model", "max_tokens") if key in changed}
    if "messages" in changed:
        messages = changed["messages"]
        if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
            return Deny("a hook changed messages at provider:request to what is no list of objects")
        made["messages"] = tuple(written(message) for message in messages)
    return Modify(made) if made else None


def response(changed: Mapping[str, JSON], _sent: Mapping[str, JSON]) -> Decision | None:
    """A changed answer of the model."""
    if "response" not in changed:
        return None
    if not isinstance(changed["response"], dict):
        return Deny("a hook changed response at provider:response to what is no object")
    return Modify({"reply": written(changed["response"])})


def tool_input(changed: Mapping[str, JSON], _sent: Mapping[str, JSON]) -> Decision | None:
    """Changed arguments; another tool is refused where changes are checked."""
    made: dict[str, object] = {"tool_name": changed["tool_name"]} if "tool_name" in changed else {}
    if "tool_input" in changed:
        if not isinstance(changed["tool_input"], dict):
            return Deny("a hook changed tool_input at tool:pre to what is no object")
        made["tool_input"] = written(changed["tool_input"])
    return Modify(made) if made else None


def tool_result(changed: Mapping[str, JSON], sent: Mapping[str, JSON]) -> Decision | None:
    """A changed result, under either of its keys; the first that was changed counts."""
    found = [changed[key] for key in ("tool_result", "result") if key in changed]
    if not found:
        return None
    result = found[0]
    if not isinstance(result, dict):
        return Modify({"output": result_text({"output": result})})
    was = sent["tool_result"]
    is_success = result.get("success", was.get("success") if isinstance(was, dict) else True)
    return Modify({"is_success": is_success is True, "output": result_text(result)})


def unchangeable(_changed: Mapping[str, JSON], _sent: Mapping[str, JSON]) -> Decision | None:
    """Nothing of this gate can be changed."""
    return None


def modified(made: Mapping[str, object], kind: type) -> Decision:
    """The modification, or what is wrong with it."""
    for key, value in made.items():
        if not isinstance(value, kind):
            return Deny(f"a hook changed {key} to a value of type {type(value).__name__}")
    return Modify(made)


def written(value: JSON) -> str:
    """JSON text of plain data, as gates carry it."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)


READERS: Mapping[type[Gate], Callable[[Mapping[str, Any], Mapping[str, Any]], Decision | None]] = {
    turns.PromptSubmit: prompt,
    turns.ProviderRequest: request,
    turns.ProviderResponse: response,
    turns.ToolPre: tool_input,
    turns.ToolPost: tool_result,
    turns.AnswerProposed: unchangeable,
}
