"""Draws all built-in lifecycles: `python -m orchestrator_states.diagrams [--check] [FOLDER]`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path

from orchestrator_states.catalogue import LIFECYCLES, lifecycle
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.svg import to_svg

__all__ = ["drawn", "main", "stale", "write_all"]


def write_all(folder: Path) -> tuple[Path, ...]:
    """Write every picture into a folder, which is made if need be; the files written, in order."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in drawn().items():
        path = folder / name
        path.write_text(text, encoding="utf-8", newline="\n")
        written.append(path)
    return tuple(written)


def stale(folder: Path) -> tuple[Path, ...]:
    """The files that are missing or differ from what the tables give today."""
    pictures = {folder / name: text.encode() for name, text in drawn().items()}
    return tuple(path for path, body in pictures.items() if not path.is_file() or path.read_bytes() != body)


def drawn() -> dict[str, str]:
    """File name to content: Mermaid text and an SVG picture for each lifecycle."""
    files: dict[str, str] = {}
    for name in LIFECYCLES:
        table = lifecycle(name)
        files[f"{name}.mmd"] = to_mermaid(table)
        files[f"{name}.svg"] = to_svg(table)
    return files


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 when all was written or is up to date, 1 when `--check` found a stale file."""
    parser = ArgumentParser(prog="python -m orchestrator_states.diagrams", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=Path("diagrams"), metavar="FOLDER")
    parser.add_argument("--check", action="store_true", help="write nothing, name the stale files")
    chosen = parser.parse_args(arguments)
    if not chosen.check:
        sys.stdout.writelines(f"wrote {path}\n" for path in write_all(chosen.folder))
        return 0
    outdated = stale(chosen.folder)
    sys.stderr.writelines(f"{path} is stale: run python -m orchestrator_states.diagrams\n" for path in outdated)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main())
