"""The bounded context of a subagent: a JSON object that fits, and what was cut from it, in words."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Final

import attrs

from orchestrator.agent.plainjson import bounded, clean, plain
from orchestrator.jsondata import JSON
from orchestrator_events.errors import OrchestratorError

__all__ = ["BoundedContext", "ContextError", "bounded_context", "json_of"]

LONGEST_KEY: Final = 80
MOST_FIELDS: Final = 64
SHORTEST_FIELD: Final = 64
"""Below this a shortened field says nothing any more: it is left out whole, characters."""


class ContextError(OrchestratorError):
    """A subagent cannot be given this context: a key is `missing`, or its keys are no names."""

    def __init__(self, role: str, fault: str, missing: tuple[str, ...] = ()) -> None:
        self.role = role
        self.missing = missing
        super().__init__(f"the context of {role} {fault}")


@attrs.frozen
class BoundedContext:
    """What a subagent reads of its context."""

    fields: Mapping[str, JSON]
    cut: tuple[str, ...] = ()
    """What was shortened or left out, a sentence each."""


def bounded_context(role: str, context: Mapping[str, JSON], limit: int) -> BoundedContext:
    """The context as an object whose JSON text has at most `limit` characters.

    The longest fields are cut, and all of them to the same length, so that the short ones stay whole. A field that is
    no text is shown as the head and tail of its JSON text. Of more than 64 fields the rest is left out. Whatever is
    cut is said. Raises ContextError for keys that are no texts of at most 80 characters.
    """
    refuse_bad_keys(role, context)
    fields: dict[str, JSON] = {name: plain(value) for name, value in islice(context.items(), MOST_FIELDS)}
    cut = [f"{len(context) - MOST_FIELDS} more fields are left out"] if len(context) > MOST_FIELDS else []
    sizes = {name: len(json_of(value)) for name, value in fields.items()}
    while longest_size(sizes) > (size := _room_of_each(sizes, limit)) and size < SHORTEST_FIELD:
        name = max(sizes, key=lambda each: sizes[each])
        cut.append(f"{name} ({sizes.pop(name)} characters) is left out")
    shown: dict[str, JSON] = {}
    for name, length in sizes.items():
        shown[name] = fields[name] if length <= size else _shortened(fields[name], size)
        if length > size:
            cut.append(f"{name} has {length} characters, {len(json_of(shown[name]))} are shown")
    return BoundedContext(shown, tuple(cut))


def refuse_bad_keys(role: str, keys: Iterable[object]) -> None:
    """Raise ContextError for a key that is no name: not even decoded JSON is of the right kind by itself."""
    for name in keys:
        if not isinstance(name, str) or not 0 < len(name) <= LONGEST_KEY or clean(name) != name:
            raise ContextError(role, f"has the key {name!a:.100}: use texts of 1 to {LONGEST_KEY} characters")


def longest_size(sizes: Mapping[str, int]) -> int:
    """The size of the longest field; 0 without any."""
    return max(sizes.values(), default=0)


def json_of(value: JSON) -> str:
    """Compact JSON text, keys in their order."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _room_of_each(sizes: Mapping[str, int], limit: int) -> int:
    """The length to which fields must be cut so that an object of them has at most `limit` characters."""
    left, number = limit - 1 - sum(len(json_of(name)) + 2 for name in sizes), len(sizes)
    for size in sorted(sizes.values()):
        if size * number > left:
            return left // number
        left -= size
        number -= 1
    return longest_size(sizes)


def _shortened(value: JSON, size: int) -> str:
    """Head and tail of a value as a text whose JSON has at most `size` characters."""
    text = value if isinstance(value, str) else json_of(value)
    length = size - 2
    shown = bounded(text, length)
    while len(json_of(shown)) > size and length > 0:  # quotes and line ends take two characters and more
        length = min(length - 1, length * size // len(json_of(shown)))
        shown = bounded(text, max(0, length))
    return shown
