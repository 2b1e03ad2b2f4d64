"""One danger of a command, in words that a model can act on."""

from __future__ import annotations

import attrs

from orchestrator.excerpt import excerpt
from orchestrator.harness.words import HOME

__all__ = ["Danger", "shown", "unclear"]


@attrs.frozen
class Danger:
    """Why a command must not run, and what to do instead."""

    reason: str
    suggestion: str


def shown(text: str) -> str:
    """A part of a command within a sentence: one line, bounded, between quotes."""
    return repr(excerpt(text.replace(HOME, "~"), 100))


def unclear(what: str, raw: str, suggestion: str) -> Danger:
    """Something is known only when the command runs."""
    return Danger(f"it cannot be told {what}: {shown(raw)} is known only when it runs", suggestion)
