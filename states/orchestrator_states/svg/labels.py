"""Finds free places for words: labels beside the line of their arrow, titles at the edge of their frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import ceil

import attrs

from orchestrator_states.svg.draft import LABEL_LINE, label_width
from orchestrator_states.svg.geometry import Point, Rectangle, segments
from orchestrator_states.svg.routing import STEP

__all__ = ["LabelPlace", "label_place", "title_place"]

CLEARANCE = 4
BESIDE = 8
OWN = CLEARANCE - 1
"""Room between a label and the lines of its own arrow: above or below a level leg it has just that."""
BELOW_PRICE = 10
STEEP_PRICE = 12
LEFT_PRICE = 4
OVERHANG_PRICE = 3
ARROW_HEAD = 12
LONELY = 14
CROWDED_PRICE = 14
TITLE_LETTER = 6.6
TITLE_LINE = 16
TITLE_INSET = 10


@attrs.frozen
class LabelPlace:
    """The rectangle of a label, how its lines are set in it (start, middle or end), and the place's price."""

    area: Rectangle
    anchor: str
    price: int


def label_place(points: Sequence[Point], lines: Sequence[str], closed: Sequence[Rectangle]) -> LabelPlace | None:
    """The best place for a label along a line that `closed` leaves free; None when there is none."""
    width, height = max(map(label_width, lines)), LABEL_LINE * len(lines)
    own = list(segments(points))
    best: LabelPlace | None = None
    for place in sorted(candidates(points, width, height), key=lambda place: place.price):
        if best and best.price <= place.price:
            break
        spacious = place.area.grown(CLEARANCE)
        if any(spacious.overlaps(area) for area in closed) or any(place.area.grown(OWN).overlaps(leg) for leg in own):
            continue
        is_lonely = not any(place.area.grown(LONELY).overlaps(area) for area in closed)
        if best is None or place.price + (0 if is_lonely else CROWDED_PRICE) < best.price:
            best = attrs.evolve(place, price=place.price + (0 if is_lonely else CROWDED_PRICE))
    return best


def title_place(title: str, frame: Rectangle, closed: Sequence[Rectangle]) -> Rectangle | None:
    """A free place for a frame's title: in a corner if one is free, else along the top or bottom edge."""
    width = ceil(len(title) * TITLE_LETTER)
    levels = (frame.top + TITLE_INSET, frame.bottom - TITLE_INSET - TITLE_LINE)
    lefts = range(frame.left + 14, frame.right - width - 13, STEP)
    ends = [(left, top) for left in (lefts[0], lefts[-1]) for top in levels] if lefts else []
    for left, top in (*ends, *((left, top) for top in levels for left in lefts)):
        area = Rectangle(left, top, width, TITLE_LINE)
        if not any(area.grown(CLEARANCE).overlaps(other) for other in closed):
            return area
    return None


def candidates(points: Sequence[Point], width: int, height: int) -> Iterator[LabelPlace]:
    """Places along every leg, priced: near the middle of the line, above a level leg if possible."""
    total = sum(length(one, other) for one, other in pairwise(points))
    walked = 0
    for one, other in pairwise(points):
        reach = length(one, other)
        for along in range(0, reach + 1, STEP // 2):
            x = one.x + (other.x - one.x) * along // max(reach, 1)
            y = one.y + (other.y - one.y) * along // max(reach, 1)
            off = abs(walked + along - (total - ARROW_HEAD) // 2) // 6
            for place in around(Point(x, y), width, height, is_level=one.y == other.y):
                spare = min(along, reach - along) - (width if one.y == other.y else height) // 2
                overhang = max(-spare, 0) * OVERHANG_PRICE
                yield attrs.evolve(place, price=place.price + off + overhang)
        walked += reach


def around(spot: Point, width: int, height: int, *, is_level: bool) -> Iterator[LabelPlace]:
    """The two places beside a spot of a leg."""
    if is_level:
        left = spot.x - width // 2
        yield LabelPlace(Rectangle(left, spot.y - CLEARANCE - height, width, height), "middle", 0)
        yield LabelPlace(Rectangle(left, spot.y + CLEARANCE, width, height), "middle", BELOW_PRICE)
    else:
        top = spot.y - height // 2
        right = Rectangle(spot.x + BESIDE, top, width, height)
        yield LabelPlace(right, "start", STEEP_PRICE)
        yield LabelPlace(Rectangle(spot.x - BESIDE - width, top, width, height), "end", STEEP_PRICE + LEFT_PRICE)


def length(one: Point, other: Point) -> int:
    """Pixels of an upright leg."""
    return abs(one.x - other.x) + abs(one.y - other.y)
