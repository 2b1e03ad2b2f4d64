"""A lifecycle as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from orchestrator_states.graph import row_text
from orchestrator_states.lifecycle import Lifecycle, Row
from orchestrator_states.path import PathOverlay
from orchestrator_states.svg.style import TIMES

__all__ = ["to_text"]

HEADER = ("state", "event", "next state")
PATH_HEADER = ("state", "been", "time", "event", "taken", "next state")
NOTE_INDENT = "  "


@attrs.frozen
class Signs:
    """The characters a table is drawn with."""

    initial: str
    resting: str
    rule: str
    leads: str
    times: str


UNICODE = Signs(initial="●", resting="◎", rule="─", leads="→", times=TIMES)
ASCII = Signs(initial=">", resting="*", rule="-", leads="->", times="x")


def to_text(lifecycle: Lifecycle, *, ascii_only: bool = False, path: PathOverlay | None = None) -> str:
    """The rows of a table, state by state, then its notes; ends in a newline.

    The initial and the resting states are marked, with a legend; `ascii_only` draws with ASCII characters.
    With `path` there are columns for how often and how long a run was in each state, and how often it took
    each move.
    """
    signs = ASCII if ascii_only else UNICODE
    shown = aligned(table_lines(lifecycle, signs, path))
    rule = signs.rule * max(map(len, shown))
    parts = [
        f"lifecycle {lifecycle.name}   {signs.initial} starts here   {signs.resting} may rest here",
        "",
        shown[0],
        rule,
        *shown[1:],
    ]
    if lifecycle.notes:
        parts += ["", "noted without a move", rule, *noted(lifecycle)]
    return "\n".join(parts) + "\n"


def table_lines(lifecycle: Lifecycle, signs: Signs, path: PathOverlay | None) -> Sequence[Sequence[str]]:
    """The header and every row, with the way of a run if there is one."""
    if path is None:
        return [HEADER, *cells(lifecycle, signs)]
    return [PATH_HEADER, *path_cells(lifecycle, signs, path)]


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """Every line with its columns as wide as their widest cell; the last is left as it is."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join([*map(str.ljust, line[:-1], widths[:-1]), line[-1]]).rstrip() for line in lines]


def path_cells(lifecycle: Lifecycle, signs: Signs, path: PathOverlay) -> Iterator[tuple[str, ...]]:
    """The lines of `cells`, with what the run has seen and taken."""
    for state in lifecycle.states:
        rows: list[Row | None] = [row for row in lifecycle.rows if state in row.sources]
        for index, row in enumerate(rows or [None]):
            been = ("", "", "")
            if index == 0:
                been = (mark(lifecycle, state, signs), counted(path.visits.get(state, 0), signs), path.time(state))
            if row is None:
                yield (*been, "", "", "")
                continue
            taken = counted(path.taken([(state, row.event, row.target)]), signs)
            target = f"{signs.leads} {mark(lifecycle, row.target, signs, is_target=True)}"
            yield (*been, row_text(row), taken, target)


def counted(number: int, signs: Signs) -> str:
    """How often; empty for never."""
    return f"{signs.times}{number}" if number else ""


def cells(lifecycle: Lifecycle, signs: Signs) -> Iterator[tuple[str, str, str]]:
    """One line per state and event; the state is named on its first line only."""
    for state in lifecycle.states:
        rows = [row for row in lifecycle.rows if state in row.sources]
        sign = mark(lifecycle, state, signs)
        if not rows:
            yield sign, "", ""
        for index, row in enumerate(rows):
            target = f"{signs.leads} {mark(lifecycle, row.target, signs, is_target=True)}"
            yield sign if index == 0 else "", row_text(row), target


def mark(lifecycle: Lifecycle, state: str, signs: Signs, *, is_target: bool = False) -> str:
    """A state's name behind its sign."""
    if state in lifecycle.resting:
        return f"{signs.resting} {state}"
    if state == lifecycle.initial and not is_target:
        return f"{signs.initial} {state}"
    return f"  {state}"


def noted(lifecycle: Lifecycle) -> Iterator[str]:
    """One line per note: the event and where it is noted."""
    width = max(len(each.event) for each in lifecycle.notes)
    for each in lifecycle.notes:
        yield f"{NOTE_INDENT}{each.event:{width}}  {places(lifecycle, each.states)}"


def places(lifecycle: Lifecycle, states: Sequence[str]) -> str:
    """The states of a note, or what they leave out where that is shorter to say."""
    left = [state for state in lifecycle.states if state not in states]
    if len(left) * 2 < len(states):
        return f"all but {', '.join(left)}" if left else "all"
    return ", ".join(states)
