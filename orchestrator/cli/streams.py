"""Standard output and error, made fit for text of any kind."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper, UnsupportedOperation

__all__ = ["printing_aside", "tolerate_any_character"]


def tolerate_any_character() -> None:
    """Have standard output and error escape what their encoding lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


@contextmanager
def printing_aside() -> Iterator[None]:
    """Have what the body prints go to standard error, programs that it starts included.

    Phases are code of others and print as they like; standard output is the result's alone.
    """
    sys.stdout.flush()
    try:
        ours, theirs = sys.stdout.fileno(), sys.stderr.fileno()
    except (UnsupportedOperation, ValueError):  # replaced by what is no file: there is nothing for programs to inherit
        with redirect_stdout(sys.stderr):
            yield
        return
    kept = os.dup(ours)
    os.dup2(theirs, ours)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        sys.stdout.flush()  # what was written to it past the redirection
        os.dup2(kept, ours)
        os.close(kept)
