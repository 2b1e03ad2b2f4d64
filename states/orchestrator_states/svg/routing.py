"""Finds ways for arrows: upright, few bends, few crossings, never along another arrow or through a box.

A shortest-path search (A*) over a coarse grid, one arrow after the other. What an arrow or a label has taken
is closed to the next: lines may cross at right angles, labels and boxes may not be crossed at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import NamedTuple

import attrs

from orchestrator_states.svg.geometry import Point, Rectangle

__all__ = ["DOWN", "LEFT", "RIGHT", "STEP", "UP", "Board", "Pose", "Spot", "corners", "ports", "turned"]

STEP = 12
RIGHT, DOWN, LEFT, UP = range(4)
ACROSS = (1, 0, -1, 0)
DOWNWARDS = (0, 1, 0, -1)

BEND = 8
CRAMPED_BEND = 5
CROSSING = 14
CROWDED = 3
OWN_BORDER = 1
FOREIGN_BORDER = 60
OFF_CENTRE = 3


class Spot(NamedTuple):
    """A crossing of the grid, in steps."""

    column: int
    row: int


class Pose(NamedTuple):
    """A spot and the heading with which it is reached."""

    column: int
    row: int
    heading: int


Node = tuple[int, int, int]
"""A pose as a plain tuple: the search makes a million of them."""


@attrs.define(eq=False)
class Board:
    """The grid, and what is taken on it; where two values come in a pair, the first is for level headings."""

    width: int
    height: int
    closed: tuple[set[Spot], set[Spot]] = attrs.Factory(lambda: (set(), set()))
    stiff: set[Spot] = attrs.Factory(set[Spot])
    used: set[Spot] = attrs.Factory(set[Spot])
    crowded: set[Spot] = attrs.Factory(set[Spot])
    crossings: tuple[set[Spot], set[Spot]] = attrs.Factory(lambda: (set(), set()))
    borders: dict[Spot, str] = attrs.Factory(dict[Spot, str])

    def block(self, area: Rectangle) -> None:
        """Close an area to every arrow, its edges included."""
        spots = {
            Spot(column, row)
            for column in range(-(-area.left // STEP), area.right // STEP + 1)
            for row in range(-(-area.top // STEP), area.bottom // STEP + 1)
        }
        self.close(spots)
        self.crowded |= {near for spot in spots for near in around(spot)}

    def fence(self, name: str, area: Rectangle) -> None:
        """Draw a group's border: it is crossed straight, and never at a corner."""
        left, right = area.left // STEP, area.right // STEP
        top, bottom = area.top // STEP, area.bottom // STEP
        level = {Spot(column, row) for column in range(left, right + 1) for row in (top, bottom)}
        steep = {Spot(column, row) for row in range(top, bottom + 1) for column in (left, right)}
        for closed_spots, spots in zip(self.closed, (level, steep), strict=True):
            closed_spots.update(spots)
            self.stiff |= spots
            self.borders |= dict.fromkeys(spots, name)
        columns, rows = (left, left + 1, right - 1, right), (top, top + 1, bottom - 1, bottom)
        self.close({Spot(column, row) for column in columns for row in rows})

    def close(self, spots: set[Spot]) -> None:
        """Close spots to every heading."""
        for closed_spots in self.closed:
            closed_spots.update(spots)

    def take(self, way: Sequence[Pose]) -> None:
        """Close a way to later arrows, except for crossing it straight."""
        for one, other in pairwise(way):
            level = other.heading % 2
            leg = {Spot(one.column, one.row), Spot(other.column, other.row)}
            self.closed[level].update(leg)
            self.crossings[1 - level].update(leg)
        self.close({Spot(end.column, end.row) for end in (way[0], way[-1])})
        spots = {Spot(pose.column, pose.row) for pose in way}
        self.used |= spots
        self.stiff |= spots
        self.crowded |= {near for spot in spots for near in around(spot)}

    def find(
        self, starts: Mapping[Pose, int], ends: Mapping[Pose, int], own: Iterable[str], limit: int
    ) -> tuple[int, list[Pose]] | None:
        """The cheapest way from a start to an end, both priced, and its price; None at `limit` or above.

        `own` names the groups whose border the arrow has to cross.
        """
        mine = frozenset(own)
        box = hull(ends)
        heap: list[tuple[int, int, Node]] = [
            (price + distance(pose, box), price, pose) for pose, price in starts.items()
        ]
        heapify(heap)
        best = {node: price for _, price, node in heap}
        before: dict[Node, Node] = {}
        while heap and heap[0][0] < limit:
            bound, price, node = heappop(heap)
            if bound == price and node in before and node in ends:
                return price, traced(node, before)
            if price > best[node]:
                continue
            for following, extra in self.steps(node, ends, mine):
                total = price + extra
                if total < best.get(following, total + 1):
                    best[following] = total
                    before[following] = node
                    heappush(heap, (total + distance(following, box), total, following))
        return None

    def steps(self, node: Node, ends: Mapping[Pose, int], own: frozenset[str]) -> list[tuple[Node, int]]:
        """Where an arrow may go from here, and what each step costs."""
        column, row, heading = node
        here = (column, row)
        headings = (heading,) if here in self.stiff else (heading, (heading + 1) % 4, (heading + 3) % 4)
        bend = BEND + (CRAMPED_BEND if here in self.crowded else 0)
        found: list[tuple[Node, int]] = []
        for turn in headings:
            spot = (column + ACROSS[turn], row + DOWNWARDS[turn])
            following = (*spot, turn)
            price = 1 if turn == heading else 1 + bend
            if following in ends:
                found.append((following, price + ends[Pose(*following)]))
            elif spot not in self.closed[turn % 2] and 0 <= spot[0] <= self.width and 0 <= spot[1] <= self.height:
                found.append((following, price + self.fee(spot, turn, own)))
        return found

    def fee(self, spot: tuple[int, int], heading: int, own: frozenset[str]) -> int:
        """What passing here costs beyond the step itself."""
        fee = CROWDED if spot in self.crowded else 0
        if spot in self.stiff:
            fee += CROSSING if spot in self.crossings[heading % 2] else 0
            border = self.borders.get(Spot(*spot))
            if border is not None:
                fee += OWN_BORDER if border in own else FOREIGN_BORDER
        return fee


def ports(area: Rectangle, board: Board, *, corner: int) -> dict[Pose, int]:
    """Free places on a rectangle's edge, heading outwards, dearer the farther from the middle of a side."""
    left, right = area.left // STEP, area.right // STEP
    top, bottom = area.top // STEP, area.bottom // STEP
    middle = Spot(area.centre.x // STEP, area.centre.y // STEP)
    poses = [
        Pose(column, row, heading)
        for column in range(left + corner, right - corner + 1)
        for row, heading in ((top, UP), (bottom, DOWN))
    ]
    poses += [
        Pose(column, row, heading)
        for row in range(top + corner, bottom - corner + 1)
        for column, heading in ((left, LEFT), (right, RIGHT))
    ]
    found: dict[Pose, int] = {}
    for pose in poses:
        offset = abs(pose.row - middle.row) if pose.heading in (LEFT, RIGHT) else abs(pose.column - middle.column)
        if Spot(pose.column, pose.row) not in board.used:
            found[pose] = offset * OFF_CENTRE
    return found


def corners(way: Sequence[Pose]) -> tuple[Point, ...]:
    """The two ends of a way and the bends between them, in pixels."""
    kept = [one for one, other in pairwise(way) if one.heading != other.heading]
    spots = [way[0], *(pose for pose in kept if pose is not way[0]), way[-1]]
    return tuple(Point(spot.column * STEP, spot.row * STEP) for spot in spots)


def turned(pose: Pose) -> Pose:
    """The same spot with the opposite heading."""
    return Pose(pose.column, pose.row, (pose.heading + 2) % 4)


def around(spot: Spot) -> Iterator[Spot]:
    """The nine spots at and next to a spot."""
    for across in (-1, 0, 1):
        for down in (-1, 0, 1):
            yield Spot(spot.column + across, spot.row + down)


def hull(poses: Iterable[Pose]) -> tuple[int, int, int, int]:
    """The least and greatest column, then row, of some poses."""
    columns, rows, _ = zip(*poses, strict=True)
    return min(columns), max(columns), min(rows), max(rows)


def distance(node: Node, box: tuple[int, int, int, int]) -> int:
    """Steps to the rectangle that holds all ends: never more than the way there costs."""
    column, row, _ = node
    left, right, top, bottom = box
    across = left - column if column < left else max(column - right, 0)
    return across + (top - row if row < top else max(row - bottom, 0))


def traced(node: Node, before: Mapping[Node, Node]) -> list[Pose]:
    """The way that led to a node."""
    way = [Pose(*node)]
    while way[-1] in before:
        way.append(Pose(*before[way[-1]]))
    return way[::-1]
