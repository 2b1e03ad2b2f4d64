"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.choices import ColorChoice, DisplayChoice

__all__ = ["AsJson", "Color", "Display", "Runs", "Verbose"]

Runs = Annotated[Path, typer.Option("--runs", metavar="DIRECTORY", help="Where runs are kept, with their journal.")]
Display = Annotated[
    DisplayChoice,
    typer.Option("--display", help="Progress on standard error; auto is live on a terminal outside of CI."),
]
Color = Annotated[ColorChoice, typer.Option("--color", help="NO_COLOR and FORCE_COLOR are heeded by auto.")]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show where an error came from.")]
