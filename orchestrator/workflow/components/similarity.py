"""When two errors are of one kind: what differs from case to case is taken out, and the words are compared."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

__all__ = ["is_similar", "pattern_of"]

LONGEST_COMPARED: Final = 2_000
"""How much of an error is looked at, characters."""
LONGEST_PATTERN: Final = 120

_VARYING: Final = (
    (re.compile(r"0x[0-9a-fA-F]+|\b[0-9a-f]{12,}\b"), "#"),
    (re.compile(r"(?<![\w.-])[\w.-]*(?:/[\w.-]+)+"), "<path>"),
    (re.compile(r"'[^'\n]{0,200}'|\"[^\"\n]{0,200}\"|`[^`\n]{0,200}`"), "<value>"),
    (re.compile(r"\d+(?:\.\d+)?"), "#"),
)
_WORDS: Final = re.compile(r"[^\W\d_]{2,}|<\w+>|#")


def is_similar(one: str, other: str, similarity: float) -> bool:
    """Whether two errors share at least this part of their words, or all of what does not vary."""
    first, second = _normal(one), _normal(other)
    if first == second:
        return True
    mine, theirs = _words(first), _words(second)
    return bool(mine and theirs) and len(mine & theirs) >= similarity * len(mine | theirs)


def pattern_of(error: str) -> str:
    """The first line of an error without what varies from case to case, at most 120 characters."""
    lines = [line.strip() for line in _normal(error).splitlines() if line.strip()]
    return lines[0][:LONGEST_PATTERN].rstrip() if lines else "no message"


@lru_cache(maxsize=1_024)
def _normal(error: str) -> str:
    text = error[:LONGEST_COMPARED]
    for varying, name in _VARYING:
        text = varying.sub(name, text)
    return text


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(text))
