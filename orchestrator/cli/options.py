"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.cli.choices import ColorChoice, DisplayChoice, IsolationLevel

__all__ = [
    "AsJson",
    "Attempts",
    "Color",
    "Display",
    "InputTokens",
    "Money",
    "OutputTokens",
    "Repeats",
    "RequireIsolation",
    "Runs",
    "Time",
    "Tokens",
    "Verbose",
]

Runs = Annotated[Path, typer.Option("--runs", metavar="DIRECTORY", help="Where runs are kept, with their journal.")]
Display = Annotated[
    DisplayChoice,
    typer.Option("--display", help="Progress on standard error; auto is live on a terminal outside of CI."),
]
Color = Annotated[ColorChoice, typer.Option("--color", help="NO_COLOR and FORCE_COLOR are heeded by auto.")]
RequireIsolation = Annotated[
    IsolationLevel | None,
    typer.Option("--require-isolation", help="Least that must hold generator and suite; with less, nothing is run."),
]
AsJson = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show where an error came from.")]

Attempts = Annotated[str | None, typer.Option("--attempts", metavar="N", help="Attempts.")]
Time = Annotated[str | None, typer.Option("--time", metavar="TIME", help="Active time: 90s, 10m, 1h30m.")]
Tokens = Annotated[str | None, typer.Option("--tokens", metavar="N", help="Tokens read and written: 200k.")]
InputTokens = Annotated[str | None, typer.Option("--input-tokens", metavar="N", help="Tokens read.")]
OutputTokens = Annotated[str | None, typer.Option("--output-tokens", metavar="N", help="Tokens written.")]
Money = Annotated[
    str | None, typer.Option("--money", metavar="AMOUNT", help="Money, in the generator's currency: 0.50.")
]
Repeats = Annotated[str | None, typer.Option("--repeats", metavar="N", help="Identical candidates in a row.")]
