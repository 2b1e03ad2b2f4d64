"""What hooks answer, as decisions."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.amplifier.answers import Wish, action_of, changes, refusal, wishes
from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.payloads import payload_of
from orchestrator_events.agent import AnswerProposed, PromptSubmit, ProviderRequest, ProviderResponse, ToolPost, ToolPre
from orchestrator_events.decision import Deny, Modify
from orchestrator_events.event import Gate

PRE = ToolPre(turn=1, call_id="c1", tool_name="t", tool_input='{"a":1}')
POST = ToolPost(turn=1, call_id="c1", tool_name="t", tool_input="{}", is_success=False, output="no")
REQUEST = ProviderRequest(
    turn=1, provider="p", model="m", messages=('{"role":"user","content":"x"}',), max_tokens=None, key="k"
)
RESPONSE = ProviderResponse(turn=1, provider="p", reply='{"content":[],"tool_calls":[]}')


def change(gate: Gate, data: Any) -> object:
    """What changed data comes to at a gate."""
    return changes(gate, payload_of(gate, "r1", Exchange()), {"action": "continue", "data": data})


@pytest.mark.parametrize(
    ("result", "action"),
    [
        (None, "continue"),
        ({"action": "deny"}, "deny"),
        ({"action": 3}, ""),
        ({"action": "Deny"}, ""),
        ({}, ""),
        (object(), ""),
    ],
)
def test_the_action_of_an_answer(result: object, action: str) -> None:
    """Nothing at all is a yes; what is no action is none."""
    assert action_of(result) == action


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ({"action": "deny", "reason": "because"}, "because"),
        ({"action": "deny"}, "denied by a hook at tool:pre"),
        ([1], "a hook answered [1] at tool:pre: return a HookResult"),
    ],
)
def test_a_refusal_has_a_reason(result: object, reason: str) -> None:
    """The hook's own, or one that says where it came from."""
    assert refusal(result, "tool:pre") == Deny(reason)


@pytest.mark.parametrize(
    ("gate", "data", "expected"),
    [
        (PRE, {"tool_input": {"a": 2}}, Modify({"tool_input": '{"a":2}'})),
        (PRE, {"tool_input": {"a": 1}, "timestamp": "now"}, None),
        (PRE, {}, None),
        (PRE, None, None),
        (PRE, {"tool_name": "u"}, Modify({"tool_name": "u"})),
        (POST, {"result": {"success": True, "output": "yes"}}, Modify({"is_success": True, "output": "yes"})),
        (POST, {"tool_result": "just text"}, Modify({"output": "just text"})),
        (POST, {"tool_result": {"output": [1]}}, Modify({"is_success": False, "output": "[1]"})),
        (REQUEST, {"model": "n", "max_tokens": 5}, Modify({"model": "n", "max_tokens": 5})),
        (REQUEST, {"messages": []}, Modify({"messages": ()})),
        (REQUEST, {"messages": [{"role": "user", "content": "x"}]}, None),
        (RESPONSE, {"response": {"content": "y"}}, Modify({"reply": '{"content":"y"}'})),
        (RESPONSE, {"usage": {"input_tokens": 9}}, None),
        (PromptSubmit(prompt="a"), {"prompt": "b"}, Modify({"prompt": "b"})),
        (AnswerProposed(turn=1, answer="a"), {"answer": "b"}, None),
    ],
)
def test_changed_data_is_a_modification(gate: Gate, data: Any, expected: object) -> None:
    """Values are compared; what the registry stamps into the data, and what does not count, is none."""
    assert change(gate, data) == expected


@pytest.mark.parametrize(
    ("gate", "data"),
    [
        (PRE, [1]),
        (PRE, {"tool_input": "rm"}),
        (REQUEST, {"messages": "all of them"}),
        (REQUEST, {"messages": ["a"]}),
        (RESPONSE, {"response": "yes"}),
        (PromptSubmit(prompt="a"), {"prompt": None}),
    ],
)
def test_a_change_to_what_cannot_be_is_a_denial(gate: Gate, data: Any) -> None:
    """It lets nothing through, and says what is wrong."""
    assert isinstance(change(gate, data), Deny)


def test_injections_are_taken_from_the_list_or_from_the_single_fields() -> None:
    """An unknown role becomes system; only an ephemeral one can be appended; empty ones are none."""
    several = {
        "context_injection": "joined",
        "context_injections": [
            {"content": "a", "role": "user", "hook_name": "h"},
            {"content": "", "role": "user"},
            {"content": "b", "role": "root", "ephemeral": True, "append_to_last_tool_result": True},
            {"content": "c", "append_to_last_tool_result": True},
        ],
    }
    single = {"context_injection": "x", "context_injection_role": "assistant", "ephemeral": True}
    assert wishes(several) == (
        Wish("a", "user", is_ephemeral=False, is_appended=False, hook_name="h"),
        Wish("b", "system", is_ephemeral=True, is_appended=True, hook_name="hook"),
        Wish("c", "system", is_ephemeral=False, is_appended=False, hook_name="hook"),
    )
    assert wishes(single) == (Wish("x", "assistant", is_ephemeral=True, is_appended=False, hook_name="hook"),)
    assert wishes({"action": "inject_context"}) == ()
