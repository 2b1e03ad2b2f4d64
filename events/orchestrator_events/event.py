"""What every event is: a frozen value with a wire name, a version and a kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import attrs

__all__ = ["Event", "Fact", "Gate", "Kind", "Live"]

Kind = Literal["fact", "gate", "live"]


@attrs.frozen(kw_only=True)
class Event:
    """Base of all events; subclasses set `name` (the wire name) and, when a field changes, `version`."""

    name: ClassVar[str]
    version: ClassVar[int] = 1
    kind: ClassVar[Kind]


@attrs.frozen(kw_only=True)
class Fact(Event):
    """Something that happened: recorded, published, and beyond refusing."""

    kind: ClassVar[Kind] = "fact"


@attrs.frozen(kw_only=True)
class Live(Event):
    """Something under way: shown to those who subscribed to it by name, never recorded, and of no consequence.

    What comes of it is recorded as a fact; a history never needs a live event.
    """

    kind: ClassVar[Kind] = "live"


@attrs.frozen(kw_only=True)
class Gate(Event):
    """A question asked before an act or before a result is used; subscribers answer with a decision.

    A gate is never recorded itself: the fact that follows it carries the decisions taken. Only the fields in
    `modifiable` may be changed by a decision; the others say what the act is and what it is counted as.
    """

    kind: ClassVar[Kind] = "gate"
    modifiable: ClassVar[tuple[str, ...]] = ()

    def changed(self, changes: Mapping[str, Any]) -> Self:
        """The gate with these fields replaced, and whatever follows from them."""
        return attrs.evolve(self, **changes)

    def injected(self, texts: Sequence[tuple[str, str]]) -> Self:  # noqa: ARG002 -- most gates carry no text
        """The gate with these (role, text) pairs added to what will be read; itself where nothing is read."""
        return self
