"""Errors of a command: one readable message on standard error, and the exit status that fits."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import textwrap
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from orchestrator.cli.exitcodes import ExitCode, RequestError, code_of_error
from orchestrator.cli.inert import inert
from orchestrator.cli.interruption import SignalledError
from orchestrator.engine import SpecTooLargeError
from orchestrator.errors import IsolationRefusedError
from orchestrator_events.errors import OrchestratorError

__all__ = ["broken_between_words", "reported_errors", "requirement_named", "say"]


@contextmanager
def reported_errors(*, verbose: bool) -> Iterator[None]:
    """Turn an error of the body into a message and typer.Exit; with `verbose` the traceback comes first."""
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except SignalledError as error:
        raise typer.Exit(error.code) from None
    except KeyboardInterrupt:
        raise typer.Exit(128 + signal.SIGINT) from None
    except BrokenPipeError:
        # Whoever read the output has enough; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(ExitCode.INTERNAL) from None
    except Exception as error:  # noqa: BLE001 -- this is where every error of a command ends
        if verbose:
            say(inert("".join(traceback.format_exception(error))))
        say(message_of(error))
        raise typer.Exit(code_of_error(error)) from None


@contextmanager
def requirement_named(place: str) -> Iterator[None]:
    """Have a refusal for too little isolation name its requirement as it was written, and where."""
    try:
        yield
    except IsolationRefusedError as error:
        reason = str(error).replace("require_isolation", place)
        raise IsolationRefusedError(reason, required=error.required, isolation=error.isolation) from None


def say(message: str) -> None:
    """Write a message to standard error."""
    text = inert(message).rstrip()
    sys.stderr.write(f"{broken_between_words(text) if sys.stderr.isatty() else text}\n")
    sys.stderr.flush()


def broken_between_words(text: str) -> str:
    """The text in lines that a terminal has room for, so that it cuts no word; one that is longer stays whole."""
    width = shutil.get_terminal_size().columns
    return "\n".join(line if len(line) <= width else filled(line, width) for line in text.splitlines())


def filled(line: str, width: int) -> str:
    """A line broken between words, what follows its beginning two columns further in."""
    indent = " " * (len(line) - len(line.lstrip(" ")) + 2)
    return textwrap.fill(line, width, break_long_words=False, break_on_hyphens=False, subsequent_indent=indent)


def message_of(error: Exception) -> str:
    """What the user can do something with; for an error nobody expected, also how to see more."""
    if isinstance(error, OrchestratorError | RequestError | SpecTooLargeError):
        return "\n".join([f"error: {error}", *getattr(error, "__notes__", ())])
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        return f"error: {place}{error.strerror or error}"
    return f"internal error: {type(error).__name__}: {error}\nRun it again with -v to see where it happened."
