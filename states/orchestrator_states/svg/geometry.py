"""Rectangles and polylines on an integer plane: pixels, x to the right, y downwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import attrs

__all__ = ["Point", "Rectangle", "segments"]


class Point(NamedTuple):
    """A place in pixels."""

    x: int
    y: int


@attrs.frozen
class Rectangle:
    """An upright rectangle; its edges belong to it."""

    left: int
    top: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The greatest x."""
        return self.left + self.width

    @property
    def bottom(self) -> int:
        """The greatest y."""
        return self.top + self.height

    @property
    def centre(self) -> Point:
        """The middle, rounded down."""
        return Point(self.left + self.width // 2, self.top + self.height // 2)

    def grown(self, by: int) -> Rectangle:
        """The rectangle with `by` pixels more on every side."""
        return Rectangle(self.left - by, self.top - by, self.width + 2 * by, self.height + 2 * by)

    def overlaps(self, other: Rectangle) -> bool:
        """Whether the two share more than an edge."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def holds(self, point: Point) -> bool:
        """Whether the point is inside or on an edge."""
        return self.left <= point.x <= self.right and self.top <= point.y <= self.bottom

    def sides(self) -> Iterator[Rectangle]:
        """Its four edges as thin rectangles, one pixel to each side of the line."""
        yield Rectangle(self.left, self.top - 1, self.width, 2)
        yield Rectangle(self.left, self.bottom - 1, self.width, 2)
        yield Rectangle(self.left - 1, self.top, 2, self.height)
        yield Rectangle(self.right - 1, self.top, 2, self.height)


def segments(points: Sequence[Point]) -> Iterator[Rectangle]:
    """The legs of an upright polyline as thin rectangles, one pixel to each side of the line."""
    for one, other in pairwise(points):
        left, top = min(one.x, other.x), min(one.y, other.y)
        yield Rectangle(left - 1, top - 1, abs(one.x - other.x) + 2, abs(one.y - other.y) + 2)
