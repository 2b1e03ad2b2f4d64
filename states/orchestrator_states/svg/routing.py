"""Finds ways for arrows: upright, few bends, few crossings, never along another arrow or through a box.

A shortest-path search (A*) over a coarse grid, one arrow after the other. What an arrow or a label has taken
is closed to the next: lines may cross at right angles, labels and boxes may not be crossed at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
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


@attrs.define(eq=False)
class Board:
    """The grid, and what is taken on it."""

    width: int
    height: int
    solid: set[Spot] = attrs.Factory(set[Spot])
    lines: tuple[set[Spot], set[Spot]] = attrs.Factory(lambda: (set(), set()))
    borders: tuple[dict[Spot, str], dict[Spot, str]] = attrs.Factory(lambda: ({}, {}))
    crowded: set[Spot] = attrs.Factory(set[Spot])

    def block(self, area: Rectangle) -> None:
        """Close an area to every arrow, its edges included."""
        spots = {
            Spot(column, row)
            for column in range(-(-area.left // STEP), area.right // STEP + 1)
            for row in range(-(-area.top // STEP), area.bottom // STEP + 1)
        }
        self.solid |= spots
        self.crowded |= {near for spot in spots for near in around(spot)}

    def fence(self, name: str, area: Rectangle) -> None:
        """Draw a group's border: it is crossed straight, and never at a corner."""
        left, right = area.left // STEP, area.right // STEP
        top, bottom = area.top // STEP, area.bottom // STEP
        for column in range(left, right + 1):
            self.borders[0][Spot(column, top)] = self.borders[0][Spot(column, bottom)] = name
        for row in range(top, bottom + 1):
            self.borders[1][Spot(left, row)] = self.borders[1][Spot(right, row)] = name
        for column in (left, left + 1, right - 1, right):
            for row in (top, top + 1, bottom - 1, bottom):
                self.solid.add(Spot(column, row))

    def is_used(self, spot: Spot) -> bool:
        """Whether an arrow passes or ends here."""
        return spot in self.lines[0] or spot in self.lines[1]

    def take(self, way: Sequence[Pose]) -> None:
        """Close a way to later arrows, except for crossing it straight."""
        for one, other in pairwise(way):
            axis = self.lines[other.heading % 2]
            axis |= {Spot(one.column, one.row), Spot(other.column, other.row)}
        for end in (way[0], way[-1]):
            for axis in self.lines:
                axis.add(Spot(end.column, end.row))
        self.crowded |= {near for pose in way for near in around(Spot(pose.column, pose.row))}

    def find(
        self, starts: Mapping[Pose, int], ends: Mapping[Pose, int], own: Iterable[str]
    ) -> tuple[int, list[Pose]] | None:
        """The cheapest way from a start to an end, both priced, and its price; None when there is none.

        `own` names the groups whose border the arrow has to cross.
        """
        mine = frozenset(own)
        box = (
            min(end.column for end in ends),
            max(end.column for end in ends),
            min(end.row for end in ends),
            max(end.row for end in ends),
        )
        heap = [(price + distance(pose, box), price, pose) for pose, price in starts.items()]
        heap.sort()
        best = dict(starts)
        before: dict[Pose, Pose] = {}
        arrived: set[Pose] = set()
        while heap:
            _, price, pose = heappop(heap)
            if pose in arrived:
                return price, traced(pose, before)
            if price > best[pose]:
                continue
            for following, extra in self.steps(pose, ends, mine):
                total = price + extra
                if total < best.get(following, total + 1):
                    best[following] = total
                    before[following] = pose
                    if following in ends:
                        arrived.add(following)
                        heappush(heap, (total, total, following))
                    else:
                        heappush(heap, (total + distance(following, box), total, following))
        return None

    def steps(self, pose: Pose, ends: Mapping[Pose, int], own: frozenset[str]) -> Iterator[tuple[Pose, int]]:
        """Where an arrow may go from here, and what each step costs."""
        here = Spot(pose.column, pose.row)
        may_bend = not self.is_used(here) and here not in self.borders[0] and here not in self.borders[1]
        for heading in range(4):
            turn = (heading - pose.heading) % 4
            if turn == 2 or (turn and not may_bend):  # noqa: PLR2004  # two quarter turns are a way back
                continue
            spot = Spot(pose.column + ACROSS[heading], pose.row + DOWNWARDS[heading])
            following = Pose(*spot, heading)
            bend = (BEND + (CRAMPED_BEND if here in self.crowded else 0)) if turn else 0
            if following in ends:
                yield following, 1 + bend + ends[following]
            elif self.is_open(spot, heading):
                yield following, 1 + bend + self.fee(spot, heading, own)

    def is_open(self, spot: Spot, heading: int) -> bool:
        """Whether an arrow may pass here in this heading."""
        axis = heading % 2
        return (
            0 <= spot.column <= self.width
            and 0 <= spot.row <= self.height
            and spot not in self.solid
            and spot not in self.lines[axis]
            and spot not in self.borders[axis]
        )

    def fee(self, spot: Spot, heading: int, own: frozenset[str]) -> int:
        """What passing here costs beyond the step itself."""
        other = 1 - heading % 2
        fee = CROSSING if spot in self.lines[other] else 0
        fee += CROWDED if spot in self.crowded else 0
        border = self.borders[other].get(spot)
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
        offset = (
            abs(pose.row - middle.row) if pose.heading in (LEFT, RIGHT) else abs(pose.column - middle.column)
        )
        if not board.is_used(Spot(pose.column, pose.row)):
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


def distance(pose: Pose, box: tuple[int, int, int, int]) -> int:
    """Steps to the rectangle that holds all ends: never more than the way there costs."""
    left, right, top, bottom = box
    across = max(left - pose.column, 0, pose.column - right)
    return across + max(top - pose.row, 0, pose.row - bottom)


def traced(pose: Pose, before: Mapping[Pose, Pose]) -> list[Pose]:
    """The way that led to a pose."""
    way = [pose]
    while way[-1] in before:
        way.append(before[way[-1]])
    return way[::-1]
