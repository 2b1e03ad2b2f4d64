"""From grid cells to pixels: boxes, group frames, and gaps wide enough for what runs in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import ceil

import attrs

from orchestrator_states.graph import Graph
from orchestrator_states.svg.geometry import Rectangle
from orchestrator_states.svg.placement import Cell
from orchestrator_states.svg.routing import STEP

__all__ = ["LABEL_LINE", "Draft", "Texts", "drafted", "label_width"]

Texts = Mapping[tuple[str, str], Sequence[str]]

BOX_HEIGHT = 48
SMALLEST_BOX = 120
STATE_LETTER = 8.6
STATE_PADDING = 34
LABEL_LETTER = 7.25
LABEL_LINE = 16
FRAME_SIDE = 36
FRAME_TOP = 48
FRAME_BOTTOM = 36
MARK_LENGTH = 48
MARGIN = 96
COLUMN_GAP = 72
ROW_GAP = 60
ARROW_ROOM = 36


@attrs.frozen
class Draft:
    """Where boxes, frames and the mark of the initial state are; arrows are still to come."""

    boxes: Mapping[str, Rectangle]
    frames: Mapping[str, Rectangle]
    mark: Rectangle
    width: int
    height: int


def drafted(graph: Graph, cells: Mapping[str, Cell], texts: Texts, slack: tuple[int, int]) -> Draft:
    """Places for all that does not bend; `slack` is what every gap between columns and rows gets on top."""
    widths = column_widths(cells)
    gaps = column_gaps(graph, cells, texts, slack[0])
    rows = row_gaps(graph, cells, slack[1])
    lefts = [stop - width for stop, width in zip(running(gaps, widths), widths, strict=True)]
    tops = [stop - BOX_HEIGHT for stop in running(rows, [BOX_HEIGHT] * (len(rows) - 1))]
    boxes: dict[str, Rectangle] = {}
    for state, cell in cells.items():
        width = box_width(state)
        left = lefts[cell.column] + (widths[cell.column] - width) // 2
        boxes[state] = Rectangle(left, tops[cell.row], width, BOX_HEIGHT)
    first = boxes[graph.lifecycle.initial]
    mark = Rectangle(first.left - MARK_LENGTH, first.centre.y - 6, MARK_LENGTH, 12)
    frames: dict[str, Rectangle] = {}
    for group in graph.groups:
        inside = [boxes[state] for state in group.states]
        inside += [mark] if graph.lifecycle.initial in group.states else []
        frames[group.name] = frame(inside, FRAME_SIDE + slack[0] // 2)
    return Draft(boxes, frames, mark, sum(widths) + sum(gaps), BOX_HEIGHT * (len(rows) - 1) + sum(rows))


def label_width(text: str) -> int:
    """Pixels that a line of a label takes in the monospaced face."""
    return ceil(len(text) * LABEL_LETTER)


def box_width(state: str) -> int:
    """Pixels of a state's box: a multiple of two steps, so that its middle is on the grid."""
    needed = len(state) * STATE_LETTER + STATE_PADDING
    return max(SMALLEST_BOX, ceil(needed / (2 * STEP)) * 2 * STEP)


def column_widths(cells: Mapping[str, Cell]) -> list[int]:
    """The widest box of each column; a column without one gets the smallest width."""
    columns = max(cell.column for cell in cells.values()) + 1
    return [
        max([box_width(state) for state, cell in cells.items() if cell.column == column], default=SMALLEST_BOX)
        for column in range(columns)
    ]


def column_gaps(graph: Graph, cells: Mapping[str, Cell], texts: Texts, slack: int) -> list[int]:
    """Room before each column and after the last: for frames, arrows and the labels of straight arrows."""
    side = FRAME_SIDE + slack // 2
    count = max(cell.column for cell in cells.values()) + 2
    frames = borders(graph, {state: cell.column for state, cell in cells.items()}, side, side)
    frames[cells[graph.lifecycle.initial].column] += MARK_LENGTH
    rooms = [COLUMN_GAP] * count
    for (source, target), lines in texts.items():
        one, other = cells.get(source), cells.get(target)
        is_way_back = one and other and one.column > other.column and (target, source) in texts
        if one and other and not is_way_back and one.row == other.row and abs(one.column - other.column) == 1:
            between = max(one.column, other.column)
            rooms[between] = max(rooms[between], max(map(label_width, lines)) + ARROW_ROOM)
    inner = [rounded(room + border + slack) for room, border in zip(rooms, frames, strict=True)]
    return [inner[0] + MARGIN, *inner[1:-1], inner[-1] + MARGIN]


def row_gaps(graph: Graph, cells: Mapping[str, Cell], slack: int) -> list[int]:
    """Room above each row and below the last."""
    frames = borders(graph, {state: cell.row for state, cell in cells.items()}, FRAME_TOP, FRAME_BOTTOM)
    inner = [rounded(ROW_GAP + border + slack) for border in frames]
    return [inner[0] + MARGIN, *inner[1:-1], inner[-1] + MARGIN]


def borders(graph: Graph, lines: Mapping[str, int], before: int, after: int) -> list[int]:
    """Room that frames need in each gap, before those that begin there and after those that end."""
    opening, closing = ([0] * (max(lines.values()) + 2) for _ in range(2))
    for group in graph.groups:
        places = [lines[state] for state in group.states]
        opening[min(places)] = before
        closing[max(places) + 1] = after
    return [one + other for one, other in zip(opening, closing, strict=True)]


def rounded(pixels: int) -> int:
    """Up to the next grid line."""
    return ceil(pixels / STEP) * STEP


def running(gaps: Sequence[int], sizes: Sequence[int]) -> list[int]:
    """Where each column or row ends."""
    return list(accumulate(gap + size for gap, size in zip(gaps, sizes, strict=False)))


def frame(areas: Sequence[Rectangle], side: int) -> Rectangle:
    """The border around the boxes of a group, with room for its title."""
    left, right = min(area.left for area in areas) - side, max(area.right for area in areas) + side
    top, bottom = (
        min(area.top for area in areas) - FRAME_TOP,
        max(area.bottom for area in areas) + FRAME_BOTTOM,
    )
    return Rectangle(left, top, right - left, bottom - top)
