"""The sync face: run a coroutine to its end from any thread, inside a running loop or outside one."""

from __future__ import annotations

import asyncio
import contextvars
import signal
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, Self, TypeVar

__all__ = ["run_blocking"]

SHUTDOWN_S = 0.5
"""How long tasks that are left over may take to give way, seconds."""

Result = TypeVar("Result")


def run_blocking(work: Coroutine[Any, Any, Result]) -> Result:
    """Run `work` to its end and return what it returns.

    Without a running loop it runs here, and Ctrl-C cancels it, so that it can end in order. Inside a running loop
    it runs in a daemon thread with a loop of its own and a copy of the context, while the caller is blocked.
    Unlike `asyncio.run` it does not wait for ever for a task that swallows its cancellation.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_here(work)
    future: Future[Result] = Future()
    context = contextvars.copy_context()

    def run_there() -> None:
        try:
            future.set_result(context.run(run_here, work))
        except BaseException as error:  # noqa: BLE001 -- whatever it is, it belongs to the caller
            future.set_exception(error)

    threading.Thread(target=run_there, name="orchestrator", daemon=True).start()
    return future.result()


def run_here(work: Coroutine[Any, Any, Result]) -> Result:
    """Run on a new loop in this thread."""
    try:
        loop = asyncio.new_event_loop()
    except BaseException:
        work.close()
        raise
    try:
        task = loop.create_task(work)
        with InterruptCancels(loop, task) as interrupt:
            try:
                return loop.run_until_complete(task)
            except asyncio.CancelledError:
                if interrupt.happened:
                    raise KeyboardInterrupt from None
                raise
    finally:
        close(loop)


class InterruptCancels:
    """While it is entered, the first Ctrl-C cancels the task and the second one interrupts at once."""

    def __init__(self, loop: asyncio.AbstractEventLoop, task: asyncio.Task[Any]) -> None:
        self.loop = loop
        self.task = task
        self.happened = False
        self.previous: Any = None

    def __enter__(self) -> Self:
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            self.previous = signal.signal(signal.SIGINT, self.interrupt)
        return self

    def __exit__(self, *_: object) -> None:
        if self.previous is not None:
            signal.signal(signal.SIGINT, self.previous)

    def interrupt(self, *_: object) -> None:
        """Cancel the first time, raise the second."""
        if self.happened:
            raise KeyboardInterrupt
        self.happened = True
        self.loop.call_soon_threadsafe(self.task.cancel)


def close(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel what is left, give it a moment, and close the loop; what does not give way is left behind."""
    try:
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            loop.run_until_complete(asyncio.wait(left, timeout=SHUTDOWN_S))
        for task in left:
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # noqa: SLF001 -- it is left on purpose
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()
