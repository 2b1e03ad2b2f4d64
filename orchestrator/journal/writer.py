"""One thread that commits what many runs have queued, as one group.

Runs that commit inline one after another pay one fsync each and stall the loop for it. Here the loop goes on,
and what has gathered during one fsync shares the next. Nothing is bound to a loop: each entry of the queue
brings its own future and loop, and takes them along when it is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from threading import Lock, Thread

import attrs

from orchestrator.journal.framing import EncodedBatch
from orchestrator_events.errors import JournalError

__all__ = ["GroupWriter"]

Outcome = JournalError | None


@attrs.frozen(eq=False)
class Pending:
    """A batch in the queue, and who waits for it."""

    encoded: EncodedBatch
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Outcome]


class GroupWriter:
    """Commits groups in a daemon thread, which starts with the first batch and ends with `close()`."""

    def __init__(self, commit: Callable[[Sequence[EncodedBatch]], list[Outcome]]) -> None:
        self.commit = commit
        self.queue: SimpleQueue[Pending | None] = SimpleQueue()
        self.thread: Thread | None = None
        self.is_closed = False
        self.lock = Lock()

    async def append(self, encoded: EncodedBatch) -> Outcome:
        """Queue a batch and wait for its outcome.

        A cancellation during the wait is delivered at the caller's next await instead, as if the commit had
        been inline: no caller is left in doubt whether its batch was stored.
        """
        loop = asyncio.get_running_loop()
        pending = Pending(encoded, loop, loop.create_future())
        self.put(pending)
        interruption: asyncio.CancelledError | None = None
        while not pending.future.done():
            try:
                await asyncio.shield(pending.future)
            except asyncio.CancelledError as cancelled:
                interruption = cancelled
        if interruption is not None:
            postpone(interruption)
        return pending.future.result()

    def close(self) -> None:
        """Commit what is queued and end the thread; waits for it."""
        with self.lock:
            self.is_closed = True
            thread, self.thread = self.thread, None
            if thread is not None:
                self.queue.put(None)
        if thread is not None:
            thread.join()

    def put(self, pending: Pending) -> None:
        """Queue a batch, starting the thread for the first."""
        with self.lock:
            if self.is_closed:
                raise JournalError("the journal is closed: open it again to append")
            if self.thread is None:
                self.thread = Thread(target=self.work, name="journal-writer", daemon=True)
                self.thread.start()
            self.queue.put(pending)

    def work(self) -> None:
        """Commit groups until the queue says it is over."""
        is_open = True
        while is_open:
            group = [self.queue.get()]
            try:
                while True:
                    group.append(self.queue.get_nowait())
            except Empty:
                pass
            is_open = None not in group
            waiting = [pending for pending in group if pending is not None]
            if waiting:
                self.settle(waiting)

    def settle(self, waiting: list[Pending]) -> None:
        """Commit a group and answer each of its callers on their own loop."""
        outcomes: Sequence[Outcome]
        try:
            outcomes = self.commit([pending.encoded for pending in waiting])
        except Exception as error:  # noqa: BLE001 -- the callers get it, and the thread must live for the next group
            outcomes = [JournalError(f"a commit failed: {type(error).__name__}: {error}") for _ in waiting]
        answers: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Outcome], Outcome]]] = {}
        for pending, outcome in zip(waiting, outcomes, strict=True):
            answers.setdefault(pending.loop, []).append((pending.future, outcome))
        for loop, answered in answers.items():
            try:
                loop.call_soon_threadsafe(answer, answered)
            except RuntimeError:
                continue  # the loop was closed, and nobody waits there any more


def answer(answered: list[tuple[asyncio.Future[Outcome], Outcome]]) -> None:
    """Resolve futures, on their loop."""
    for future, outcome in answered:
        if not future.done():
            future.set_result(outcome)


def postpone(interruption: asyncio.CancelledError) -> None:
    """Deliver a cancellation at the current task's next await, with its request still counted once."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
        task.cancel(*interruption.args)
