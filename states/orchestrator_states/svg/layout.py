"""A lifecycle laid out: boxes, frames, routed arrows and labels that overlap nothing, in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs
from orchestrator_events.errors import StateError

from orchestrator_states.graph import Arrow, Graph
from orchestrator_states.svg.draft import Draft, Texts, drafted
from orchestrator_states.svg.geometry import Point, Rectangle, segments
from orchestrator_states.svg.labels import LabelPlace, label_place
from orchestrator_states.svg.placement import Cell, main_path, place
from orchestrator_states.svg.routing import Board, Pose, corners, ports, turned

__all__ = ["Layout", "LayoutError", "Route", "lay_out"]

TRIES = 16
SLACK_STEP = 24


class LayoutError(StateError):
    """No size was found at which every arrow has a way and every label a place."""

    def __init__(self, lifecycle: str) -> None:
        self.lifecycle = lifecycle
        super().__init__(f"lifecycle {lifecycle!r} is too dense to be drawn here: export it with to_dot instead")


@attrs.frozen
class Route:
    """An arrow's upright polyline from edge to edge, and the place of its label."""

    arrow: Arrow
    points: tuple[Point, ...]
    label: LabelPlace


@attrs.frozen
class Layout:
    """Everything a renderer needs to know about places."""

    graph: Graph
    draft: Draft
    routes: tuple[Route, ...]

    @property
    def extent(self) -> Rectangle:
        """The smallest rectangle around everything that is drawn."""
        areas = [*self.draft.boxes.values(), *self.draft.frames.values(), self.draft.mark]
        for route in self.routes:
            areas += [route.label.area, *segments(route.points)]
        left, top = min(area.left for area in areas), min(area.top for area in areas)
        right, bottom = max(area.right for area in areas), max(area.bottom for area in areas)
        return Rectangle(left, top, right - left, bottom - top)


def lay_out(graph: Graph, texts: Texts) -> Layout:
    """Place everything; `texts` are the label lines by (source, target) as they will be drawn.

    Gaps grow until every arrow has a way and every label a free place; raises LayoutError when none suffices.
    """
    cells = place(graph)
    order = sorted(graph.arrows, key=lambda arrow: urgency(graph, cells, arrow))
    for attempt in range(TRIES):
        draft = drafted(graph, cells, texts, attempt * SLACK_STEP)
        routes = routed(graph, draft, order, texts)
        if routes is not None:
            return Layout(graph, draft, tuple(routes[arrow.source, arrow.target] for arrow in graph.arrows))
    raise LayoutError(graph.lifecycle.name)


def urgency(graph: Graph, cells: Mapping[str, Cell], arrow: Arrow) -> tuple[bool, bool, int, int]:
    """Who is routed first: the main path, then arrows between single states, the short before the long."""
    path = main_path(graph)
    is_on_path = (arrow.source, arrow.target) in set(zip(path, path[1:], strict=False))
    one, other = cells.get(arrow.source), cells.get(arrow.target)
    apart = abs(one.column - other.column) + abs(one.row - other.row) if one and other else 0
    return not is_on_path, not (one and other), apart, graph.arrows.index(arrow)


def routed(
    graph: Graph, draft: Draft, order: list[Arrow], texts: Texts
) -> dict[tuple[str, str], Route] | None:
    """All arrows with their labels, or None when one of them finds no way or no place."""
    board = cleared(draft)
    closed = [*draft.boxes.values(), *draft.titles.values(), draft.mark]
    closed += [side for area in draft.frames.values() for side in area.sides()]
    routes: dict[tuple[str, str], Route] = {}
    for arrow in order:
        way = way_of(graph, draft, board, arrow)
        if way is None:
            return None
        points = corners(way)
        label = label_place(points, texts[arrow.source, arrow.target], closed)
        if label is None:
            return None
        board.take(way)
        board.block(label.area.grown(5))
        closed += [label.area, *segments(points)]
        routes[arrow.source, arrow.target] = Route(arrow, points, label)
    return routes


def cleared(draft: Draft) -> Board:
    """The grid with everything on it that does not bend."""
    board = Board(draft.width, draft.height)
    for area in (*draft.boxes.values(), *draft.titles.values(), draft.mark):
        board.block(area)
    for name, area in draft.frames.items():
        board.fence(name, area)
    return board


def way_of(graph: Graph, draft: Draft, board: Board, arrow: Arrow) -> list[Pose] | None:
    """The cheapest way of an arrow on the board as it is."""
    starts = ends_at(draft, board, arrow.source)
    ends = {turned(pose): price for pose, price in ends_at(draft, board, arrow.target).items()}
    if not starts or not ends:
        return None
    return board.find(starts, ends, crossed(graph, arrow))


def ends_at(draft: Draft, board: Board, element: str) -> dict[Pose, int]:
    """Free places at the edge of a state or group."""
    if element in draft.frames:
        return {pose: price // 12 for pose, price in ports(draft.frames[element], board, corner=2).items()}
    return ports(draft.boxes[element], board, corner=1)


def crossed(graph: Graph, arrow: Arrow) -> Iterator[str]:
    """Groups that only one end of the arrow is in."""
    for group in graph.groups:
        inside = [end in group.states for end in (arrow.source, arrow.target)]
        if inside[0] != inside[1]:
            yield group.name
