"""An excerpt of text that a program wrote: bounded, and without anything a terminal would act on."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["EXCERPT_CHARACTERS", "excerpt", "in_short", "inert", "tail"]

EXCERPT_CHARACTERS: Final = 4_000
"""Longest excerpt unless another limit is given, in characters."""

_ESCAPE_SEQUENCES = re.compile(r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
_LINE_ENDS = re.compile("\r\n|[\u2028\u2029]")
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of control, format (joiners among them), surrogate and separating characters."""


def excerpt(text: str, limit: int = EXCERPT_CHARACTERS) -> str:
    """Head and tail of `text` in at most `limit` characters, the number of those left out between them.

    Terminal escape sequences, control characters (but not line feeds and tabs), bidirectional overrides,
    invisible characters (but not the joiners that scripts and emoji need) and lone surrogates are removed;
    other ends of lines become LF.
    """
    plain = _plain(text)
    if len(plain) <= limit:
        return plain
    mark = f"\n… {len(plain) - limit} characters left out …\n"
    room = max(0, limit - len(mark))
    return plain[: room - room // 2] + mark[:limit] + plain[len(plain) - room // 2 :]


def inert(text: str) -> str:
    """The whole text as people may be shown it: like an excerpt, and without joiners either."""
    plain = _plain(text)
    if plain.isprintable():
        return plain
    return "".join(
        character for character in plain if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
    )


def in_short(text: str, limit: int, ellipsis: str = "…") -> str:
    """The text, inert, on one line of at most `limit` characters.

    Of several lines that are too long for that, the first and the last are kept: programs say last what went wrong.
    """
    lines = [line for each in inert(text).splitlines() if (line := " ".join(each.split()))]
    whole = " ".join(lines)
    if len(whole) <= limit or len(lines) < 2:  # noqa: PLR2004 -- a first and a last
        return cut(whole, limit, ellipsis)
    room = limit - len(ellipsis) - 2
    last = cut(lines[-1], room - min(len(lines[0]), room // 2), ellipsis)
    return f"{cut(lines[0], room - len(last), ellipsis)} {ellipsis} {last}"


def cut(line: str, limit: int, ellipsis: str) -> str:
    """The beginning of a line that is too long."""
    return line if len(line) <= limit else line[: max(0, limit - len(ellipsis))] + ellipsis


def tail(data: bytes, limit: int = EXCERPT_CHARACTERS) -> str:
    """The last lines of a program's output in at most `limit` characters, cleaned like an excerpt."""
    plain = _plain(data[-4 * limit :].decode(errors="replace")).strip()
    if len(plain) <= limit:
        return plain
    cut = plain[-limit:]
    return cut.partition("\n")[2] or cut


def _plain(text: str) -> str:
    return _CONTROLS.sub("", _ESCAPE_SEQUENCES.sub("", _LINE_ENDS.sub("\n", text)))
