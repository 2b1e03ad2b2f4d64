"""Writes a laid-out lifecycle as SVG: whole pixels, stable order, nothing but text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from re import sub
from xml.sax.saxutils import escape

from orchestrator_states.graph import Arrow, Graph, Label, graph_of
from orchestrator_states.lifecycle import Lifecycle
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg.draft import LABEL_LINE, label_width
from orchestrator_states.svg.geometry import Point, Rectangle
from orchestrator_states.svg.labels import LabelPlace
from orchestrator_states.svg.layout import Layout, Route, lay_out
from orchestrator_states.svg.legend import legend, legend_height
from orchestrator_states.svg.style import TIMES, stylesheet, tone_of

__all__ = ["to_svg"]

MARGIN = 32
HEADER = 76
BEND_RADIUS = 9
HEAD_LENGTH = 9
HEAD_HALF = 5
NARROWEST_PAPER = 560
LONGEST_LINE = 26


def to_svg(lifecycle: Lifecycle, *, path: PathOverlay | None = None) -> str:
    """The picture of a lifecycle, light and dark, as an SVG document; the same table gives the same bytes.

    With `path` it also shows how often and how long a run was in each state, and how often it took each move.
    Raises LayoutError for a table too dense to be drawn.
    """
    graph = graph_of(lifecycle)
    texts = {(arrow.source, arrow.target): texts_of(arrow, path) for arrow in graph.arrows}
    layout = lay_out(graph, texts)
    extent = layout.extent
    width = max(extent.width + 2 * MARGIN, NARROWEST_PAPER)
    shift = Point((width - extent.width) // 2 - extent.left, HEADER - extent.top)
    foot = HEADER + extent.height + 28
    has_path = path is not None
    height = foot + legend_height(width - 2 * MARGIN, has_path=has_path) + MARGIN - 8
    parts = [
        *opening(graph, width, height, path),
        f'<g transform="translate({shift.x} {shift.y})">',
        *frames(layout),
        *arrows(layout, texts, path),
        *states(layout, path),
        "</g>",
        *legend(MARGIN, foot, width - 2 * MARGIN, has_path=has_path),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def texts_of(arrow: Arrow, path: PathOverlay | None) -> tuple[str, ...]:
    """The label lines of an arrow, with how often a run took them; long conditions get their own line."""
    lines: list[str] = []
    for label in arrow.labels:
        event, bracket, condition = label.text.partition(" [")
        count = f" {TIMES}{taken(label, path)}" if taken(label, path) else ""
        if len(label.text) > LONGEST_LINE:
            lines += [event + count, bracket.lstrip() + condition]
        else:
            lines.append(label.text + count)
    return tuple(lines)


def taken(label: Label, path: PathOverlay | None) -> int:
    """How often a run took any move that a label stands for."""
    return path.taken(label.moves) if path else 0


def opening(graph: Graph, width: int, height: int, path: PathOverlay | None) -> Iterator[str]:
    """The document's head: size, description for those who cannot see it, style, paper and title."""
    name = escape(graph.lifecycle.name)
    identifier = "lifecycle-" + sub(r"[^0-9A-Za-z]+", "-", graph.lifecycle.name)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    labelled = f'role="img" aria-labelledby="{identifier}-title {identifier}-description"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" class="lifecycle" {size} {labelled}>'
    yield f'<title id="{identifier}-title">Lifecycle {name}</title>'
    yield f'<desc id="{identifier}-description">{escape(description(graph, path))}</desc>'
    yield f"<style>\n{stylesheet(has_path=path is not None)}</style>"
    yield f'<rect class="paper" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="14"/>'
    yield f'<text class="name" x="{MARGIN}" y="42">{name}<tspan class="hint" dx="9">lifecycle</tspan></text>'


def description(graph: Graph, path: PathOverlay | None) -> str:
    """The table in words, and where the run has been."""
    lifecycle = graph.lifecycle
    named = {group.name: f"{group.title} ({', '.join(group.states)})" for group in graph.groups}
    lines = [f"Starts in {lifecycle.initial}. Rests in {', '.join(lifecycle.resting)}."]
    for arrow in graph.arrows:
        source, target = named.get(arrow.source, arrow.source), named.get(arrow.target, arrow.target)
        lines += [f"{source}: {label.text} leads to {target}." for label in arrow.labels]
    if path is not None:
        lines += [
            f"The run was in {state} {been(path, state)}." for state in lifecycle.states if path.visits.get(state)
        ]
    return "\n".join(lines)


def been(path: PathOverlay, state: str) -> str:
    """How often a run was in a state, and how long."""
    time = path.time(state)
    return f"{TIMES}{path.visits[state]}, {time}" if time else f"{TIMES}{path.visits[state]}"


def frames(layout: Layout) -> Iterator[str]:
    """The borders of groups and their titles."""
    for group in layout.graph.groups:
        area, title = layout.draft.frames[group.name], layout.titles[group.name]
        yield f'<rect class="frame" {box(area)} rx="18"/>'
        yield f'<text class="group" x="{title.left}" y="{title.top + 13}">{escape(group.title)}</text>'


def arrows(layout: Layout, texts: Mapping[tuple[str, str], Sequence[str]], path: PathOverlay | None) -> Iterator[str]:
    """The mark of the initial state, then every arrow with its label."""
    mark = layout.draft.mark
    start = Point(mark.left + 6, mark.centre.y)
    yield f'<g class="arrow"><circle class="dot" cx="{start.x}" cy="{start.y}" r="6"/>'
    yield from line((Point(start.x + 6, start.y), Point(mark.right, start.y)))
    yield "</g>"
    for route in layout.routes:
        yield f'<g class="{kind_of(route, path)}">'
        yield from line(route.points)
        yield from label_lines(texts[route.arrow.source, route.arrow.target], route.label)
        yield "</g>"


def kind_of(route: Route, path: PathOverlay | None) -> str:
    """The classes of an arrow: whether a run took it."""
    if path is None:
        return "arrow"
    return "arrow taken" if any(taken(label, path) for label in route.arrow.labels) else "arrow idle"


def line(points: Sequence[Point]) -> Iterator[str]:
    """A polyline with rounded bends and a head at its end."""
    before, tip = points[-2], points[-1]
    across, down = sign(tip.x - before.x), sign(tip.y - before.y)
    neck = Point(tip.x - across * HEAD_LENGTH, tip.y - down * HEAD_LENGTH)
    steps = [f"M{points[0].x} {points[0].y}"]
    for (one, bend), (_, other) in pairwise(pairwise((*points[:-1], neck))):
        radius = min(BEND_RADIUS, reach(one, bend) // 2, reach(bend, other) // 2)
        enter, leave = towards(bend, one, radius), towards(bend, other, radius)
        steps.append(f"L{enter.x} {enter.y}Q{bend.x} {bend.y} {leave.x} {leave.y}")
    steps.append(f"L{neck.x} {neck.y}")
    yield f'<path class="line" d="{"".join(steps)}"/>'
    left = Point(neck.x - down * HEAD_HALF, neck.y + across * HEAD_HALF)
    right = Point(neck.x + down * HEAD_HALF, neck.y - across * HEAD_HALF)
    yield f'<path class="head" d="M{left.x} {left.y}L{tip.x} {tip.y}L{right.x} {right.y}Z"/>'


def label_lines(lines: Sequence[str], place: LabelPlace) -> Iterator[str]:
    """The lines of a label, set to the width the layout has reserved, whatever face the reader has."""
    area = place.area
    x = {"start": area.left, "middle": area.centre.x, "end": area.right}[place.anchor]
    yield f'<g class="event" text-anchor="{place.anchor}">'
    for index, text in enumerate(lines):
        y = area.top + LABEL_LINE * index + 12
        yield f'<text x="{x}" y="{y}" textLength="{label_width(text)}">{escape(text)}</text>'
    yield "</g>"


def states(layout: Layout, path: PathOverlay | None) -> Iterator[str]:
    """The boxes: open states with round corners, resting ones as double-lined pills."""
    lifecycle = layout.graph.lifecycle
    for state in lifecycle.states:
        area = layout.draft.boxes[state]
        is_resting = state in lifecycle.resting
        tone = tone_of(state, is_initial=state == lifecycle.initial, is_resting=is_resting)
        yield f'<g class="state {tone}">'
        yield f'<rect class="box" {box(area)} rx="{area.height // 2 if is_resting else 10}"/>'
        if is_resting:
            yield f'<rect class="ring" {box(area.grown(-4))} rx="{area.height // 2 - 4}"/>'
        time = path.time(state) if path else ""
        yield f'<text x="{area.centre.x}" y="{area.centre.y - 2 if time else area.centre.y + 5}">{escape(state)}</text>'
        if time:
            yield f'<text class="time" x="{area.centre.x}" y="{area.centre.y + 14}">{escape(time)}</text>'
        yield "</g>"
        if path and path.visits.get(state):
            yield from badge(area, path.visits[state])


def badge(area: Rectangle, visits: int) -> Iterator[str]:
    """How often a run was in a state, at the corner of its box."""
    width = 16 + 7 * len(str(visits))
    left, top = area.right - width + 8, area.top - 9
    yield f'<g class="count"><rect x="{left}" y="{top}" width="{width}" height="18" rx="9"/>'
    yield f'<text x="{left + width // 2}" y="{top + 13}">{TIMES}{visits}</text></g>'


def box(area: Rectangle) -> str:
    """A rectangle's attributes."""
    return f'x="{area.left}" y="{area.top}" width="{area.width}" height="{area.height}"'


def sign(number: int) -> int:
    """-1, 0 or 1."""
    return (number > 0) - (number < 0)


def reach(one: Point, other: Point) -> int:
    """Pixels of an upright leg."""
    return abs(one.x - other.x) + abs(one.y - other.y)


def towards(start: Point, goal: Point, by: int) -> Point:
    """The point `by` pixels from one point to another along an upright leg."""
    return Point(start.x + sign(goal.x - start.x) * by, start.y + sign(goal.y - start.y) * by)
