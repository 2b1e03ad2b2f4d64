"""One started program as a loop sees it: its output and its end arrive as callbacks.

`asyncio.create_subprocess_exec` was rejected: a task of asyncio's own connects the pipes, a loop that shuts
down cancels that task too, and whoever started the program then waits for ever. Here the start is one plain
call that nothing can come between, and the loop only watches descriptors.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Final, Protocol

import attrs

from orchestrator.sandbox.port import Start
from orchestrator.sessions import kill_session

__all__ = ["Child", "Listener"]

CHUNK: Final = 65_536
"""How much is read at a time, bytes; what a pipe holds by default."""
UNKNOWN_STATUS: Final = 255
"""The status of a program that something else in this process has collected."""


class Listener(Protocol):
    """Hears, in the loop's thread, what becomes of a program."""

    def written(self, stream: int, data: bytes) -> None:
        """The program wrote to its standard output (1), its standard error (2) or another pipe it was given."""
        ...

    def closed(self, stream: int) -> None:
        """Nobody will write to that stream any more."""
        ...

    def ended(self, returncode: int) -> None:
        """The program is over; negative: the signal that ended it. Its streams may still be held by others."""
        ...


@attrs.define(eq=False)
class Child:
    """A program in a session of its own, whose streams are pipes.

    It is dead but not collected until `release`, so that no stranger can get its id, which is the session's.
    """

    loop: asyncio.AbstractEventLoop
    listener: Listener
    process: subprocess.Popen[bytes] | None = None
    outputs: dict[int, int] = attrs.Factory(dict[int, int])
    """The descriptors that its open streams are read from."""
    end_descriptor: int | None = None
    """Becomes readable when it ends."""
    is_released: bool = False

    @contextmanager
    def opened(self, streams: Iterable[int]) -> Iterator[Mapping[int, int]]:
        """The writing ends of a pipe for each stream, by which the program is started; ours close with the context."""
        ends: dict[int, int] = {}
        try:
            for stream in streams:
                ends[stream] = self._opened(stream)
            yield ends
        finally:
            for end in ends.values():
                os.close(end)

    def start(self, start: Start, *, stdin: int, ends: Mapping[int, int]) -> None:
        """Start the program, without a shell; `release` is due afterwards, whether this succeeded or not.

        Raises OSError when it cannot be started, ValueError for an argument that no program can be given.
        """
        self.process = subprocess.Popen(  # noqa: S603 -- starting what the host names is what it is for
            start.command,
            stdin=stdin,
            stdout=ends[1],
            stderr=ends[2],
            cwd=start.directory,
            env=start.environment,
            pass_fds=start.inherit,
            start_new_session=True,
        )
        self._watch_end()

    @property
    def id(self) -> int:
        """The id of the process and of its session."""
        assert self.process is not None
        return self.process.pid

    def close(self, stream: int) -> None:
        """Stop reading one stream; whoever writes to it gets SIGPIPE."""
        descriptor = self.outputs.pop(stream, None)
        if descriptor is not None:
            self._forget(descriptor)

    def release(self) -> None:
        """Kill what is left of the session, close the pipes and collect the program; nothing is heard any more.

        May be called again, and after the loop was closed.
        """
        if self.is_released:
            return
        self.is_released = True
        if self.process is not None:
            kill_session(self.process.pid)
        self._stop_watching_end()
        for stream in tuple(self.outputs):
            self.close(stream)
        if self.process is not None and self.process.poll() is None:
            with suppress(RuntimeError):  # no thread can be had, as at the exit of the interpreter
                threading.Thread(target=self.process.wait, name="orchestrator-collect", daemon=True).start()

    def _opened(self, stream: int) -> int:
        reading, writing = os.pipe()
        self.outputs[stream] = reading
        os.fchmod(writing, 0o622)  # so that a program that runs as another user can open it by name, /dev/fd/N
        os.set_blocking(reading, False)
        self.loop.add_reader(reading, self._read, stream)
        return writing

    def _read(self, stream: int) -> None:
        try:
            data = os.read(self.outputs[stream], CHUNK)
        except BlockingIOError:
            return
        if data:
            self.listener.written(stream, data)
        else:
            self.close(stream)
            self.listener.closed(stream)

    def _watch_end(self) -> None:
        try:
            self.end_descriptor = os.pidfd_open(self.id)
            self.loop.add_reader(self.end_descriptor, self._look)
        except (AttributeError, OSError):  # an old C library or kernel, a container that forbids the call
            self._wait_in_thread()

    def _wait_in_thread(self) -> None:
        threading.Thread(target=self._wait, name="orchestrator-wait", daemon=True).start()

    def _wait(self) -> None:
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, self.id, os.WEXITED | os.WNOWAIT)
        with suppress(RuntimeError):  # the loop was closed: nobody listens any more
            self.loop.call_soon_threadsafe(self._look)

    def _look(self) -> None:
        if self.is_released:
            return
        self._stop_watching_end()
        returncode = status_of(self.id)
        if returncode is None:
            self._wait_in_thread()  # a debugger or tracer is told first
        else:
            self.listener.ended(returncode)

    def _stop_watching_end(self) -> None:
        if self.end_descriptor is not None:
            self._forget(self.end_descriptor)
            self.end_descriptor = None

    def _forget(self, descriptor: int) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self.loop.remove_reader(descriptor)
        os.close(descriptor)


def status_of(process: int) -> int | None:
    """How a child ended, which stays to be collected; None: it cannot be told yet."""
    try:
        result = os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return UNKNOWN_STATUS
    if result is None:
        return None
    return result.si_status if result.si_code == os.CLD_EXITED else -result.si_status
