"""Putting a tool call to the gate, whoever asks for it."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from orchestrator.agent.answers import Call
from orchestrator.agent.injecting import take_injections
from orchestrator.agent.invocation import Invocation
from orchestrator.agent.plainjson import clean, read_object, written
from orchestrator.harness.decisions import Denial
from orchestrator.jsondata import JSON
from orchestrator_events.agent import ToolPre
from orchestrator_events.decision import DecisionTaken

__all__ = ["Admission", "admitted"]


@attrs.frozen(kw_only=True)
class Admission:
    """What the gate's subscribers said of a call."""

    arguments: Mapping[str, JSON]
    """As they changed them."""
    text: str
    """The same as JSON text."""
    taken: tuple[DecisionTaken, ...]
    denial: Denial | None = None


async def admitted(it: Invocation, call: Call) -> Admission:
    """Put a call to the gate."""
    gate = ToolPre(turn=it.run.turn, call_id=call.id, tool_name=call.tool, tool_input=written(call.arguments))
    ruling = await it.asked(gate)
    take_injections(it, gate, ruling)
    if ruling.deny is not None:
        source = next((each.subscriber for each in ruling.taken if each.action == "deny"), "approval")
        denial = Denial(clean(source), clean(ruling.deny.reason))
        return Admission(arguments=call.arguments, text=gate.tool_input, taken=ruling.taken, denial=denial)
    changed = ruling.changes.get("tool_input")
    if changed is None:
        return Admission(arguments=call.arguments, text=gate.tool_input, taken=ruling.taken)
    try:
        arguments = read_object(str(changed))
    except ValueError as error:
        denial = Denial("tool:pre", f"a subscriber changed the input into what is no object: {error}")
        return Admission(arguments={}, text="{}", taken=ruling.taken, denial=denial)
    return Admission(arguments=arguments, text=written(arguments), taken=ruling.taken)
