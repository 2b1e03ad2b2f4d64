"""Python to JSON: plain values as themselves or as a list that begins with a tag, all else left to the peer.

`null`, booleans, text, small integers and finite floats are themselves.
"""

from __future__ import annotations

import base64
import math
import zoneinfo
from collections import deque
from collections.abc import Callable
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath
from typing import Any, Final

from orchestrator.runner.values import DEEPEST, MUTABLE, NAMES, SMALL, Loan

__all__ = ["ValueEncoder"]


class ValueEncoder:
    """Python to JSON."""

    def __init__(self, other: Callable[[Any, int], Any], loan: Loan, *, lends: bool) -> None:
        self.other = other
        self.loan = loan
        self.lends = lends

    def encode(self, value: Any, depth: int = 0) -> Any:
        """A value as JSON; TypeError when it is nested too deeply."""
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int:
            return value if -SMALL < value < SMALL else ["i", hex(value)]
        if kind is float:
            return value if math.isfinite(value) else ["f", repr(value)]
        if depth > DEEPEST:
            raise TypeError(f"a value that is nested more than {DEEPEST} deep does not cross between processes")
        if kind in MUTABLE and id(value) in self.loan.numbers:
            return ["a", self.loan.numbers[id(value)]]
        encode = ENCODERS.get(kind)
        if encode is not None:
            return encode(self, value, depth + 1)
        name = NAMES.get(id(value))
        return ["x", name] if name is not None else self.other(value, depth + 1)

    def content(self, container: Any) -> Any:
        """What a container holds now, as if it were not lent."""
        return ENCODERS[type(container)](ValueEncoder(self.other, self.loan, lends=False), container, 1)

    def items(self, tag: str, values: Any, depth: int) -> list[Any]:
        """A collection, with its number when it is lent."""
        number = [self.loan.add(values)] if self.lends and type(values) in MUTABLE else []
        return [tag, [self.encode(value, depth) for value in values], *number]

    def pairs(self, table: dict[Any, Any], depth: int) -> list[Any]:
        """A dict."""
        number = [self.loan.add(table)] if self.lends else []
        pairs = [[self.encode(key, depth), self.encode(value, depth)] for key, value in table.items()]
        return ["d", pairs, *number]

    def octets(self, value: bytearray) -> list[Any]:
        """A bytearray."""
        number = [self.loan.add(value)] if self.lends else []
        return ["ba", base64.b64encode(value).decode(), *number]


def _moment(encoder: ValueEncoder, value: datetime | time, tag: str, depth: int) -> Any:
    zone = value.tzinfo
    if zone is not None and type(zone) not in (timezone, zoneinfo.ZoneInfo):
        return encoder.other(value, depth)
    return [tag, value.replace(tzinfo=None).isoformat(), value.fold, encoder.encode(zone, depth)]


ENCODERS: Final[dict[type, Callable[[ValueEncoder, Any, int], Any]]] = {
    list: lambda self, value, depth: self.items("l", value, depth),
    tuple: lambda self, value, depth: self.items("t", value, depth),
    set: lambda self, value, depth: self.items("s", value, depth),
    frozenset: lambda self, value, depth: self.items("z", value, depth),
    dict: lambda self, value, depth: self.pairs(value, depth),
    bytes: lambda _self, value, _depth: ["b", base64.b64encode(value).decode()],
    bytearray: lambda self, value, _depth: self.octets(value),
    complex: lambda self, value, depth: ["c", self.encode(value.real, depth), self.encode(value.imag, depth)],
    range: lambda self, value, depth: ["r", *(self.encode(n, depth) for n in (value.start, value.stop, value.step))],
    slice: lambda self, value, depth: ["sl", *(self.encode(n, depth) for n in (value.start, value.stop, value.step))],
    deque: lambda self, value, depth: ["q", [self.encode(each, depth) for each in value], value.maxlen],
    Decimal: lambda _self, value, _depth: ["n", str(value)],
    Fraction: lambda self, value, depth: ["fr", *(self.encode(n, depth) for n in value.as_integer_ratio())],
    date: lambda _self, value, _depth: ["da", value.isoformat()],
    datetime: lambda self, value, depth: _moment(self, value, "dt", depth),
    time: lambda self, value, depth: _moment(self, value, "ti", depth),
    timedelta: lambda _self, value, _depth: ["td", value.days, value.seconds, value.microseconds],
    timezone: lambda self, value, depth: ["tz", self.encode(value.utcoffset(None), depth), value.tzname(None)],
    zoneinfo.ZoneInfo: lambda self, value, depth: ["zi", value.key] if value.key else self.other(value, depth),
    PosixPath: lambda _self, value, _depth: ["p", str(value)],
    type({}.keys()): lambda self, value, depth: ["vk", [self.encode(each, depth) for each in value]],
    type({}.values()): lambda self, value, depth: ["vv", [self.encode(each, depth) for each in value]],
    type({}.items()): lambda self, value, depth: ["vi", [self.encode(each, depth) for each in value]],
    PurePosixPath: lambda _self, value, _depth: ["pp", str(value)],
}  # fmt: skip
