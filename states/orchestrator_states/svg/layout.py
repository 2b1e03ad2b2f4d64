"""A lifecycle laid out: boxes, frames, routed arrows and labels that overlap nothing, in pixels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

import attrs

from orchestrator_events.errors import StateError
from orchestrator_states.graph import Arrow, Graph
from orchestrator_states.svg.draft import Draft, Texts, drafted
from orchestrator_states.svg.geometry import Point, Rectangle, segments
from orchestrator_states.svg.labels import LabelPlace, label_place, title_place
from orchestrator_states.svg.placement import Cell, main_path, place
from orchestrator_states.svg.routing import STEP, Board, Pose, corners, ports, turned

__all__ = ["Layout", "LayoutError", "Route", "lay_out"]

TRIES = 64
SLACK_STEP = 24
WIDTH_PRICE = 2
SIDE_PARTS = 4
DEAR_LABEL = 32
UNLIMITED = 1_000_000


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
    titles: Mapping[str, Rectangle]
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
    for slack in slacks():
        draft = drafted(graph, cells, texts, slack)
        found = attempted(graph, draft, order, texts)
        if found is not None:
            return found
    raise LayoutError(graph.lifecycle.name)


def urgency(graph: Graph, cells: Mapping[str, Cell], arrow: Arrow) -> tuple[bool, bool, int, int]:
    """Who is routed first: the main path, then arrows between single states, the short before the long."""
    path = main_path(graph)
    is_on_path = (arrow.source, arrow.target) in set(pairwise(path))
    one, other = cells.get(arrow.source), cells.get(arrow.target)
    apart = abs(one.column - other.column) + abs(one.row - other.row) if one and other else 0
    return not is_on_path, not (one and other), apart, graph.arrows.index(arrow)


def slacks() -> list[tuple[int, int]]:
    """What to add to the gaps, the least first; height is cheaper than width."""
    steps = [(across, down) for across in range(TRIES) for down in range(TRIES)]
    steps.sort(key=lambda step: (step[0] * WIDTH_PRICE + step[1], step))
    return [(across * SLACK_STEP, down * SLACK_STEP) for across, down in steps[:TRIES]]


def attempted(graph: Graph, draft: Draft, order: list[Arrow], texts: Texts) -> Layout | None:
    """All arrows with their labels and all titles, or None when one of them finds no way or no place."""
    canvas = Canvas(graph, draft, cleared(draft), [*draft.boxes.values(), draft.mark])
    canvas.closed += [side for area in draft.frames.values() for side in area.sides()]
    routes: dict[tuple[str, str], Route] = {}
    for arrow in order:
        lines = texts[arrow.source, arrow.target]
        best = min(options(canvas, arrow, lines), key=lambda option: option[0], default=None)
        if best is None:
            return None
        _, way, label = best
        canvas.take(way, label)
        routes[arrow.source, arrow.target] = Route(arrow, corners(way), label)
    titles = titled(canvas)
    if titles is None:
        return None
    return Layout(graph, draft, titles, tuple(routes[arrow.source, arrow.target] for arrow in graph.arrows))


@attrs.define(eq=False)
class Canvas:
    """One attempt: what stands already, as spots closed to arrows and as areas closed to words."""

    graph: Graph
    draft: Draft
    board: Board
    closed: list[Rectangle]

    def take(self, way: list[Pose], label: LabelPlace) -> None:
        """Let an arrow and its label stand."""
        self.board.take(way)
        self.board.block(label.area.grown(5))
        self.closed += [label.area, *segments(corners(way))]


def titled(canvas: Canvas) -> dict[str, Rectangle] | None:
    """A place for every group's title, or None when one has none."""
    frames = canvas.draft.frames
    places = {group.name: title_place(group.title, frames[group.name], canvas.closed) for group in canvas.graph.groups}
    found = {name: place for name, place in places.items() if place is not None}
    return found if len(found) == len(places) else None


def options(canvas: Canvas, arrow: Arrow, lines: Sequence[str]) -> Iterator[tuple[int, list[Pose], LabelPlace]]:
    """Ways of an arrow with a place for its label, and what both together cost.

    The shortest way comes first and is enough if its label stands well. Otherwise, and between two frames
    always, every part of both edges is tried.
    """
    own = frozenset(crossed(canvas.graph, arrow))
    cheapest = UNLIMITED
    for index, (starts, ends) in enumerate(ends_of(canvas.draft, canvas.board, arrow)):
        found = canvas.board.find(starts, ends, own, cheapest) if starts and ends else None
        label = label_place(corners(found[1]), lines, canvas.closed) if found else None
        if found and label:
            cheapest = min(cheapest, found[0] + label.price)
            yield found[0] + label.price, found[1], label
            has_box = arrow.source in canvas.draft.boxes or arrow.target in canvas.draft.boxes
            if index == 0 and has_box and label.price < DEAR_LABEL:
                return


def ends_of(draft: Draft, board: Board, arrow: Arrow) -> Iterator[tuple[dict[Pose, int], dict[Pose, int]]]:
    """Where an arrow may start and end: first anywhere, then each part of one edge with each of the other."""
    starts, ends = (parts(draft, board, element) for element in (arrow.source, arrow.target))
    if arrow.source == arrow.target:
        middle = draft.boxes[arrow.source].centre.x // STEP
        starts = [{pose: price for pose, price in part.items() if pose.column > middle} for part in starts]
        ends = [{pose: price for pose, price in part.items() if pose.column < middle} for part in ends]
    yield joined(starts), inwards(joined(ends))
    for start in starts:
        for end in ends if arrow.target in draft.boxes else [joined(ends)]:
            yield start, inwards(end)


def joined(several: Sequence[dict[Pose, int]]) -> dict[Pose, int]:
    """All parts of an edge as one."""
    return {pose: price for part in several for pose, price in part.items()}


def inwards(places: dict[Pose, int]) -> dict[Pose, int]:
    """The same places, entered instead of left."""
    return {turned(pose): price for pose, price in places.items()}


def cleared(draft: Draft) -> Board:
    """The grid with everything on it that does not bend."""
    board = Board(draft.width // STEP, draft.height // STEP)
    for area in (*draft.boxes.values(), draft.mark):
        board.block(area)
    for name, area in draft.frames.items():
        board.fence(name, area)
    return board


def parts(draft: Draft, board: Board, element: str) -> list[dict[Pose, int]]:
    """Free places at each side of a state's box, or at each stretch of a group's frame."""
    is_box = element in draft.boxes
    area = draft.boxes[element] if is_box else draft.frames[element]
    found: dict[tuple[int, int], dict[Pose, int]] = {}
    for pose, price in ports(area, board, corner=1 if is_box else 2).items():
        stretch = 0 if is_box else (pose.column * STEP - area.left) * SIDE_PARTS // (area.width + 1)
        found.setdefault((pose.heading, stretch), {})[pose] = price if is_box else 0
    return list(found.values())


def crossed(graph: Graph, arrow: Arrow) -> Iterator[str]:
    """Groups that only one end of the arrow is in."""
    for group in graph.groups:
        inside = [end in group.states for end in (arrow.source, arrow.target)]
        if inside[0] != inside[1]:
            yield group.name
