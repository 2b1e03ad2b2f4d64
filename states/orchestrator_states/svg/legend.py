"""The line below a picture that says what its signs mean."""

from __future__ import annotations

from collections.abc import Iterator

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


def legend(left: int, top: int, width: int) -> Iterator[str]:
    """The signs and their meaning, in as many lines as the width asks for."""
    for (sign, text), (across, row) in zip(ENTRIES, places(width), strict=True):
        x, y = left + across, top + row * LINE + 8
        across_points = {"x": x, "end": x + 19, "tip": x + 28, "inner": x + 3, "middle": x + 14}
        down_points = {"y": y, "above": y - 5, "below": y + 5, "top": y - 8, "inner_top": y - 5}
        yield sign.format(**across_points, **down_points)
        yield f'<text class="hint" x="{x + SIGN}" y="{y + 4}">{text}</text>'


def legend_height(width: int) -> int:
    """Pixels that the legend takes at this width."""
    return (places(width)[-1][1] + 1) * LINE


def places(width: int) -> list[tuple[int, int]]:
    """Where each entry starts: pixels from the left, and its line."""
    found: list[tuple[int, int]] = []
    across = row = 0
    for _, text in ENTRIES:
        needed = SIGN + round(len(text) * LETTER)
        if across and across + needed > width:
            across, row = 0, row + 1
        found.append((across, row))
        across += needed + SPACE
    return found
