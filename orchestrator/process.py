"""Runs one program to its end: bounded in time and output, and with its whole session gone afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol

import attrs

from orchestrator.attendant import Attendant

__all__ = ["CONTAINMENT", "Completed", "Containment", "Launcher", "run_process"]


class Launcher(Protocol):
    """Decides how a command is really started: as it is, or inside a sandbox."""

    isolation: str
    """Name of the level that programs run under."""

    def wrapped(self, command: Sequence[str], directory: Path) -> Sequence[str]:
        """The command line to start in place of `command`, which works in `directory`."""
        ...


@attrs.define(eq=False)
class Containment:
    """The level without a sandbox: own session, no core dumps, clean environment, capped output and time.

    It bounds accidents, not attacks: files, network and memory are the user's own.
    """

    isolation: str = "containment"

    def wrapped(self, command: Sequence[str], directory: Path) -> Sequence[str]:  # noqa: ARG002 the port's shape
        """The command itself."""
        return command


CONTAINMENT: Final = Containment()


@attrs.frozen(kw_only=True)
class Completed:
    """How a program ended, and what it wrote."""

    returncode: int
    """Exit status; negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    exceeded: str
    """The stream that went over its limit, for which the program was killed: stdout, stderr or empty."""
    timed_out: bool
    """Whether the program was killed because its time was over."""
    duration_us: int
    """From before the start until everything was cleaned up, microseconds."""


async def run_process(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    cwd: Path,
    environment: Mapping[str, str],
    seconds: float | None,
    stdout_limit: int,
    stderr_limit: int,
    launcher: Launcher = CONTAINMENT,
) -> Completed:
    """Run a program (never through a shell) and wait until it and its session are gone.

    `seconds` bounds everything, the reading of its output included; the limits are bytes and hold while
    it runs. Raises OSError when it cannot be started. A cancellation kills it first and is raised then.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    deadline = None if seconds is None else began + seconds
    attendant = Attendant(loop, deadline, {1: stdout_limit, 2: stderr_limit})
    try:
        with _input_file(stdin) as file:
            attendant.start(launcher.wrapped(command, cwd), stdin=file, cwd=cwd, environment=environment)
        await _attended(attendant)
    finally:
        attendant.end()  # after a failed start, or when the loop was closed under a call that still waited
    assert attendant.returncode is not None
    return Completed(
        returncode=attendant.returncode,
        stdout=bytes(attendant.output[1]),
        stderr=bytes(attendant.output[2]),
        exceeded=attendant.exceeded,
        timed_out=attendant.is_late,
        duration_us=round((loop.time() - began) * 1_000_000),
    )


@contextmanager
def _input_file(content: bytes) -> Iterator[int]:
    # A file in memory cannot block, break or be left half written, whatever the program does with its
    # standard input; and unlike the socket that asyncio would use, it can be opened as /dev/stdin.
    file = os.memfd_create("stdin")
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(content)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


async def _attended(attendant: Attendant) -> None:
    try:
        await asyncio.wait({attendant.finished})
    except asyncio.CancelledError:
        attendant.abandon()
        await _outlast(attendant)
        raise


async def _outlast(attendant: Attendant) -> None:
    # Bounded by the attendant's own timers, so further cancellations may only make it hurry.
    while not attendant.finished.done():
        try:
            await asyncio.wait({attendant.finished})
        except asyncio.CancelledError:
            attendant.kill()
