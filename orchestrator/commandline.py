"""Command lines: how they are given, named and explained when they fail."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from orchestrator.process import Completed

__all__ = [
    "CommandLine",
    "ending",
    "located_program",
    "name_of_command",
    "shorter",
    "split_command",
    "unstartable",
]

CommandLine: TypeAlias = str | Sequence[str]
"""A program and its arguments, or one text that is split as a POSIX shell would; no shell ever runs."""


def split_command(command: CommandLine) -> tuple[str, ...]:
    """The program and its arguments; ValueError when there is none or one cannot be passed."""
    words = tuple(shlex.split(command) if isinstance(command, str) else map(os.fspath, command))
    if not words or not words[0]:
        raise ValueError("the command is empty: name a program")
    if any("\0" in word for word in words):
        raise ValueError("the command holds a NUL character: remove it")
    return words


def name_of_command(words: Sequence[str]) -> str:
    """The program's name and a digest of the whole command line, which may hold what nobody should read."""
    digest = sha256("\0".join(words).encode(errors="surrogateescape")).hexdigest()
    program = Path(words[0].strip("{}")).name
    return f"{program}#{digest[:8]}"


def located_program(words: Sequence[str]) -> tuple[str, ...]:
    """The command with a program given by a relative path made absolute, so that it may start anywhere."""
    program = os.path.abspath(words[0]) if "/" in words[0] else words[0]
    return (program, *words[1:])


def unstartable(words: Sequence[str], directory: Path) -> str:
    """Why a program that is given by its path cannot be started from `directory`; empty when nothing speaks against."""
    program = directory / words[0]
    if "/" not in words[0] or os.access(program, os.X_OK):
        return ""
    if program.is_dir():
        return "it is a directory"
    if not program.exists():
        return f"there is no file {program}"
    return f"it is not executable: chmod +x {shlex.quote(words[0])}"


def shorter(own: float | None, allowed: float | None) -> float | None:
    """The shorter of two time limits in seconds, where None is no limit."""
    return min((limit for limit in (own, allowed) if limit is not None), default=None)


def ending(completed: Completed, seconds: float | None) -> str:
    """How a program ended, in words that follow its name; empty when it ended well."""
    if completed.timed_out:
        return f"timed out after {seconds:g} s"
    if completed.exceeded:
        return f"was stopped because it wrote too much to {completed.exceeded}"
    if completed.overuse and completed.returncode:
        return f"was killed: it {completed.overuse}"
    if completed.returncode < 0:
        return f"was killed by {_signal_name(-completed.returncode)}"
    return f"ended with status {completed.returncode}" if completed.returncode else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
