"""A provider of Amplifier as a provider of the agent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from orchestrator.agent.ports import ProviderCallError, Reply, TurnRequest
from orchestrator.amplifier.awaiting import awaited
from orchestrator.amplifier.chat import chat_request, reply_of, usage_fields
from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.plainness import field_of

__all__ = ["KernelProvider", "providers_of"]

USUAL_PRIORITY = 100


@attrs.define(eq=False)
class KernelProvider:
    """Anything with `complete(ChatRequest)`, under the name it is mounted by."""

    name: str
    kernel: Any
    exchange: Exchange = attrs.field(repr=False)

    @property
    def priority(self) -> float:
        """What the provider declares, itself or in its config; lower is preferred, 100 where it says nothing."""
        declared = field_of(self.kernel, "priority")
        if not is_number(declared):
            declared = field_of(field_of(self.kernel, "config"), "priority")
        return declared if is_number(declared) else USUAL_PRIORITY

    async def complete(self, request: TurnRequest) -> Reply:
        """One answer; an error that says of itself whether it may pass is raised as ProviderCallError from it."""
        chat = chat_request(request)
        try:
            response = await awaited(self.kernel.complete(chat))
        except Exception as error:
            if isinstance(field_of(error, "retryable"), bool):
                raise call_error(error) from error
            raise
        usage = usage_fields(response)
        if usage is not None:
            self.exchange.usages[request.turn] = usage
        return await reply_of(self.kernel, response)


def providers_of(mounted: Mapping[str, Any] | None, exchange: Exchange) -> dict[str, KernelProvider]:
    """The mounted providers, in their order."""
    return {str(name): KernelProvider(str(name), kernel, exchange) for name, kernel in dict(mounted or {}).items()}


def call_error(error: Exception) -> ProviderCallError:
    """The kernel's LLMError in the engine's words."""
    status, retry_after = field_of(error, "status_code"), field_of(error, "retry_after")
    return ProviderCallError(
        str(error) or type(error).__name__,
        is_retryable=field_of(error, "retryable") is True,
        status_code=status if type(status) is int else None,
        retry_after=float(retry_after) if is_number(retry_after) else None,
    )


def is_number(value: object) -> bool:
    """Whether it is a number, which a bool is not."""
    return isinstance(value, int | float) and not isinstance(value, bool)
