"""Amplifier's cancellation token as the engine reads it."""

from __future__ import annotations

from typing import Any

import attrs

__all__ = ["KernelCancellation", "cancellation_of"]


@attrs.frozen(eq=False)
class KernelCancellation:
    """The token of a coordinator; it can only be looked at, so the engine looks every 50 ms."""

    token: Any

    @property
    def state(self) -> str:
        """none, graceful or immediate."""
        if self.token.is_immediate is True:
            return "immediate"
        return "graceful" if self.token.is_cancelled is True else "none"

    def tool_started(self, call_id: str, name: str) -> None:
        """The kernel shows the user which tools are running."""
        self.token.register_tool_start(call_id, name)

    def tool_ended(self, call_id: str) -> None:
        """It runs no more."""
        self.token.register_tool_complete(call_id)


def cancellation_of(coordinator: object) -> KernelCancellation | None:
    """The token of a coordinator; None where there is none."""
    token = getattr(coordinator, "cancellation", None)
    return KernelCancellation(token) if isinstance(getattr(token, "is_cancelled", None), bool) else None
