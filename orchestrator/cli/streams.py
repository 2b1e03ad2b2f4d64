"""Standard output and error, made fit for text of any kind."""

from __future__ import annotations

import sys
from io import TextIOWrapper

__all__ = ["tolerate_any_character"]


def tolerate_any_character() -> None:
    """Have standard output and error escape what their encoding lacks, rather than fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
