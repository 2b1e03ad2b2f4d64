"""Calls plain functions in worker threads that never keep the process alive.

`asyncio.to_thread` was rejected: the interpreter joins its threads when it exits, so one call that hangs
keeps the process alive for ever, and thirty-two of them block every later call. Here each call has a
thread of its own; idle ones are kept for a few seconds and used again.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from queue import Empty, SimpleQueue
from typing import Any, Final, Generic, ParamSpec, TypeVar

import attrs

__all__ = ["call_in_thread"]

IDLE_S: Final = 5.0
"""How long a thread without work is kept, seconds."""
MOST_IDLE: Final = 16
"""How many threads without work are kept."""

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


async def call_in_thread(
    function: Callable[_Parameters, _Result], /, *arguments: _Parameters.args, **named: _Parameters.kwargs
) -> _Result:
    """The result of `function`, called in a daemon thread with a copy of the caller's context.

    A cancelled caller gets its cancellation at once; the thread is abandoned, and whatever it gives later is
    dropped. SystemExit and its like become RuntimeError, since they would end the thread and not the process.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_Result] = loop.create_future()
    call = _Call(lambda: function(*arguments, **named), copy_context(), loop, future)
    try:
        worker = _idle.pop()
    except IndexError:
        worker = _Worker()
        threading.Thread(target=worker.work, name="orchestrator-call", daemon=True).start()
    worker.calls.put(call)
    try:
        return await future
    finally:
        call.is_awaited = False


@attrs.define(eq=False)
class _Call(Generic[_Result]):
    function: Callable[[], _Result]
    context: Context
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[_Result]
    is_awaited: bool = True

    def answer(self) -> Callable[[], None]:
        """Call the function; what is returned settles the future, in the loop's thread."""
        try:
            result = self.context.run(self.function)
        except Exception as error:  # noqa: BLE001 it is the caller's to handle
            return self.failure(error)
        except BaseException as error:  # noqa: BLE001 it would end this thread silently
            failure = RuntimeError(f"{type(error).__name__} was raised in a worker thread")
            failure.__cause__ = error
            return self.failure(failure)
        return lambda: None if self.future.done() else self.future.set_result(result)

    def failure(self, error: Exception) -> Callable[[], None]:
        """Settle the future with an error; a future cannot carry a StopIteration."""
        if isinstance(error, StopIteration):
            failure = RuntimeError("StopIteration was raised in a worker thread")
            failure.__cause__ = error
            error = failure
        return lambda: None if self.future.done() else self.future.set_exception(error)


@attrs.define(eq=False)
class _Worker:
    calls: SimpleQueue[_Call[Any]] = attrs.Factory(SimpleQueue)

    def work(self) -> None:
        """Serve calls until one was abandoned or none has come for a while."""
        while True:
            try:
                call = self.calls.get(timeout=IDLE_S)
            except Empty:
                try:
                    _idle.remove(self)
                except ValueError:
                    continue  # taken a moment ago: the call is on its way
                return
            if not self.serve(call):
                return
            del call

    def serve(self, call: _Call[Any]) -> bool:
        """Answer one call; whether this thread may serve another one."""
        settle = call.answer()
        is_kept = call.is_awaited and len(_idle) < MOST_IDLE
        if is_kept:
            _idle.append(self)
        with suppress(RuntimeError):  # the loop was closed: nobody waits any more
            call.loop.call_soon_threadsafe(settle)
        return is_kept


_idle: list[_Worker] = []

os.register_at_fork(after_in_child=_idle.clear)
