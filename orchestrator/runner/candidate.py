"""The candidate's process: holds the candidate's code alone, and does with it what the judge asks."""

from __future__ import annotations

import _thread
import asyncio
import builtins
import contextlib
import importlib
import io
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType, ModuleType
from typing import Any, Final

from orchestrator.runner.peer import Peer
from orchestrator.runner.wire import PROTOCOL, GoneError, Wire

__all__ = ["main"]

MOST_WRITTEN: Final = 1_000_000
"""How much of what is written between two messages goes to the judge, characters."""


def main(options: dict[str, Any]) -> int:
    """Serve the judge until it hangs up."""
    peer = CandidatePeer(Inbox(options["descriptor"]))
    sys.path.insert(0, os.getcwd())
    sys.argv[:] = ["candidate"]
    signal.signal(signal.SIGINT, peer.interrupted)
    with contextlib.suppress(GoneError):
        while True:
            peer.serve(peer.wire.receive())
    return 0


class Inbox(Wire):
    """The socket, read by a thread of its own: it hears that a call was given up while the call still runs."""

    def __init__(self, descriptor: int) -> None:
        super().__init__(descriptor)
        self.messages: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        threading.Thread(target=self.read, name="judge", daemon=True).start()

    def read(self) -> None:
        """Pass messages on, interrupt for one kind, and end the process with the judge."""
        try:
            while True:
                message = super().receive()
                if message.get("do") == "interrupt":
                    _thread.interrupt_main()
                else:
                    self.messages.put(message)
        finally:
            os._exit(0)

    def receive(self, until: float | None = None) -> dict[str, Any]:  # noqa: ARG002 -- the judge has the clock
        """The next message."""
        return self.messages.get()


class CandidatePeer(Peer):
    """The judge, as the candidate's process sees it."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire, trusts=True)
        self.is_at_work = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self.services |= {"hello": lambda *_: PROTOCOL, "import": _import, "await": self.awaited, "get": _get}
        self.output, self.errors = io.BytesIO(), io.BytesIO()
        sys.stdout, sys.stderr = writer(self.output), writer(self.errors)
        sys.stdin = Asked(self)
        builtins.input = lambda prompt="", /: self.ask("input", args=(prompt,))

    def interrupted(self, _number: int, _frame: FrameType | None) -> None:
        """Stop the call that runs, and nothing else."""
        if self.is_at_work:
            self.is_at_work = False
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def at_work(self, _number: int) -> Iterator[None]:
        """The code of the candidate runs."""
        before, self.is_at_work = self.is_at_work, True
        try:
            yield
        finally:
            self.is_at_work = before

    def asked(self, *args: Any) -> Any:
        """A question of the candidate's code: only the thread that the judge waits for may ask."""
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("objects of the suite can be used in the main thread alone")
        return super().asked(*args)

    def written(self) -> list[str]:
        """What was written, the rest left out where it is too much."""
        return [taken(stream, file) for stream, file in ((sys.stdout, self.output), (sys.stderr, self.errors))]

    def awaited(self, target: Any, _name: str, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
        """Run something awaitable to its end."""

        async def result() -> Any:
            return await target

        if self.loop is None:
            self.loop = asyncio.new_event_loop()
        return self.loop.run_until_complete(result())


class Asked(io.TextIOBase):
    """Standard input: the judge's, which a suite may have replaced."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer = peer

    def readable(self) -> bool:
        return True

    def readline(self, size: int = -1, /) -> str:  # type: ignore[override]
        return str(self.peer.ask("stdin", name="readline", args=(size,)))

    def read(self, size: int | None = -1, /) -> str:
        return str(self.peer.ask("stdin", name="read", args=(-1 if size is None else size,)))


def writer(file: io.BytesIO) -> io.TextIOWrapper:
    """A text stream that keeps what is written to it."""
    return io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", write_through=True)


def taken(stream: Any, file: io.BytesIO) -> str:
    """What a stream was given since the last time."""
    with contextlib.suppress(Exception):
        stream.flush()
    data = file.getvalue()
    if data:
        file.seek(0)
        file.truncate()
    return data[:MOST_WRITTEN].decode("utf-8", "replace")


def _import(_target: Any, name: str, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
    module = importlib.import_module(name)
    return module, hasattr(module, "__path__")


def _get(target: Any, name: str, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
    if name == "__all__" and isinstance(target, ModuleType) and not hasattr(target, name):
        return [each for each in vars(target) if not each.startswith("_")]
    return getattr(target, name)
