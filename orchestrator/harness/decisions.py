"""What rules answer."""

from __future__ import annotations

import attrs

__all__ = ["Allowed", "Denial", "Warned"]


@attrs.frozen
class Denial:
    """The action must not be executed; the model is told `text`."""

    rule: str
    reason: str
    suggestion: str = ""
    """What to do instead."""

    @property
    def text(self) -> str:
        """The denial as the model reads it."""
        return f"Denied ({self.rule}): {self.reason}." + (f" Instead: {self.suggestion}." if self.suggestion else "")


@attrs.frozen
class Warned:
    """The action may be executed, and the model is told this."""

    rule: str
    warning: str


@attrs.frozen
class Allowed:
    """The action may be executed."""

    warnings: str = ""
    """What the rules warn of, joined by `; `; empty without one."""
