"""Runs one program to its end: bounded in time and output, and with its whole session gone afterwards.

Everything after the start happens in callbacks of the loop rather than in tasks, so that nothing is left
pending and a second cancellation cannot interrupt the clean-up. Signals go through `os.kill`, never through
the transport: its `kill` polls, which races with the loop's own child watcher for the exit status.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol, TypeAlias

import attrs

from orchestrator.sessions import kill_session, terminate_session

__all__ = ["CONTAINMENT", "Completed", "Containment", "Launcher", "run_process"]

TERMINATION_GRACE_S: Final = 0.1
"""Between SIGTERM and SIGKILL, seconds; below the grace that the engine gives a cancelled call."""
DRAIN_S: Final = 0.25
"""How long output is still read once the program has ended and something else holds its pipes, seconds."""
UNKILLABLE_S: Final = 1.0
"""How long the end of a killed program is waited for, seconds; the kernel may hold it in a system call."""


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
    attendant = _Attendant(loop, deadline, {1: stdout_limit, 2: stderr_limit})
    with _input_file(stdin) as file:
        start = loop.subprocess_exec(
            lambda: attendant,
            *launcher.wrapped(command, cwd),
            stdin=file,
            cwd=cwd,
            env=dict(environment),
            start_new_session=True,
        )
        await _attended(loop.create_task(start), attendant)
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


async def _attended(start: asyncio.Task[_Started], attendant: _Attendant) -> None:
    try:
        await asyncio.wait({start})
        start.result()
        await asyncio.wait({attendant.finished})
    except asyncio.CancelledError:
        attendant.abandon()
        await _outlast(start, attendant)
        raise


async def _outlast(start: asyncio.Task[_Started], attendant: _Attendant) -> None:
    # Bounded by the attendant's own timers, so further cancellations may only make it hurry.
    while not start.done() or (_has_started(start) and not attendant.finished.done()):
        try:
            if start.done():
                await asyncio.wait({attendant.finished})
            else:
                await asyncio.wait({start})
        except asyncio.CancelledError:
            attendant.kill()


def _has_started(start: asyncio.Task[_Started]) -> bool:
    return not start.cancelled() and start.exception() is None


class _Attendant(asyncio.SubprocessProtocol):
    """Reads a program's output up to the limits, and sees to it that the program ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, deadline: float | None, limits: Mapping[int, int]) -> None:
        self.loop = loop
        self.deadline = deadline
        self.limits = limits
        self.finished: asyncio.Future[None] = loop.create_future()
        self.output = {1: bytearray(), 2: bytearray()}
        self.open_outputs = {1, 2}
        self.exceeded = ""
        self.is_late = False
        self.is_abandoned = False
        self.is_closing = False
        self.has_ended = False
        self.process = 0
        self.returncode = 0
        self.transport: asyncio.SubprocessTransport | None = None
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.SubprocessTransport)
        self.transport = transport
        self.process = transport.get_pid()
        with suppress(ProcessLookupError, PermissionError):
            resource.prlimit(self.process, resource.RLIMIT_CORE, (0, 0))
        if self.is_abandoned:
            self.stop()
        elif self.deadline is not None:
            self.set_timer(self.deadline, self.expire)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        kept = self.output[fd]
        room = self.limits[fd] - len(kept)
        kept += data[:room]
        if len(data) > room and not self.exceeded:
            self.exceeded = "stdout" if fd == 1 else "stderr"
            self.close_pipe(fd)
            self.stop()

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 the protocol's shape
        self.open_outputs.discard(fd)
        if self.has_ended and not self.open_outputs:
            self.end()

    def process_exited(self) -> None:
        assert self.transport is not None
        self.has_ended = True
        self.returncode = self.transport.get_returncode() or 0
        was_stopped = self.is_late or self.is_abandoned or bool(self.exceeded)
        if was_stopped:
            kill_session(self.process)
        if self.is_abandoned or not self.open_outputs:
            self.end()
            return
        until = self.loop.time() + DRAIN_S
        if self.deadline is not None and not was_stopped:
            until = min(until, self.deadline)
        self.set_timer(until, self.end)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 the protocol's shape
        self.finish()

    def expire(self) -> None:
        """The time is over."""
        self.is_late = True
        self.stop()

    def abandon(self) -> None:
        """Nobody waits for the result any more."""
        self.is_abandoned = True
        if self.has_ended:
            self.end()
        else:
            self.stop()

    def stop(self) -> None:
        """Ask the program to end, and make it end a little later."""
        if self.transport is not None and not self.has_ended:
            terminate_session(self.process)
            self.set_timer(self.loop.time() + TERMINATION_GRACE_S, self.kill)

    def kill(self) -> None:
        """Make the program end now."""
        if self.transport is not None and not self.has_ended:
            kill_session(self.process)
            self.set_timer(self.loop.time() + UNKILLABLE_S, self.give_up)

    def give_up(self) -> None:
        """Stop waiting for a program that the kernel does not let go."""
        self.returncode = -signal.SIGKILL
        self.end()
        self.finish()

    def end(self) -> None:
        """Kill what is left of the session and let go of the pipes; `connection_lost` follows."""
        if self.transport is not None and not self.is_closing:
            self.is_closing = True
            self.cancel_timer()
            kill_session(self.process)
            self.transport.close()

    def finish(self) -> None:
        """Wake whoever waits."""
        self.cancel_timer()
        if not self.finished.done():
            self.finished.set_result(None)

    def close_pipe(self, fd: int) -> None:
        """Stop reading one stream; its writer gets SIGPIPE."""
        pipe = self.transport.get_pipe_transport(fd) if self.transport else None
        if pipe is not None:
            pipe.close()

    def set_timer(self, when: float, callback: Callable[[], None]) -> None:
        """Replace the one timer."""
        self.cancel_timer()
        self.timer = self.loop.call_at(when, callback)

    def cancel_timer(self) -> None:
        """Forget the timer."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None


_Started: TypeAlias = tuple[asyncio.SubprocessTransport, _Attendant]
