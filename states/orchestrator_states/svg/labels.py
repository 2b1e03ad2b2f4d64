"""Finds a free place for the label of an arrow: beside its own line, away from everything else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import attrs

from orchestrator_states.svg.draft import LABEL_LINE, label_width
from orchestrator_states.svg.geometry import Point, Rectangle, segments
from orchestrator_states.svg.routing import STEP

__all__ = ["LabelPlace", "label_place"]

CLEARANCE = 4
BESIDE = 8
BELOW_PRICE = 10
STEEP_PRICE = 12
LEFT_PRICE = 4
OVERHANG_PRICE = 3
ARROW_HEAD = 12


@attrs.frozen
class LabelPlace:
    """The rectangle of a label, and how its lines are set in it: start, middle or end."""

    area: Rectangle
    anchor: str


def label_place(
    points: Sequence[Point], lines: Sequence[str], closed: Sequence[Rectangle]
) -> LabelPlace | None:
    """The best free place for a label along a line; None when something of `closed` is in the way everywhere."""
    width, height = max(map(label_width, lines)), LABEL_LINE * len(lines)
    own = list(segments(points))
    priced = sorted(candidates(points, width, height), key=lambda candidate: candidate[0])
    for _, place in priced:
        spacious = place.area.grown(CLEARANCE)
        if any(spacious.overlaps(area) for area in closed) or any(place.area.overlaps(leg) for leg in own):
            continue
        return place
    return None


def candidates(
    points: Sequence[Point], width: int, height: int
) -> Iterator[tuple[tuple[int, int, int], LabelPlace]]:
    """Places along every leg, with their price: near the middle of the line, above a level leg if possible."""
    total = sum(length(one, other) for one, other in pairwise(points))
    walked = 0
    for one, other in pairwise(points):
        reach = length(one, other)
        for along in range(0, reach + 1, STEP // 2):
            x = one.x + (other.x - one.x) * along // max(reach, 1)
            y = one.y + (other.y - one.y) * along // max(reach, 1)
            off = abs(walked + along - (total - ARROW_HEAD) // 2) // 6
            for price, place in around(Point(x, y), width, height, is_level=one.y == other.y):
                spare = min(along, reach - along) - (width if one.y == other.y else height) // 2
                overhang = max(-spare, 0) * OVERHANG_PRICE
                yield (price + off + overhang, place.area.top, place.area.left), place
        walked += reach


def around(spot: Point, width: int, height: int, *, is_level: bool) -> Iterator[tuple[int, LabelPlace]]:
    """The two places beside a spot of a leg, with the price of each."""
    if is_level:
        left = spot.x - width // 2
        yield 0, LabelPlace(Rectangle(left, spot.y - CLEARANCE - height, width, height), "middle")
        yield BELOW_PRICE, LabelPlace(Rectangle(left, spot.y + CLEARANCE, width, height), "middle")
    else:
        top = spot.y - height // 2
        yield STEEP_PRICE, LabelPlace(Rectangle(spot.x + BESIDE, top, width, height), "start")
        yield (
            STEEP_PRICE + LEFT_PRICE,
            LabelPlace(Rectangle(spot.x - BESIDE - width, top, width, height), "end"),
        )


def length(one: Point, other: Point) -> int:
    """Pixels of an upright leg."""
    return abs(one.x - other.x) + abs(one.y - other.y)
