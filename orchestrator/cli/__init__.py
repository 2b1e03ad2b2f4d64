"""The command line. Typer and rich are imported in this package alone, and only when a command is run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command (by default what the process was called with) and return its exit status."""
    missing = [module for module in ("typer", "rich") if find_spec(module) is None]
    if missing:
        names = " and ".join(missing)
        remedy = "install the command line with pip install 'orchestrator-fsm[cli]'"
        sys.stderr.write(f"orchestrator: {names} not found: {remedy}\n")
        return 2
    from orchestrator.cli.application import run_application

    return run_application(sys.argv[1:] if arguments is None else list(arguments))
