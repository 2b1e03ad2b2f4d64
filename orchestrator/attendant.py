"""Sees to it that one program ends: keeps its output up to the limits, and stops it when its time is over.

Everything happens in callbacks of the loop rather than in tasks, so that nothing is left pending and a second
cancellation cannot interrupt the clean-up.
"""

from __future__ import annotations

import asyncio
import resource
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from io import BytesIO
from typing import Final

import attrs

from orchestrator.child import Child
from orchestrator.sandbox.port import Start
from orchestrator.sessions import kill_session, terminate_session

__all__ = ["REPORT", "STATUS", "Attendant"]

TERMINATION_GRACE_S: Final = 0.1
"""Between SIGTERM and SIGKILL, seconds; below the grace that the engine gives a cancelled call."""
DRAIN_S: Final = 0.25
"""How long output is still read once the program has ended and something else holds its pipes, seconds."""
UNKILLABLE_S: Final = 1.0
"""How long the end of a killed program is waited for, seconds; the kernel may hold it in a system call."""
REPORT: Final = 3
"""The stream that a report comes by; the number is ours, the descriptor's is another."""
STATUS: Final = 4
"""The stream on which a sandbox tells how the program ended."""
STREAM_NAMES: Final = {1: "stdout", 2: "stderr", REPORT: "report", STATUS: "status"}


@attrs.define(eq=False)
class Attendant:
    """Attends one program until it and its session are gone; `finished` is done then."""

    loop: asyncio.AbstractEventLoop
    deadline: float | None
    """By the loop's clock, seconds."""
    limits: Mapping[int, int]
    """What is kept of each stream, bytes; a program that writes more is stopped."""
    finished: asyncio.Future[None] = attrs.field(init=False)
    child: Child = attrs.field(init=False)
    output: dict[int, BytesIO] = attrs.field(init=False)
    """What was kept of each stream; its value is taken from it without a copy."""
    exceeded: str = attrs.field(default="", init=False)
    is_late: bool = attrs.field(default=False, init=False)
    is_abandoned: bool = attrs.field(default=False, init=False)
    is_killed: bool = attrs.field(default=False, init=False)
    returncode: int | None = attrs.field(default=None, init=False)
    timer: asyncio.TimerHandle | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.finished = self.loop.create_future()
        self.child = Child(self.loop, self)
        self.output = {stream: BytesIO() for stream in self.limits}

    def start(self, start: Start, *, stdin: int, ends: Mapping[int, int]) -> None:
        """Start the program; raises OSError or ValueError when that cannot be done. `end` is due in any case."""
        self.child.start(start, stdin=stdin, ends=ends)
        limits = {resource.RLIMIT_CORE: 0, **start.limits}
        for number, value in limits.items():
            with suppress(ProcessLookupError, PermissionError, ValueError):  # it has ended, or has less already
                hard = resource.prlimit(self.child.id, number)[1]
                least = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.prlimit(self.child.id, number, (least, least))
        if self.deadline is not None:
            self._set_timer(self.deadline, self._expire)

    def written(self, stream: int, data: bytes) -> None:
        """Keep what there is room for."""
        kept = self.output[stream]
        room = self.limits[stream] - kept.tell()
        kept.write(data[:room])
        if len(data) > room:
            self.exceeded = self.exceeded or STREAM_NAMES[stream]
            self._stop()  # first: a program whose pipe is closed may end by itself, as if it had failed
            self.child.close(stream)
            self.closed(stream)

    def closed(self, stream: int) -> None:  # noqa: ARG002 -- the listener's shape
        """Be done when that was all that was waited for."""
        if self.returncode is not None and not self.child.outputs:
            self.end()

    def ended(self, returncode: int) -> None:
        """Read the output that is still under way, unless nobody wants it."""
        self.returncode = returncode
        was_stopped = self.was_stopped
        if was_stopped:
            kill_session(self.child.id)
        if self.is_abandoned or not self.child.outputs:
            self.end()
            return
        until = self.loop.time() + DRAIN_S
        if self.deadline is not None and not was_stopped:
            until = min(until, self.deadline)
        self._set_timer(until, self.end)

    @property
    def was_stopped(self) -> bool:
        """Whether the program was made to end, so that how it ended says nothing about it."""
        return self.is_late or self.is_abandoned or bool(self.exceeded)

    def abandon(self) -> None:
        """Nobody waits for the result any more."""
        self.is_abandoned = True
        if self.returncode is None:
            self._stop()
        else:
            self.end()

    def kill(self) -> None:
        """Make the program end now."""
        if self.returncode is None and not self.is_killed:
            self.is_killed = True
            kill_session(self.child.id)
            self._set_timer(self.loop.time() + UNKILLABLE_S, self._give_up)

    def end(self) -> None:
        """Let go of the program, with all that is left of its session, and wake whoever waits."""
        self._cancel_timer()
        self.child.release()
        if not self.finished.done():
            self.finished.set_result(None)

    def _expire(self) -> None:
        self.is_late = True
        self._stop()

    def _stop(self) -> None:
        if self.returncode is None and not self.is_killed:
            terminate_session(self.child.id)
            self._set_timer(self.loop.time() + TERMINATION_GRACE_S, self.kill)

    def _give_up(self) -> None:
        self.returncode = -signal.SIGKILL
        self.end()

    def _set_timer(self, when: float, callback: Callable[[], None]) -> None:
        self._cancel_timer()
        self.timer = self.loop.call_at(when, callback)

    def _cancel_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
