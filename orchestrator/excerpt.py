"""An excerpt of text that a program wrote: bounded, and without anything a terminal would act on."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["EXCERPT_CHARACTERS", "excerpt", "tail"]

EXCERPT_CHARACTERS: Final = 4_000
"""Longest excerpt unless another limit is given, in characters."""

_ESCAPE_SEQUENCES = re.compile(r"(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]")
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def excerpt(text: str, limit: int = EXCERPT_CHARACTERS) -> str:
    """Head and tail of `text` in at most `limit` characters, the number of those left out between them.

    Terminal escape sequences, control characters (but not line feeds and tabs) and bidirectional
    overrides and lone surrogates are removed; CR LF becomes LF.
    """
    plain = _plain(text)
    if len(plain) <= limit:
        return plain
    mark = f"\n… {len(plain) - limit} characters left out …\n"
    room = max(0, limit - len(mark))
    return plain[: room - room // 2] + mark[:limit] + plain[len(plain) - room // 2 :]


def tail(data: bytes, limit: int = EXCERPT_CHARACTERS) -> str:
    """The last lines of a program's output in at most `limit` characters, cleaned like an excerpt."""
    plain = _plain(data[-4 * limit :].decode(errors="replace")).strip()
    if len(plain) <= limit:
        return plain
    cut = plain[-limit:]
    return cut.partition("\n")[2] or cut


def _plain(text: str) -> str:
    return _CONTROLS.sub("", _ESCAPE_SEQUENCES.sub("", text.replace("\r\n", "\n")))
