"""TOML through the standard library's parser, guarded where that parser can be made to eat all memory.

The parser keeps every prefix of a dotted key, so one key of half a million dots, a file of 1 MB, asks for
hundreds of gigabytes. Keys are therefore measured before it runs.
"""

from __future__ import annotations

import re
import tomllib
from typing import Any

from orchestrator.jsondata import TOO_DEEP, UnreadableTextError

__all__ = ["load_plain_toml"]

# Each alternative also matches a string that never ends, so that no text is scanned twice.
_STRING_OR_COMMENT = re.compile(
    r'''
      """(?:[^"\\]|\\.|"(?!""))*+"{0,5}
    | \'\'\'(?:[^']|'(?!''))*+'{0,5}
    | "(?:[^"\\\n]|\\.)*+"?
    | '[^'\n]*+'?
    | \#[^\n]*+
    ''',
    re.VERBOSE | re.DOTALL,
)
_END_OF_KEY = re.compile(r"[\n,=\[\]{}]")
_PLACE = re.compile(r" \((?:at )?(line \d+, column \d+|end of document)\)\Z")


def load_plain_toml(text: str, maximum_depth: int) -> dict[str, Any]:
    """The table that `text` holds; raises UnreadableTextError at the first fault."""
    without_strings = _STRING_OR_COMMENT.sub("s", text)
    if any(part.count(".") > maximum_depth for part in _END_OF_KEY.split(without_strings)):
        raise UnreadableTextError("", TOO_DEEP)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        place = _PLACE.search(message)
        if place is None:
            raise UnreadableTextError("", message) from None
        raise UnreadableTextError(place[1], message[: place.start()]) from None
    except ValueError:
        raise UnreadableTextError("", "an integer has thousands of digits: quote it") from None
