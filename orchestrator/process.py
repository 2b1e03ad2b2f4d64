"""Runs one program to its end: bounded in time and output, and with its whole session gone afterwards."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

import attrs

from orchestrator.attendant import REPORT, STATUS, Attendant
from orchestrator.sandbox.containment import CONTAINMENT, Containment
from orchestrator.sandbox.endings import true_status
from orchestrator.sandbox.port import Launch, Launcher, Place, Start

__all__ = ["CONTAINMENT", "REPORT_VARIABLE", "Completed", "Containment", "Launcher", "run_process"]

REPORT_VARIABLE: Final = "ORCHESTRATOR_REPORT_FD"
"""Names the descriptor that a program may write its report to."""
STATUS_LIMIT: Final = 64
"""What a sandbox may say of the end of a program, bytes."""
_SEALS: Final = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL
"""Whoever reads the input could otherwise write to it, and keep what it likes in memory that nothing bounds."""


@attrs.frozen(kw_only=True)
class Completed:
    """How a program ended, and what it wrote."""

    returncode: int
    """Exit status; negative: the signal that ended it."""
    stdout: bytes
    stderr: bytes
    report: bytes = b""
    """What it wrote to the report pipe, when it was given one."""
    exceeded: str
    """The stream that went over its limit, for which it was killed: stdout, stderr, report, status or empty."""
    overuse: str = ""
    """What its processes took too much of together, for which some or all were killed, in words; mostly empty."""
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
    place: Place | None = None,
    inherit: Sequence[int] = (),
    report_limit: int | None = None,
) -> Completed:
    """Run a program (never through a shell) and wait until it and its session are gone.

    `seconds` bounds everything, the reading of its output included; the limits are bytes and hold while it
    runs. `inherit` are descriptors it gets under the same number. With `report_limit` it gets one more pipe:
    `{report}` in the command is its path, ORCHESTRATOR_REPORT_FD its number. `place` says more of `cwd` to a
    sandbox. Raises OSError when it cannot be started. A cancellation kills it first and is raised then.
    """
    loop = asyncio.get_running_loop()
    began = loop.time()
    limits = {1: stdout_limit, 2: stderr_limit, STATUS: STATUS_LIMIT}
    if report_limit is not None:
        limits[REPORT] = report_limit
    attendant = Attendant(loop, None if seconds is None else began + seconds, limits)
    launch = Launch(
        command=tuple(command),
        environment=environment,
        place=place or Place(directory=cwd),
        seconds=seconds,
        inherit=tuple(inherit),
    )
    with ExitStack() as prepared:
        try:
            start = _started(attendant, launch, launcher, stdin, prepared)
            await _attended(attendant)
            overuse = start.overuse() if start.overuse is not None else ""
        finally:
            attendant.end()  # after a failed start, or when the loop was closed under a call that still waited
    return _completed(attendant, start, launch.command[0], overuse, round((loop.time() - began) * 1_000_000))


def _started(attendant: Attendant, launch: Launch, launcher: Launcher, stdin: bytes, prepared: ExitStack) -> Start:
    with _input_file(stdin) as file, attendant.child.opened(attendant.limits) as ends:
        launch = attrs.evolve(launch, report=ends.get(REPORT), status=ends[STATUS])
        if launch.report is not None:
            launch = attrs.evolve(launch, environment={**launch.environment, REPORT_VARIABLE: str(launch.report)})
        start = prepared.enter_context(launcher.prepared(launch))
        attendant.start(start, stdin=file, ends=ends)
        return start


def _completed(attendant: Attendant, start: Start, program: str, overuse: str, duration_us: int) -> Completed:
    returncode, output = attendant.returncode, attendant.output
    assert returncode is not None
    stdout, stderr = output[1].getvalue(), output[2].getvalue()
    report = output[REPORT].getvalue() if REPORT in output else b""
    if start.tells_status and not attendant.was_stopped:
        returncode = true_status(output[STATUS].getvalue(), returncode, stderr, program)
    if start.reports_on_stdout:
        stdout, report = b"", stdout
    return Completed(
        returncode=returncode,
        stdout=stdout,
        stderr=stderr,
        report=report,
        exceeded=attendant.exceeded,
        overuse=overuse,
        timed_out=attendant.is_late,
        duration_us=duration_us,
    )


@contextmanager
def _input_file(content: bytes) -> Iterator[int]:
    # A file in memory cannot block, break or be left half written, whatever the program does with its
    # standard input; and unlike the socket that asyncio would use, it can be opened as /dev/stdin.
    file = os.memfd_create("stdin", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        with open(file, "wb", closefd=False) as writer:
            writer.write(content)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, _SEALS)
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
