"""JSON to Python, every value checked: ProtocolError for anything that the encoder does not write."""

from __future__ import annotations

import base64
import zoneinfo
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PosixPath, PurePosixPath
from typing import Any, Final

from orchestrator.runner.values import BUILTINS, DEEPEST, SMALL, Loan
from orchestrator.runner.wire import ProtocolError, exactly

__all__ = ["ValueDecoder"]

LONGEST_INTEGER: Final = 4_000_000
"""Longest integer, hexadecimal digits."""


class ValueDecoder:
    """JSON to Python, every value checked; ProtocolError for anything that the encoder does not write."""

    def __init__(self, other: Callable[[str, list[Any], int], Any], loan: Loan, *, borrows: bool) -> None:
        self.other = other
        self.loan = loan
        self.borrows = borrows

    def decode(self, data: Any, depth: int = 0) -> Any:
        """The value."""
        if data is None or type(data) in (bool, str, float):
            return data
        if type(data) is int:
            if not -SMALL < data < SMALL:
                raise ProtocolError("a number that is too large to be plain")
            return data
        if type(data) is not list or not data or type(data[0]) is not str or depth > DEEPEST:
            raise ProtocolError(f"a value that is no value: {data!s:.80}")
        tag, *rest = data
        decode = DECODERS.get(tag)
        if decode is None:
            return self.other(tag, rest, depth + 1)
        with unbelieving(tag):
            return decode(self, depth + 1, *rest)

    def filled(
        self, made: Any, values: Any, number: tuple[Any, ...], fill: Callable[[Any, Iterator[Any]], None], depth: int
    ) -> Any:
        """A mutable container, registered before it is filled, since it may hold itself."""
        self.borrow(made, number)
        fill(made, self.each(values, depth))
        return made

    def each(self, values: Any, depth: int) -> Iterator[Any]:
        """The values of a list."""
        return (self.decode(value, depth) for value in exactly(list, values))

    def borrow(self, made: Any, number: tuple[Any, ...]) -> None:
        """Register a container under the number it was lent with."""
        if number and (not self.borrows or number != (self.loan.add(made),)):
            raise ProtocolError("a container whose number is not the next one")

    def pairs(self, values: Any, number: tuple[Any, ...], depth: int) -> dict[Any, Any]:
        """A dict."""
        made: dict[Any, Any] = {}
        self.borrow(made, number)
        for key, value in exactly(list, values):
            decoded = self.decode(key, depth)
            made[decoded] = self.decode(value, depth)
        return made

    def octets(self, text: Any, number: tuple[Any, ...]) -> bytearray:
        """A bytearray."""
        made = bytearray(base64.b64decode(exactly(str, text), validate=True))
        self.borrow(made, number)
        return made

    def lent(self, number: Any) -> Any:
        """A container of the call."""
        if not 0 <= exactly(int, number) < len(self.loan.containers):
            raise ProtocolError("a container that was never lent")
        return self.loan.containers[number]

    def moment(self, kind: Any, text: Any, fold: Any, zone: Any, depth: int) -> Any:
        """A datetime or time."""
        made = kind.fromisoformat(exactly(str, text))
        return made.replace(fold=exactly(int, fold), tzinfo=self.decode(zone, depth))


@contextmanager
def unbelieving(tag: str) -> Iterator[None]:
    """Whatever a constructor does not like is a fault of the message."""
    try:
        yield
    except (TypeError, ValueError, OverflowError, ArithmeticError, KeyError) as error:
        raise ProtocolError(f"a value of kind {tag!r:.20} that is none: {error}") from None


def one_of(name: Any) -> Any:
    """A built-in by name."""
    if exactly(str, name) not in BUILTINS:
        raise ProtocolError(f"no built-in {name!r:.40}")
    return BUILTINS[name]


def large(text: Any) -> int:
    """An integer in hexadecimal digits."""
    if len(exactly(str, text)) > LONGEST_INTEGER:
        raise ProtocolError("an integer that is too long")
    return int(text, 16)


def zone(offset: timedelta, name: str) -> timezone:
    """A fixed zone; the one that is the same object everywhere stays that."""
    made = timezone(offset, name)
    return timezone.utc if (made, name) == (timezone.utc, "UTC") else made  # noqa: UP017 -- the object, by its class


def fraction(numerator: Any, denominator: Any) -> Fraction:
    """A fraction of two integers."""
    return Fraction(exactly(int, numerator), exactly(int, denominator))


DECODERS: Final[dict[str, Callable[..., Any]]] = {
    "i": lambda _self, _depth, text: large(text),
    "f": lambda _self, _depth, text: float(one_text(text, "nan", "inf", "-inf")),
    "c": lambda self, depth, *parts: complex(*(exactly(float, self.decode(each, depth)) for each in parts)),
    "b": lambda _self, _depth, text: base64.b64decode(exactly(str, text), validate=True),
    "ba": lambda self, _depth, text, *number: self.octets(text, number),
    "l": lambda self, depth, values, *number: self.filled([], values, number, list.extend, depth),
    "s": lambda self, depth, values, *number: self.filled(set(), values, number, set.update, depth),
    "d": lambda self, depth, values, *number: self.pairs(values, number, depth),
    "t": lambda self, depth, values: tuple(self.each(values, depth)),
    "z": lambda self, depth, values: frozenset(self.each(values, depth)),
    "a": lambda self, _depth, number: self.lent(number),
    "r": lambda self, depth, *ends: range(*(exactly(int, self.decode(each, depth)) for each in ends)),
    "sl": lambda self, depth, *ends: slice(*(self.decode(each, depth) for each in ends)),
    "q": lambda self, depth, values, most: deque(self.each(values, depth), most),
    "n": lambda _self, _depth, text: Decimal(exactly(str, text)),
    "fr": lambda self, depth, *parts: fraction(*(self.decode(each, depth) for each in parts)),
    "da": lambda _self, _depth, text: date.fromisoformat(exactly(str, text)),
    "dt": lambda self, depth, text, fold, zone: self.moment(datetime, text, fold, zone, depth),
    "ti": lambda self, depth, text, fold, zone: self.moment(time, text, fold, zone, depth),
    "td": lambda _self, _depth, *parts: timedelta(*(exactly(int, each) for each in parts)),
    "tz": lambda self, depth, offset, name: zone(self.decode(offset, depth), exactly(str, name)),
    "zi": lambda _self, _depth, key: zoneinfo.ZoneInfo(exactly(str, key)),
    "p": lambda _self, _depth, text: PosixPath(exactly(str, text)),
    "pp": lambda _self, _depth, text: PurePosixPath(exactly(str, text)),
    "vk": lambda self, depth, values: dict.fromkeys(self.each(values, depth)).keys(),
    "vv": lambda self, depth, values: dict(enumerate(self.each(values, depth))).values(),
    "vi": lambda self, depth, values: dict(self.each(values, depth)).items(),
    "it": lambda self, depth, values: iter(list(self.each(values, depth))),
    "x": lambda _self, _depth, name: one_of(name),
}  # fmt: skip


def one_text(text: Any, *texts: str) -> str:
    """One of these texts."""
    if text not in texts:
        raise ProtocolError(f"{text!r:.40} where one of {', '.join(texts)} belongs")
    return str(text)
