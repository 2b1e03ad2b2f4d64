"""The table of a lifecycle in a terminal."""

from __future__ import annotations

import attrs

from orchestrator_states import RUN, Lifecycle, Note, StateName
from orchestrator_states.path import PathOverlay
from orchestrator_states.terminal import to_text


def test_small_table_in_full(chain: Lifecycle) -> None:
    """State, event and next state in columns, the initial and the resting state marked, then the notes."""
    noted = attrs.evolve(chain, notes=[Note("subscriber:failed", (StateName("a"), StateName("b")))])
    assert to_text(noted) == (
        "lifecycle chain   ● starts here   ◎ may rest here\n"
        "\n"
        "state  event           next state\n"
        "─────────────────────────────────\n"
        "● a    attempt:passed  → ◎ b\n"
        "       attempt:failed  →   a\n"
        "◎ b    prompt:refined  →   a\n"
        "\n"
        "noted without a move\n"
        "─────────────────────────────────\n"
        "  subscriber:failed  all\n"
    )


def test_ascii_variant_is_ascii_and_has_the_same_lines() -> None:
    """The plain variant holds ASCII characters only and says the same, line by line."""
    plain, rich = to_text(RUN, ascii_only=True), to_text(RUN)
    signs = str.maketrans({"●": ">", "◎": "*", "─": "-"})
    words = [[word for word in text.replace("->", "→").split() if "-" not in word] for text in (plain, rich)]
    assert plain.isascii()
    assert words[0] == [word.translate(signs) for word in words[1] if set(word) != {"─"}]


def test_every_move_has_its_line(table: Lifecycle) -> None:
    """There is one line with an arrow for every state and row that leads out of it."""
    moves = sum(len(row.sources) for row in table.rows)
    assert to_text(table).count("→") == moves


def test_long_lists_are_told_by_what_they_leave_out() -> None:
    """A note that holds nearly everywhere names its exceptions."""
    lines = [line.split(maxsplit=1) for line in to_text(RUN).splitlines()]
    assert ["orchestrator:complete", "all but ready"] in lines


def test_the_way_of_a_run_in_full(chain: Lifecycle) -> None:
    """With a path there are columns for how often and how long a state was seen, and how often a move was taken."""
    path = PathOverlay(
        visits={"a": 3, "b": 1},
        moves={("a", "attempt:failed", "a"): 2, ("a", "attempt:passed", "b"): 1},
        times_us={"a": 65_000_000},
    )
    assert to_text(chain, ascii_only=True, path=path) == (
        "lifecycle chain   > starts here   * may rest here\n"
        "\n"
        "state  been  time    event           taken  next state\n"
        "------------------------------------------------------\n"
        "> a    x3    1m 05s  attempt:passed  x1     -> * b\n"
        "                     attempt:failed  x2     ->   a\n"
        "* b    x1            prompt:refined         ->   a\n"
    )
