"""Amplifier's approval system as the engine's approver."""

from __future__ import annotations

import logging

import attrs

from orchestrator.amplifier.exchange import Exchange
from orchestrator.amplifier.plainness import field_of

__all__ = ["KernelApprover"]

logger = logging.getLogger("orchestrator.amplifier")


@attrs.frozen(eq=False)
class KernelApprover:
    """Has the coordinator ask, with the hook's own options, time-out and default. Everything but a yes is a no."""

    exchange: Exchange

    async def approve(self, run_id: str, prompt: str) -> bool:  # noqa: ARG002 -- the port's signature
        """Whether the coordinator, given what the hook answered, lets the operation go on."""
        waiting = self.exchange.questions.get(prompt)
        if not waiting or not self.exchange.can_process:
            return False
        result, event = waiting.popleft()
        answer = await self.exchange.process(result, event)
        is_approved = bool(field_of(answer, "action") == "continue")
        if not is_approved:
            logger.info("%s: not approved: %s", event, field_of(answer, "reason") or prompt)
        return is_approved
