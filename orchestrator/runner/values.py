"""What crosses by value: exact built-in types, and the mutable containers that a call lends.

A list, dict, set or bytearray that is lent with a call has a number, so that the one who borrows it can name it
in the answer, and send back what became of it.
"""

from __future__ import annotations

import builtins
from typing import Any, Final

from orchestrator.runner.wire import ProtocolError

__all__ = ["BASES", "BUILTINS", "DEEPEST", "MUTABLE", "NAMES", "SMALL", "Loan", "builtin_base", "refill"]

DEEPEST: Final = 100
"""Deepest nesting of a value."""
SMALL: Final = 2**53
"""Integers from here on are written in hexadecimal digits."""

BUILTINS: Final[dict[str, Any]] = {
    name: value
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    or name in {"abs", "all", "any", "ascii", "bin", "callable", "chr", "divmod", "format", "hash", "hex", "id"}
    or name in {"iter", "len", "max", "min", "next", "oct", "ord", "pow", "print", "repr", "round", "sorted", "sum"}
    or name in {"Ellipsis", "NotImplemented"}
}
"""What both sides have under the same name."""
NAMES: Final[dict[int, str]] = {id(value): name for name, value in BUILTINS.items()}
MUTABLE: Final = (list, dict, set, bytearray)
BASES: Final = (bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset)


def builtin_base(kind: type) -> type | None:
    """The built-in value type that a class derives from."""
    return next((base for base in kind.__mro__ if base in BASES), None)


class Loan:
    """The mutable containers of one call: lent by who calls, borrowed by who is called."""

    def __init__(self) -> None:
        self.containers: list[Any] = []
        self.numbers: dict[int, int] = {}
        self.before: list[Any] = []

    def add(self, container: Any) -> int:
        """Its number."""
        number = self.numbers[id(container)] = len(self.containers)
        self.containers.append(container)
        return number

    def remember(self) -> None:
        """Note what everything holds now."""
        self.before = [content(container) for container in self.containers]

    def changed(self) -> list[int]:
        """The numbers of what holds something else since then."""
        return [
            number
            for number, (container, before) in enumerate(zip(self.containers, self.before, strict=True))
            if not is_same(content(container), before)
        ]


def content(container: Any) -> Any:
    """What a container holds, so that it can be told whether that changed."""
    if type(container) is dict:
        return [part for pair in container.items() for part in pair]
    return bytes(container) if type(container) is bytearray else list(container)


def is_same(now: Any, before: Any) -> bool:
    """Whether these are the same objects in the same order."""
    if type(now) is bytes:
        return bool(now == before)
    return len(now) == len(before) and all(one is other for one, other in zip(now, before, strict=True))


def refill(container: Any, value: Any) -> None:
    """Have a container hold what another one of its type holds."""
    if type(container) is not type(value):
        raise ProtocolError("a container that became one of another type")
    if type(container) in (list, bytearray):
        container[:] = value
    else:
        container.clear()
        container.update(value)
