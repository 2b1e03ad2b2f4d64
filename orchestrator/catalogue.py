"""Writes events/README.md: the catalogue of events, joined with what every lifecycle does with them.

python -m orchestrator.catalogue            write it
python -m orchestrator.catalogue --check    compare; exit status 1 where it is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from orchestrator_events.catalogue import Role, as_markdown, as_text
from orchestrator_states.catalogue import LIFECYCLES, lifecycle
from orchestrator_states.lifecycle import Lifecycle

__all__ = ["README", "catalogue_markdown", "catalogue_text", "main", "roles_of"]

README = Path(__file__).parents[1] / "events" / "README.md"
"""Where the catalogue lies in a checkout; an installed package has none."""


def main(arguments: list[str]) -> int:
    """Write the catalogue, or with `--check` compare it; the exit status."""
    written = catalogue_markdown()
    if "--check" in arguments:
        if README.is_file() and README.read_text(encoding="utf-8") == written:
            return 0
        sys.stderr.write(f"{README} is out of date: run python -m orchestrator.catalogue\n")
        return 1
    README.write_text(written, encoding="utf-8")
    return 0


def catalogue_markdown() -> str:
    """The catalogue of events as Markdown."""
    return as_markdown(all_roles())


def catalogue_text() -> str:
    """The catalogue of events as a plain table for a terminal."""
    return as_text(all_roles())


def all_roles() -> Iterator[Role]:
    """What each event does in each built-in lifecycle."""
    for name in LIFECYCLES:
        yield from roles_of(lifecycle(name))


def roles_of(table: Lifecycle) -> Iterator[Role]:
    """What each event does in one lifecycle, in the order of its table."""
    moves: dict[str, list[tuple[str, str]]] = {}
    notes: dict[str, tuple[str, ...]] = {}
    for row in table.rows:
        moves.setdefault(row.event, []).extend((source, row.target) for source in row.sources)
    for each in table.notes:
        notes[each.event] = (*notes.get(each.event, ()), *each.states)
    for event in dict.fromkeys([*moves, *notes]):
        yield Role(event, table.name, tuple(moves.get(event, ())), notes.get(event, ()))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
