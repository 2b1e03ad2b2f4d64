"""Which kinds of value fit which types, told in the words of an author of files."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, Union, get_args, get_origin

import attrs

__all__ = [
    "ValueShapeError",
    "accepts",
    "container_of",
    "is_array",
    "is_enumeration",
    "is_literal",
    "is_table",
    "is_union",
    "mismatch",
    "name_of",
    "shown",
]

_ARRAYS: Final[Mapping[Any, Callable[[list[Any]], Any]]] = {
    list: list, tuple: tuple, frozenset: frozenset, Sequence: tuple,
}  # fmt: skip
_KIND_NAMES: Final[Mapping[Any, str]] = {
    bool: "a boolean", int: "an integer", float: "a number", str: "a string", Path: "a path",
    type(None): "null", list: "an array", dict: "a table",
}  # fmt: skip


class ValueShapeError(ValueError):
    """A value has not the shape its place asks for; `hint` is what was probably meant."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def accepts(kind: Any, value: Any) -> bool:
    """Whether plain data `value` is of the right kind for a `kind`; its parts are not looked at."""
    if kind is Any:
        return True
    if is_literal(kind) or is_enumeration(kind):
        choices = get_args(kind) or [member.value for member in kind]
        return any(type(value) is type(choice) for choice in choices)
    if kind in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, _python_kinds(kind))


def _python_kinds(kind: Any) -> Any:
    if is_array(kind):
        return (list, tuple)
    if is_table(kind) or attrs.has(get_origin(kind) or kind):
        return Mapping
    return _PYTHON_KINDS.get(kind, kind)


_PYTHON_KINDS: Final[Mapping[Any, Any]] = {float: (float, int), Path: str}


def mismatch(expected: str, value: Any) -> ValueShapeError:
    """The error that says what was expected and what stands there."""
    return ValueShapeError(f"expected {expected}, found {shown(value)}")


def shown(value: Any) -> str:
    """The kind of `value`, with the value itself where it is short and has no parts."""
    if value is None:
        return "null"
    if isinstance(value, Mapping | list | tuple):
        return "a table" if isinstance(value, Mapping) else "an array"
    text = repr(value) if len(repr(value)) <= _LONGEST_SHOWN else f"{repr(value)[:_LONGEST_SHOWN]}…"
    return f"{name_of(type(value))} {text}"


_LONGEST_SHOWN: Final = 60


def name_of(kind: Any) -> str:
    """What a `kind` is called in a message."""
    if is_array(kind):
        return "an array"
    if is_table(kind) or attrs.has(get_origin(kind) or kind):
        return "a table"
    return _KIND_NAMES.get(kind, getattr(kind, "__name__", str(kind)))


def is_literal(kind: Any) -> bool:
    """Whether `kind` is a Literal."""
    origin: object = get_origin(kind)
    return origin is Literal


def is_array(kind: Any) -> bool:
    """Whether `kind` is an array in a file."""
    return (get_origin(kind) or kind) in _ARRAYS


def container_of(kind: Any) -> Callable[[list[Any]], Any]:
    """What makes the container of an array type from a list of its items."""
    return _ARRAYS[get_origin(kind) or kind]


def is_table(kind: Any) -> bool:
    """Whether `kind` is a table of any keys."""
    return (get_origin(kind) or kind) in (dict, Mapping)


def is_union(kind: Any) -> bool:
    """Whether `kind` is a union, Optional among them."""
    return get_origin(kind) in (Union, types.UnionType)


def is_enumeration(kind: Any) -> bool:
    """Whether `kind` is an Enum class."""
    return isinstance(kind, type) and issubclass(kind, Enum)
