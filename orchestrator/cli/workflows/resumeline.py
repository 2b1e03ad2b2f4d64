"""The commands that go on with a workflow, as they are typed."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from orchestrator.cli.runplace import RunPlace

__all__ = ["decide_line", "resume_line"]


def resume_line(place: RunPlace, run_id: str) -> str:
    """The command that goes on with it."""
    return place.command("workflow resume", run_id)


def decide_line(place: RunPlace, run_id: str, options: Sequence[str]) -> str:
    """The command that decides what it waits for, with the first option as an example."""
    choice = shlex.quote(options[0]) if options else "CHOICE"
    return place.command("workflow decide", f"{run_id} {choice}")
