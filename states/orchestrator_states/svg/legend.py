"""The line below a picture that says what its signs mean."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator_states.svg.style import TIMES

__all__ = ["legend", "legend_height"]

LINE = 26
SIGN = 36
LETTER = 6.4
SPACE = 28

ARROW = '<path class="line" d="M{x} {y}H{end}"/><path class="head" d="M{end} {above}L{tip} {y}L{end} {below}Z"/>'
RESTING = (
    '<g class="rest"><rect class="box" x="{x}" y="{top}" width="28" height="16" rx="8"/>'
    '<rect class="ring" x="{inner}" y="{inner_top}" width="22" height="10" rx="5"/></g>'
)
ENTRIES = (
    (
        ARROW,
        "an event moves it, nothing else does",
    ),
    (
        RESTING,
        "it may rest here for good",
    ),
    (
        '<rect class="frame" x="{x}" y="{top}" width="28" height="16" rx="5"/>',
        "an arrow at a frame holds for each state inside",
    ),
    ('<circle class="dot" cx="{middle}" cy="{y}" r="6"/>', "it starts here"),
)
COUNT = (
    '<g class="count sign"><rect x="{x}" y="{top}" width="28" height="18" rx="9"/>'
    f'<text x="{{middle}}" y="{{base}}">{TIMES}2</text></g>'
)
PATH_ENTRIES = (
    (f'<g class="arrow taken">{ARROW}</g>', "this run took it"),
    (f'<g class="arrow idle">{ARROW}</g>', "this run did not"),
    (COUNT, "how often it was there"),
)


def legend(left: int, top: int, width: int, *, has_path: bool = False) -> Iterator[str]:
    """The signs and their meaning, in as many lines as the width asks for."""
    entries = shown(has_path=has_path)
    for (sign, text), (across, row) in zip(entries, places(entries, width), strict=True):
        x, y = left + across, top + row * LINE + 8
        across_points = {"x": x, "end": x + 19, "tip": x + 28, "inner": x + 3, "middle": x + 14}
        down_points = {"y": y, "above": y - 5, "below": y + 5, "top": y - 8, "inner_top": y - 5, "base": y + 5}
        yield sign.format(**across_points, **down_points)
        yield f'<text class="hint" x="{x + SIGN}" y="{y + 4}">{text}</text>'


def legend_height(width: int, *, has_path: bool = False) -> int:
    """Pixels that the legend takes at this width."""
    return (places(shown(has_path=has_path), width)[-1][1] + 1) * LINE


def shown(*, has_path: bool) -> tuple[tuple[str, str], ...]:
    """The signs that a picture has, and their meaning."""
    return (*ENTRIES, *PATH_ENTRIES) if has_path else ENTRIES


def places(entries: Iterable[tuple[str, str]], width: int) -> list[tuple[int, int]]:
    """Where each entry starts: pixels from the left, and its line."""
    found: list[tuple[int, int]] = []
    across = row = 0
    for _, text in entries:
        needed = SIGN + round(len(text) * LETTER)
        if across and across + needed > width:
            across, row = 0, row + 1
        found.append((across, row))
        across += needed + SPACE
    return found
