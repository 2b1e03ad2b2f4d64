"""Asks a person at the terminal what is to be decided."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

from orchestrator.cli.inert import inert
from orchestrator.workflow.decisions import GO_ON, PROVIDE, Decision

__all__ = ["asked_at_terminal", "can_ask"]

LONGEST: Final = 80
BY_COMMAND: Final = (GO_ON, PROVIDE)
"""Options that need more than their name: a higher limit, a state; they are chosen with a command."""


def can_ask() -> bool:
    """Whether somebody is there to be asked: a terminal to read from, and one to ask on."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def asked_at_terminal(decision: Decision) -> str:
    """The option that was chosen, which an unambiguous beginning names; empty to leave the workflow paused."""
    options = [option for option in decision.options if option not in BY_COMMAND]
    while True:
        sys.stderr.write(f"{inert(decision.about)} in {inert(decision.phase)}: {'/'.join(options)}, or leave it? ")
        sys.stderr.flush()
        answer = sys.stdin.readline().strip().lower()
        if not answer or answer == "leave it":
            return ""
        chosen = chosen_by(answer, options)
        if chosen:
            return chosen
        sys.stderr.write(f"  {inert(answer)[:LONGEST]!r} names none of them, or more than one\n")


def chosen_by(answer: str, options: Sequence[str]) -> str:
    """The option that an answer names, whole or by its beginning; empty for none or several."""
    if answer in options:
        return answer
    fitting = [option for option in options if option.startswith(answer)]
    return fitting[0] if len(fitting) == 1 else ""
