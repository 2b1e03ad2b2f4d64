"""A lifecycle as a table for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from orchestrator_states.graph import row_text
from orchestrator_states.lifecycle import Lifecycle

__all__ = ["to_text"]

HEADER = ("state", "event", "next state")
NOTE_INDENT = "  "


@attrs.frozen
class Signs:
    """The characters a table is drawn with."""

    initial: str
    resting: str
    rule: str
    leads: str


UNICODE = Signs(initial="●", resting="◎", rule="─", leads="→")
ASCII = Signs(initial=">", resting="*", rule="-", leads="->")


def to_text(lifecycle: Lifecycle, *, ascii_only: bool = False) -> str:
    """The rows of a table, state by state, then its notes; ends in a newline.

    The initial and the resting states are marked, with a legend; `ascii_only` draws with ASCII characters.
    """
    signs = ASCII if ascii_only else UNICODE
    lines = [HEADER, *cells(lifecycle, signs)]
    widths = [max(len(line[column]) for line in lines) for column in range(2)]
    shown = [f"{state:{widths[0]}}  {event:{widths[1]}}  {target}".rstrip() for state, event, target in lines]
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
