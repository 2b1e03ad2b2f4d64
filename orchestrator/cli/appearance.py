"""How output looks: live or plain, coloured or not, Unicode or ASCII; each decided on its own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Final, TextIO

import attrs
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from orchestrator.cli.choices import ColorChoice, DisplayChoice

__all__ = ["ASCII", "UNICODE", "Marks", "console_on", "draws_live", "marks_for", "print_hanging"]


@attrs.frozen(kw_only=True)
class Marks:
    """The characters that words are not enough for."""

    passed: str
    failed: str
    error: str
    timed_out: str
    absent: str
    """Skipped, missing, or reported otherwise than once."""
    used: str
    held: str
    free: str
    bullet: str
    ellipsis: str


UNICODE: Final = Marks(
    passed="●", failed="✗", error="E", timed_out="T", absent="-",
    used="█", held="▒", free="░", bullet="·", ellipsis="…",
)  # fmt: skip
ASCII: Final = Marks(
    passed="+", failed="x", error="E", timed_out="T", absent="-",
    used="#", held="=", free=".", bullet="-", ellipsis="...",
)  # fmt: skip


def draws_live(choice: DisplayChoice, stream: TextIO, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether progress is redrawn in place, which only a terminal can do.

    By itself it is on a terminal that is not dumb, outside of CI; colour settings have no say in it.
    """
    if not stream.isatty() or choice in (DisplayChoice.PLAIN, DisplayChoice.QUIET):
        return False
    return choice is DisplayChoice.LIVE or has_reader(environment)


def has_reader(environment: Mapping[str, str]) -> bool:
    """Whether a terminal is one that somebody looks at: neither dumb nor CI's."""
    return environment.get("TERM", "") not in ("", "dumb", "unknown") and not environment.get("CI")


def is_coloured(
    choice: ColorChoice, stream: TextIO, *, by_itself: bool, environment: Mapping[str, str] = os.environ
) -> bool:
    """Whether to colour: as told, else by NO_COLOR, FORCE_COLOR, and last `by_itself` on a terminal."""
    if choice is not ColorChoice.AUTO:
        return choice is ColorChoice.ALWAYS
    if environment.get("NO_COLOR"):
        return False
    if environment.get("FORCE_COLOR", "0") != "0":
        return True
    return by_itself and stream.isatty() and environment.get("TERM", "") not in ("", "dumb", "unknown")


def console_on(stream: TextIO, color: ColorChoice, *, by_itself: bool = True) -> Console:
    """A console that writes what it is given: no markup, no highlighting; on a terminal, lines break between words."""
    has_color = is_coloured(color, stream, by_itself=by_itself)
    return Console(
        file=stream,
        force_terminal=has_color or stream.isatty(),
        force_jupyter=False,
        color_system="standard" if has_color else None,
        no_color=not has_color,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=not stream.isatty() or not has_reader(os.environ),
    )


def print_hanging(console: Console, line: Text) -> None:
    """Print a line; where a terminal has to break it, what follows is as far in as its beginning.

    Text of others is told by how far in it is: no word of it may begin a line where ours do.
    """
    indent = len(line.plain) - len(line.plain.lstrip(" "))
    if console.soft_wrap or not indent:
        console.print(line)
    else:
        console.print(Padding(line[indent:], (0, 0, 0, indent), expand=False))


def marks_for(stream: TextIO) -> Marks:
    """Unicode marks where the stream can carry them."""
    return UNICODE if (stream.encoding or "").lower().replace("-", "").startswith("utf") else ASCII
