"""A tool of Amplifier as a tool of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.amplifier.awaiting import awaited
from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.plainness import field_of, plain_object
from orchestrator.amplifier.results import outcome_of, result_fields
from orchestrator.jsondata import JSON

__all__ = ["KernelTool", "tools_of"]

NO_ARGUMENTS: Mapping[str, JSON] = {"type": "object", "properties": {}}


@attrs.define(eq=False)
class KernelTool:
    """Anything with `execute(input)`, under the name it is mounted by."""

    name: str
    kernel: Any
    exchange: Exchange = attrs.field(repr=False)
    is_idempotent: bool = False
    description: str = attrs.field(init=False)
    schema: Mapping[str, JSON] = attrs.field(init=False)
    """Any arguments, where the tool states nothing of them."""

    def __attrs_post_init__(self) -> None:
        description, schema = field_of(self.kernel, "description"), field_of(self.kernel, "input_schema")
        self.description = description if isinstance(description, str) else ""
        self.schema = plain_object(schema) if isinstance(schema, Mapping) else NO_ARGUMENTS

    @property
    def native(self) -> Mapping[str, JSON]:
        """What a provider is to be sent of it beside the specification."""
        stated = field_of(self.kernel, "native_tool_spec")
        return stated if isinstance(stated, Mapping) else {}

    async def call(self, request: CallRequest) -> ToolOutcome:
        """Run it; its own result is kept for the hooks at tool:post."""
        result = await awaited(self.kernel.execute(dict(request.arguments)))
        outcome = outcome_of(result)
        self.exchange.results[request.call_id] = result_fields(result)
        return outcome


def tools_of(mounted: Mapping[str, Any] | None, exchange: Exchange) -> tuple[KernelTool, ...]:
    """The mounted tools, in their order."""
    return tuple(KernelTool(str(name), kernel, exchange) for name, kernel in dict(mounted or {}).items())
