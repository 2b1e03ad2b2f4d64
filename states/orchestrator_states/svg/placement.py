"""Where states go on a grid: the main path first, left to right, the rest near their neighbours.

A layered layout by ranks alone was rejected: it puts the state that closes a loop to the right of all others,
and the way back then runs below everything. Here only the main path has ranks; a state beside it goes where
its neighbours are. A group is a block of cells that no other state enters, so that its border can be drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from math import ceil
from typing import NamedTuple

from orchestrator_states.graph import Graph

__all__ = ["Cell", "main_path", "place"]

WIDEST_PATH = 5
NARROWEST = 3

Ways = Callable[[str], tuple[tuple[str, ...], ...]]


class Cell(NamedTuple):
    """A place on the grid, counted from the top left."""

    column: int
    row: int


def place(graph: Graph) -> dict[str, Cell]:
    """A cell of its own for every state."""
    path = main_path(graph)
    blocks = blocks_of(graph, path)
    cells: dict[str, Cell] = {}
    taken: set[Cell] = set()
    column = row = 0
    for block in blocks:
        if not set(block) & set(path):
            continue
        inner = arrange(graph, block, path)
        anchor = next(inner[state].row for state in path if state in inner)
        shift = Cell(column, max(row - anchor, 0))
        settle(inner, shift, cells, taken)
        column = max(cell.column for cell in taken) + 1
        row = next(cells[state].row for state in reversed(path) if state in inner)
    for block in blocks:
        if not set(block) & set(path):
            inner = arrange(graph, block, path)
            settle(inner, nearest(graph, inner, cells, taken, max(column, NARROWEST)), cells, taken)
    return cells


def main_path(graph: Graph) -> tuple[str, ...]:
    """The longest way from the initial state to the first resting one that follows the order of declaration.

    Without such a way: the longest from the initial state to anywhere.
    """
    lifecycle = graph.lifecycle
    ways = ways_from(graph, lifecycle.states)
    to_goal = [way for way in ways(lifecycle.initial) if way[-1] == lifecycle.resting[0]]
    return max(to_goal or ways(lifecycle.initial), key=len)


def ways_from(graph: Graph, states: Sequence[str]) -> Ways:
    """For a state, the longest way to each state behind it that follows the order of declaration."""
    rank = {state: index for index, state in enumerate(states)}
    steps = {(arrow.source, arrow.target) for arrow in graph.arrows}
    onward = {
        state: [other for other in states if (state, other) in steps and rank[other] > rank[state]] for state in states
    }

    @cache
    def ways(state: str) -> tuple[tuple[str, ...], ...]:
        best: dict[str, tuple[str, ...]] = {state: (state,)}
        for following in onward[state]:
            for way in ways(following):
                if len(way) + 1 > len(best.get(way[-1], ())):
                    best[way[-1]] = (state, *way)
        return tuple(best.values())

    return ways


def blocks_of(graph: Graph, path: Sequence[str]) -> list[tuple[str, ...]]:
    """Groups and lone states in the order in which the main path, then the table, comes to them."""
    blocks: list[tuple[str, ...]] = []
    if not any(graph.group_of(state) for state in path):
        blocks.append(tuple(path))
    for state in (*path, *graph.lifecycle.states):
        group = graph.group_of(state)
        if not any(state in block for block in blocks):
            blocks.append(group.states if group else (state,))
    return blocks


def arrange(graph: Graph, block: Sequence[str], path: Sequence[str]) -> dict[str, Cell]:
    """Cells of a block's states, from (0, 0): its part of the path in a line that turns back when long."""
    line = [state for state in path if state in block] or longest_line(graph, block)
    lines = ceil(len(line) / WIDEST_PATH)
    width = ceil(len(line) / lines)
    cells: dict[str, Cell] = {}
    for index, state in enumerate(line):
        row, offset = divmod(index, width)
        cells[state] = Cell(offset if row % 2 == 0 else width - 1 - offset, row)
    taken = set(cells.values())
    for state in block:
        if state not in cells:
            spot = nearest(graph, {state: Cell(0, 0)}, cells, taken, max(width, NARROWEST))
            settle({state: Cell(0, 0)}, spot, cells, taken)
    return cells


def longest_line(graph: Graph, block: Sequence[str]) -> Sequence[str]:
    """The longest way inside a block off the main path; all of it in a line when nothing links its states."""
    ways = ways_from(graph, block)
    line = max((way for state in block for way in ways(state)), key=len)
    return line if len(line) > 1 else block


def nearest(graph: Graph, inner: Mapping[str, Cell], cells: Mapping[str, Cell], taken: set[Cell], columns: int) -> Cell:
    """The free place for a block that is closest to the states it is linked with."""
    width = max(cell.column for cell in inner.values()) + 1
    height = max(cell.row for cell in inner.values()) + 1
    near = [cells[state] for state in neighbours(graph, inner) if state in cells] or list(cells.values())
    middle = sum(cell.column for cell in near) / len(near), sum(cell.row for cell in near) / len(near)

    def distance(corner: Cell) -> tuple[float, int, int]:
        across = abs(corner.column + (width - 1) / 2 - middle[0])
        down = abs(corner.row + (height - 1) / 2 - middle[1])
        return round(across + down * 1.25, 6), corner.row, corner.column

    rows = max(cell.row for cell in taken) + 2
    corners = [Cell(column, row) for row in range(rows) for column in range(max(columns - width, 0) + 1)]
    free = [corner for corner in corners if not taken & rectangle(corner, width, height)]
    return min(free, key=distance)


def neighbours(graph: Graph, states: Iterable[str]) -> list[str]:
    """States outside that an arrow links with these, once per arrow."""
    inside = set(states)
    found: list[str] = []
    for arrow in graph.arrows:
        ends = graph.members(arrow.source), graph.members(arrow.target)
        for one, other in (ends, ends[::-1]):
            if inside & set(one):
                found += [state for state in other if state not in inside]
    return found


def settle(inner: Mapping[str, Cell], shift: Cell, cells: dict[str, Cell], taken: set[Cell]) -> None:
    """Move a block to its place and take the whole rectangle it covers."""
    for state, cell in inner.items():
        cells[state] = Cell(cell.column + shift.column, cell.row + shift.row)
    width = max(cell.column for cell in inner.values()) + 1
    height = max(cell.row for cell in inner.values()) + 1
    taken |= rectangle(shift, width, height)


def rectangle(corner: Cell, width: int, height: int) -> set[Cell]:
    """All cells of a rectangle."""
    return {Cell(corner.column + across, corner.row + down) for across in range(width) for down in range(height)}
