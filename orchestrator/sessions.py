"""Signals every process of one session: all that a program started without making a session of its own."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import suppress

__all__ = ["kill_session", "session_members", "terminate_session"]

_SWEEPS = 5


def terminate_session(leader: int) -> None:
    """Ask the processes of the session to end (SIGTERM)."""
    for process in session_members(leader):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, signal.SIGTERM)


def kill_session(leader: int) -> None:
    """Kill every process of the session (SIGKILL), and those they start meanwhile.

    A process that made a session of its own (setsid, a daemon) is out of reach: this bounds accidents,
    not attacks. Only a process-id namespace holds such a one.
    """
    killed: set[int] = set()
    for _ in range(_SWEEPS):
        found = set(session_members(leader)) - killed
        if not found:
            return
        for process in found:
            with suppress(ProcessLookupError, PermissionError):
                # A whole group dies at once, so that none of it can fork in between.
                os.killpg(os.getpgid(process), signal.SIGKILL)
        killed |= found


def session_members(leader: int) -> Iterator[int]:
    """Ids of the processes whose session is `leader`, dead ones that nobody has reaped among them."""
    for process in processes() or [leader]:
        with suppress(ProcessLookupError, PermissionError):
            if os.getsid(process) == leader:
                yield process


def processes() -> list[int]:
    """Ids of all processes; none when they cannot be listed, as while the host has no descriptor free."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdecimal()]
    except OSError:
        return []
