"""What the inner step of a sandbox says of the end of the program it started."""

from __future__ import annotations

import os
import re
from typing import Final

from orchestrator.sandbox.inside import COMMAND_MISSING
from orchestrator.sandbox.port import SandboxError

__all__ = ["true_status"]

_SIGNALLED: Final = 128
"""What a shell and bubblewrap add to the number of a signal."""
_WORDS: Final = re.compile(rb"ready\n(?:(exit|signal|errno) (\d{1,3})\n)?")


def true_status(said: bytes, outer: int, stderr: bytes, program: str) -> int:
    """The exit status of the program; negative: the signal that ended it. `outer` is the sandbox's own.

    Raises OSError as starting the program raised it inside, SandboxError when it never came to that.
    """
    found = _WORDS.fullmatch(said)
    if found is None and not said:
        reason = stderr.decode(errors="backslashreplace").strip()[:500] or f"it ended with status {outer}"
        raise SandboxError(f"the sandbox could not be set up: {reason}")
    kind, number = (b"", 0) if found is None or found[1] is None else (found[1], int(found[2]))
    # A program that runs as the same user can write to this pipe, and kill the inner step before that does:
    # what is said counts when the status that the inner step ended with bears it out.
    if outer != {b"exit": number, b"signal": _SIGNALLED + number, b"errno": COMMAND_MISSING}.get(kind):
        return _SIGNALLED - outer if outer > _SIGNALLED else outer
    if kind == b"errno":
        raise OSError(number, os.strerror(number), program)
    return -number if kind == b"signal" else number
