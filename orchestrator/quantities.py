"""Amounts as people write them: `10m`, `1h30m`, `200k`, `0.50`, `512 MiB`."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Final

__all__ = ["UNLIMITED", "parse_count", "parse_duration", "parse_money", "parse_size"]

UNLIMITED: Final = "unlimited"
"""The word that lifts a limit."""

_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}
_MULTIPLES: Final = {"": 1, "k": 1_000, "m": 1_000_000}

_BYTES: Final = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_COUNT = re.compile(r"(\d[\d_,]*(?:\.\d+)?)([km]?)", re.IGNORECASE)
_SIZE = re.compile(r"(\d[\d_,]*)\s*(?:([kmgt])(?:i?b)?|bytes)?")
_LONGEST: Final = 20


def parse_duration(value: str | float) -> float | None:
    """Seconds; None for `unlimited`. A number alone is seconds; ValueError says how to write it."""
    text = plain(value)
    if text == UNLIMITED:
        return None
    if _DURATION.fullmatch(text) and len(text) <= _LONGEST:
        seconds = sum(float(amount) * _UNITS[unit] for amount, unit in _PART.findall(text))
    else:
        seconds = number(text, "a duration such as 90s, 10m, 1h30m, or 'unlimited'", value)
    if seconds <= 0:
        raise ValueError(f"expected a duration above 0, found {value!r}")
    return seconds


def parse_count(value: str | int) -> int | None:
    """A whole number; None for `unlimited`. `200k` is 200,000, `1.5m` is 1,500,000; ValueError otherwise."""
    text = plain(value)
    if text == UNLIMITED:
        return None
    found = _COUNT.fullmatch(text) if len(text) <= _LONGEST else None
    if found:
        count = Decimal(re.sub("[_,]", "", found[1])) * _MULTIPLES[found[2].lower()]
        if count == int(count) and count >= 1:
            return int(count)
    raise ValueError(f"expected a whole number above 0 such as 5, 200k, 1.5m, or 'unlimited', found {value!r}")


def parse_money(value: str | float) -> int | None:
    """Millionths of the currency, from units of it; None for `unlimited`; ValueError otherwise."""
    text = plain(value)
    if text == UNLIMITED:
        return None
    micro = round(number(text, "an amount such as 0.50, or 'unlimited'", value) * 1_000_000)
    if micro < 1:
        raise ValueError(f"expected an amount of at least 0.000001, found {value!r}")
    return micro


def parse_size(value: str | int) -> int | None:
    """Bytes; None for `unlimited`. `512M` and `512 MiB` are 512 times 1024 times 1024; ValueError otherwise."""
    text = plain(value)
    if text == UNLIMITED:
        return None
    found = _SIZE.fullmatch(text) if len(text) <= _LONGEST else None
    size = 0 if found is None else int(re.sub("[_,]", "", found[1])) * _BYTES[found[2] or ""]
    if size < 1:
        raise ValueError(f"expected a size above 0 such as 512M, 4 GiB, 65536, or 'unlimited', found {value!r}")
    return size


def plain(value: str | float) -> str:
    """The value as a text without white space around it, in lower case."""
    return str(value).strip().lower()


def number(text: str, expected: str, value: object) -> float:
    """A finite number, or ValueError that says what is expected."""
    try:
        found = Decimal(text) if len(text) <= _LONGEST else Decimal("NaN")
    except InvalidOperation:
        found = Decimal("NaN")
    if not isfinite(float(found)):
        raise ValueError(f"expected {expected}, found {value!r}")
    return float(found)
