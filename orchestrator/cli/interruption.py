"""Signals: the first one ends a run in order, the second one ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from orchestrator.blocking import run_blocking
from orchestrator.sessions import kill_session

__all__ = ["SignalledError", "run_until_signalled"]

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

Result = TypeVar("Result")


class SignalledError(Exception):
    """A signal ended the work, in order; `code` is the exit status that says which."""

    def __init__(self, number: signal.Signals) -> None:
        super().__init__(f"ended by {number.name}")
        self.number = number
        self.code = 128 + number


def run_until_signalled(
    work: Coroutine[Any, Any, Result],
    told: Callable[[signal.Signals], None],
    leaving: Callable[[], None],
) -> Result:
    """Run `work`; the first SIGINT, SIGTERM or SIGHUP calls `told` and cancels it: SignalledError.

    A second one calls `leaving`, kills the programs that are still running, and ends the process.
    """
    caught: list[signal.Signals] = []

    async def attended() -> Result:
        task = asyncio.current_task()
        assert task is not None

        def first(number: signal.Signals) -> None:
            caught.append(number)
            told(number)
            task.cancel()

        with signals_caught(first, leaving):
            return await work

    try:
        return run_blocking(attended())
    except (asyncio.CancelledError, KeyboardInterrupt):
        if caught:
            raise SignalledError(caught[0]) from None
        raise


@contextmanager
def signals_caught(first: Callable[[signal.Signals], None], leaving: Callable[[], None]) -> Iterator[None]:
    """Have the running loop call `first` once; after that a signal ends the process."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    # nohup has SIGHUP ignored, and means it. A script has SIGINT ignored in what it starts in the background,
    # and still wants to stop a run in order.
    is_hangup_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signals = [number for number in SIGNALS if number is not signal.SIGHUP or not is_hangup_ignored]

    def caught(number: signal.Signals) -> None:
        for each in signals:
            loop.remove_signal_handler(each)
            signal.signal(each, lambda again, _: leave(again, leaving))
        first(number)

    for number in signals:
        loop.add_signal_handler(number, caught, number)
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def leave(number: int, leaving: Callable[[], None]) -> NoReturn:
    """End the process here and now; the journal holds all that was committed."""
    with suppress(Exception):
        leaving()
    for child in children():
        kill_session(child)
    os._exit(128 + number)


def children() -> Iterator[int]:
    """Ids of the programs this process started, each the leader of a session of its own."""
    for listing in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):
            yield from (int(child) for child in listing.read_text(encoding="ascii").split())
