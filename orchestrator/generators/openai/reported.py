"""The usage a server reports; what is no sane count counts as not reported, and is estimated by the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import attrs

from orchestrator.prices import Price
from orchestrator_events.budget import Usage

__all__ = ["Reported", "reported"]

LARGEST: Final = 2**53 - 1
"""The largest whole number that every JSON reader keeps exactly."""


@attrs.frozen(kw_only=True)
class Reported:
    """Counts of one call; None for each that is not reported."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    """Reasoning tokens among them."""
    cached_tokens: int | None = None
    """Input tokens that the server had in its cache."""

    def usage(self, price: Price | None) -> Usage | None:
        """What the ledger charges; None when nothing was reported. Money needs both counts and a price."""
        if self.input_tokens is None and self.output_tokens is None:
            return None
        money = None
        if price is not None and self.input_tokens is not None and self.output_tokens is not None:
            cached = min(self.cached_tokens or 0, self.input_tokens)
            money = price.money_micro(self.input_tokens, self.output_tokens, cached)
        return Usage(input_tokens=self.input_tokens, output_tokens=self.output_tokens, money_micro=money)


def reported(usage: object) -> Reported:
    """The counts in a `usage` object, which may be anything at all."""
    if not isinstance(usage, Mapping):
        return Reported()
    details = usage.get("prompt_tokens_details")
    return Reported(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
    )


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 <= value <= LARGEST else None
