"""Deadlines that hold whatever an effect does, at no task and no timer per call.

The driver of a run awaits each effect in its own task; one lazy timer per run looks at the deadline of
whichever effect is under way. Past it, the driver is cancelled; past a grace, that driver is dropped, which
means that a new one goes on from the same run, and the old one, should it ever wake, sees that it is no
longer current and ends without touching anything. `asyncio.timeout` per call was rejected: it halves the
throughput, and a coroutine that swallows its cancellation outlives it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, NoReturn, TypeVar

import attrs

from orchestrator.wording import describe

__all__ = ["DeadlineError", "Supervisor"]

GRACE_S = 0.2
"""Between cancelling an effect and dropping the driver that awaits it, seconds."""

Result = TypeVar("Result")
Driver = Callable[["Supervisor", bool], Coroutine[Any, Any, None]]


class DeadlineError(Exception):
    """An effect ran past its deadline."""


class EffectCancelledError(Exception):
    """An effect raised CancelledError though nobody had cancelled it."""


class EffectAbortedError(Exception):
    """An effect raised what is no Exception, SystemExit for one; it must not end more than the effect."""


class DroppedError(BaseException):
    """This driver was replaced while it awaited an effect; it must end without touching the run."""


@attrs.define(eq=False)
class Supervisor:
    """Runs the driver of one invocation and holds the deadline of its current effect."""

    drive: Driver
    """Called with this supervisor, and with True when the effect under way was given up."""
    loop: asyncio.AbstractEventLoop = attrs.Factory(asyncio.get_running_loop)
    deadline: float | None = None
    """Loop time at which the current effect must be over."""
    generation: int = 0
    is_waiting: bool = False
    """Whether the driver awaits an effect."""
    is_expired: bool = False
    is_cancelled: bool = False
    """Whether the host cancelled the task that awaits the run."""
    timer: asyncio.TimerHandle | None = None
    looks_at: float = 0.0
    """Loop time at which the timer goes off."""
    driver: asyncio.Task[None] | None = None
    done: asyncio.Future[None] | None = None

    async def run(self) -> None:
        """Drive to the end of the invocation; a cancellation of the caller reaches the driver first."""
        done = self.done = self.loop.create_future()
        self.start(is_overdue=False)
        try:
            await done
        except asyncio.CancelledError:
            if not done.cancelled():  # the driver had ended, or was itself cancelled
                raise
            await self.wind_up()
            raise
        finally:
            if self.timer is not None:
                self.timer.cancel()

    async def wind_up(self) -> None:
        """The host cancelled: have the driver end the invocation in order, and wait for that."""
        self.is_cancelled = True
        self.done = self.loop.create_future()
        assert self.driver is not None
        if self.driver.done():  # while the cancellation was on its way here
            self.ended(self.driver)
        else:
            self.interrupt()
        await self.done

    def interrupt(self) -> None:
        """Cancel the driver, which ends the invocation in order; what it awaits has a grace to give way."""
        self.is_cancelled = True
        if self.driver is not None:
            self.driver.cancel()
        self.wake(self.loop.time() + GRACE_S, self.replace)

    async def effect(self, awaitable: Awaitable[Result], seconds: float | None) -> Result:
        """Await one effect for at most `seconds`; DeadlineError past them, whatever the effect does."""
        if self.is_cancelled:
            self.refuse(awaitable)
        mine = self.generation
        self.is_expired, self.is_waiting = False, True
        deadline = None if seconds is None else self.watch(seconds)
        try:
            result = await awaitable
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:
            meaning = self.meaning_of(error, mine)
            if meaning is error:
                raise
            raise meaning from error
        finally:
            if self.generation == mine:
                self.deadline = None
                self.is_waiting = False
        if self.generation != mine:
            raise DroppedError
        if self.is_expired:
            self.forgive_cancellation()
        if self.is_expired or (deadline is not None and self.loop.time() > deadline):
            raise DeadlineError
        return result

    def watch(self, seconds: float) -> float:
        """Have the effect that begins watched; the loop time at which it must be over."""
        deadline = self.deadline = self.loop.time() + seconds
        if self.timer is None or self.looks_at > deadline:
            self.wake(deadline, self.look)
        return deadline

    def wake(self, when: float, callback: Callable[[], None]) -> None:
        """Have the one timer go off at this loop time, and no more at any other."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer, self.looks_at = self.loop.call_at(when, callback), when

    def refuse(self, awaitable: Awaitable[object]) -> NoReturn:
        """Begin nothing more: what was under way when the host cancelled has swallowed the cancellation."""
        if asyncio.iscoroutine(awaitable):
            awaitable.close()
        raise asyncio.CancelledError

    def meaning_of(self, error: BaseException, generation: int) -> BaseException:
        """What it means that an effect raised this; nothing it raises ends more than itself."""
        if self.generation != generation:
            return DroppedError()
        if self.is_cancelled:
            return asyncio.CancelledError()
        if self.is_expired:
            self.forgive_cancellation()
            return DeadlineError()
        if isinstance(error, asyncio.CancelledError):
            is_asked_for = self.driver is not None and self.driver.cancelling()
            return error if is_asked_for else EffectCancelledError("it cancelled itself")
        return error if isinstance(error, Exception) else EffectAbortedError(describe(error))

    def forgive_cancellation(self) -> None:
        """Take back our own request to cancel, so that the driver can go on."""
        if self.driver is not None and self.driver.cancelling():
            self.driver.uncancel()

    def look(self) -> None:
        """The timer: is the effect under way past its deadline?"""
        self.timer = None
        if self.deadline is None:
            return
        if self.loop.time() < self.deadline:
            self.wake(self.deadline, self.look)
            return
        self.is_expired = True
        if self.driver is not None:
            self.driver.cancel()
        self.wake(self.loop.time() + GRACE_S, self.replace)

    def replace(self) -> None:
        """Past the grace: if the effect still has not given way, go on without it."""
        self.timer = None
        if not (self.is_waiting and (self.is_expired or self.is_cancelled)):
            if self.deadline is not None:
                self.wake(self.deadline, self.look)
            return
        self.generation += 1
        self.deadline, self.is_waiting = None, False
        self.start(is_overdue=True)

    def start(self, *, is_overdue: bool) -> None:
        """Start a driver; when it ends, so does the invocation, unless it was replaced meanwhile."""
        driver = self.loop.create_task(self.drive(self, is_overdue))
        self.driver = driver
        driver.add_done_callback(self.ended)

    def ended(self, driver: asyncio.Task[None]) -> None:
        """Pass a driver's end on to whoever awaits the invocation."""
        error = None if driver.cancelled() else driver.exception()
        if driver is not self.driver or self.done is None or self.done.done():
            return
        if error is not None:
            self.done.set_exception(error)
        else:
            self.done.set_result(None)
