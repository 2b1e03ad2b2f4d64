"""What counts as plain JSON data, and what is wrong with data that is not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from orchestrator.faults import Fault, step

__all__ = ["JSON", "MAXIMUM_DEPTH", "TOO_DEEP", "TableWithRepeats", "UnreadableTextError", "json_faults"]

JSON: TypeAlias = Any
"""Decoded JSON: dict with string keys, list, str, int, float, bool or None."""

MAXIMUM_DEPTH: Final = 64
"""Deepest nesting of tables and arrays that is accepted."""

TOO_DEEP: Final = f"nested deeper than {MAXIMUM_DEPTH} levels: flatten it"
"""What is said of data that nests too deep."""

_LARGEST_EXACT_INTEGER: Final = 2**53 - 1


class UnreadableTextError(Exception):
    """A text is not of its format; `fault` says where and why. Only parsers raise it."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__(place, problem)
        self.fault = Fault(place, problem)


class TableWithRepeats(dict[str, Any]):
    """A JSON object that gives keys more than once; json_faults reports it, so it never reaches a caller."""

    repeated: tuple[str, ...] = ()


def json_faults(value: JSON, path: str = "$", depth: int = 0) -> Iterator[Fault]:
    """Every place under `value` that is not plain JSON data with numbers JSON holds exactly."""
    if depth == 0 and _is_plain(value, 0):
        return
    match value:
        case None | bool():
            return
        case str():
            yield from _text_faults(value, path)
        case int() | float():
            yield from _number_faults(value, path)
        case dict() | list() | tuple() if depth >= MAXIMUM_DEPTH:
            yield Fault(path, TOO_DEEP)
        case dict():
            yield from _table_faults(value, path, depth)
        case list() | tuple():
            for index, item in enumerate(value):
                yield from json_faults(item, step(path, index), depth + 1)
        case _:
            yield Fault(path, f"{type(value).__name__} is not a JSON value: write it as a quoted string")


def _is_plain(value: JSON, depth: int) -> bool:
    # Whether json_faults finds nothing, in a fraction of its time: nearly all data is plain, and some is large.
    kind = type(value)
    if kind is str:
        return not any(_text_faults(value, ""))
    if kind is dict:
        return depth < MAXIMUM_DEPTH and all(
            type(key) is str and _is_plain(key, 0) and _is_plain(item, depth + 1) for key, item in value.items()
        )
    if kind is list:
        return depth < MAXIMUM_DEPTH and all(_is_plain(item, depth + 1) for item in value)
    if kind is int:
        return abs(int(value)) <= _LARGEST_EXACT_INTEGER
    return value is None or kind is bool or (kind is float and math.isfinite(value))


def _text_faults(value: str, path: str) -> Iterator[Fault]:
    if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
        yield Fault(path, "holds a lone surrogate, which no UTF-8 text can carry: remove it")


def _number_faults(value: float, path: str) -> Iterator[Fault]:
    if isinstance(value, int):
        if abs(value) > _LARGEST_EXACT_INTEGER:
            yield Fault(path, "integer beyond 2**53 - 1, which JSON does not hold exactly: quote it")
    elif not math.isfinite(value):
        yield Fault(path, "number is not finite: NaN and infinity are not JSON, and 1e999 is too large")


def _table_faults(table: dict[Any, JSON], path: str, depth: int) -> Iterator[Fault]:
    if isinstance(table, TableWithRepeats):
        for key in table.repeated:
            yield Fault(path, f"key {key!r} is given more than once: keep one")
    for key, item in table.items():
        if isinstance(key, str):
            yield from _text_faults(key, path)
            yield from json_faults(item, step(path, key), depth + 1)
        else:
            yield Fault(path, f"key {key!r} is not a string: quote it")
