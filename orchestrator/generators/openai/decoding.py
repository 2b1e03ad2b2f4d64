"""JSON of a server, read strictly: what two readers would read differently is no answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isfinite
from typing import Any, Final, NoReturn

from orchestrator.excerpt import excerpt
from orchestrator.generators.openai.credentials import ApiKey
from orchestrator.generators.openai.failures import CallFailedError, lost
from orchestrator.jsondata import MAXIMUM_DEPTH

__all__ = ["SHOWN", "decoded"]

SHOWN: Final = 300
"""What is quoted of a body that is no answer, characters."""
_NAMED: Final = 60
"""What is quoted of a key, characters."""
_DIGITS: Final = 40
"""Digits of a whole number that are read; with more it is absurd in any case, and int() would refuse it."""


def decoded(data: bytes, key: ApiKey) -> Any:
    """JSON from a server; CallFailedError for what is none, which quotes its beginning without the key.

    So are keys given twice, NaN, infinity, what is too large for a number, and what nests deeper than any document
    of ours. Whole numbers beyond 2**53 and halves of a character pass: some servers stamp nanoseconds, and cut a
    stream within a character; who reads a count or a text checks it.
    """
    try:
        document = json.loads(
            data.decode(),
            parse_int=_integer,
            parse_float=_number,
            parse_constant=_refused,
            object_pairs_hook=_Tables(key).table,
        )
    except UnicodeDecodeError as error:
        raise lost(f"answered with what is not UTF-8, at byte {error.start}") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        shown = excerpt(key.redacted(data.decode()), SHOWN)
        raise lost(f"answered with what is not JSON ({error}): {shown}") from None
    if any(depth > MAXIMUM_DEPTH for depth in _depths(document)):
        raise _too_deep()
    return document


class _Tables:
    """Makes the objects of one document."""

    def __init__(self, key: ApiKey) -> None:
        self.key = key

    def table(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object, whose keys differ."""
        made = dict(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            shown = excerpt(self.key.redacted(twice), _NAMED)
            raise lost(f"answered with JSON that gives the key {shown!r} more than once")
        return made


def _integer(digits: str) -> int:
    return int(digits[:_DIGITS])


def _number(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        _refused(excerpt(digits, _NAMED))
    return number


def _refused(word: str) -> NoReturn:
    raise lost(f"answered with {word}, which is no number of JSON")


def _too_deep() -> CallFailedError:
    return lost("answered with JSON that nests too deep")


def _depths(document: object) -> Iterator[int]:
    """How deep each object and array is, the outermost 1; the walk keeps to the stack of its own."""
    waiting = [(document, 1)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict | list):
            yield depth
            waiting += [(item, depth + 1) for item in (value.values() if isinstance(value, dict) else value)]
