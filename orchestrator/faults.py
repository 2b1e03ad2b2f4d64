"""One fault of a file, and the helpers that place and collect faults."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import attrs

__all__ = ["Fault", "closest_name", "relocated", "step"]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


@attrs.frozen
class Fault:
    """One thing that is wrong, where it is, and perhaps what was meant.

    `path` is `$.a.b[2]` inside data, `line 3, column 5` inside text, empty for the file as a whole.
    `hint` is the name the author probably meant, empty when none is near.
    """

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        place = f"{self.path}: " if self.path else ""
        suggestion = f" (did you mean {self.hint!r}?)" if self.hint else ""
        return f"{place}{self.message}{suggestion}"


def closest_name(name: str, choices: Iterable[str]) -> str:
    """The choice most like `name` for a did-you-mean, or an empty string when none is near."""
    found = difflib.get_close_matches(name[:100], list(choices), n=1)
    return found[0] if found else ""


def step(path: str, key: str | int) -> str:
    """`path` one level deeper: an index in brackets, a plain key after a dot, any other key quoted."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if _PLAIN_KEY.match(key) else f"{path}[{key!r}]"


def relocated(faults: Iterable[Fault], places: Mapping[str, str]) -> tuple[Fault, ...]:
    """The same faults with each path's longest prefix found in `places` replaced by the place it names."""
    return tuple(attrs.evolve(fault, path=_moved(fault.path, places)) for fault in faults)


def _moved(path: str, places: Mapping[str, str]) -> str:
    for end in range(len(path), 0, -1):
        is_whole_step = end == len(path) or path[end] in ".["
        if is_whole_step and path[:end] in places:
            return places[path[:end]] + path[end:]
    return path
