"""A local HTTP server for tests of model access that answers each request exactly as it is told, well or badly.

It writes bytes to a socket and nothing more: no HTTP library would let it lie about lengths, encodings or ends.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from typing import Any, Self

import attrs
import pytest

Behaviour = Callable[["Asked", socket.socket], None]
"""What to do with one request: write to the socket, or not; the connection is closed when it returns."""


@attrs.frozen
class Asked:
    """One request as it arrived."""

    line: str
    headers: dict[str, str]
    """By lower-case name."""
    body: Any
    """Decoded JSON."""
    gone: threading.Event = attrs.field(repr=False)
    """Set when the server is to stop."""


class MisbehavingServer:
    """Listens on a free port of this machine; answers the nth request by the nth behaviour, then by the last."""

    def __init__(self, *behaviours: Behaviour) -> None:
        self.behaviours = behaviours
        self.asked: list[Asked] = []
        self.connections = 0
        self._gone = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._listen, daemon=True)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        """Base URL of its API."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}/v1"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._gone.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        self._listener.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            asked = read_request(connection, self._gone)
            self.asked.append(asked)
            self.behaviours[min(len(self.asked), len(self.behaviours)) - 1](asked, connection)


def read_request(connection: socket.socket, gone: threading.Event) -> Asked:
    """One request with a body of known length."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += received(connection)
    head, _, body = data.partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
    while len(body) < int(headers.get("content-length", 0)):
        body += received(connection)
    return Asked(line, headers, json.loads(body) if body else None, gone)


def received(connection: socket.socket) -> bytes:
    """The next bytes; ConnectionError at the end."""
    data = connection.recv(65536)
    if not data:
        raise ConnectionError
    return data


class Wire:
    """What tests of model access write with: servers, and what they answer."""

    def __init__(self, stack: ExitStack) -> None:
        self.stack = stack

    def serve(self, *behaviours: Behaviour) -> MisbehavingServer:
        """A server for the time of the test."""
        return self.stack.enter_context(MisbehavingServer(*behaviours))

    def http(
        self,
        body: bytes | str | dict[str, Any],
        status: str = "200 OK",
        headers: Iterable[str] = (),
        kind: str = "application/json",
    ) -> Behaviour:
        """Answer with a body of known length."""
        data = body if isinstance(body, bytes) else plain(body).encode()
        lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}", *headers]
        return self.raw("\r\n".join([*lines, "", ""]).encode() + data)

    def events(
        self, *data: bytes | str | dict[str, Any], end: bytes = b"data: [DONE]\n\n", piece: int = 0
    ) -> Behaviour:
        """Answer with server-sent events, whole or in pieces of so many bytes, and close the connection."""
        written = [each if isinstance(each, bytes) else f"data: {plain(each)}\n\n".encode() for each in data]
        stream = b"".join([*written, end])
        return self.raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n",
            *(stream[start : start + (piece or len(stream))] for start in range(0, len(stream), piece or len(stream))),
        )

    def raw(self, *parts: bytes, pause: float = 0.0) -> Behaviour:
        """Answer with these bytes, one write for each part, with a pause between."""

        def answer(asked: Asked, connection: socket.socket) -> None:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for part in parts:
                connection.sendall(part)
                if pause and asked.gone.wait(pause):
                    return

        return answer

    def hang(self, begin: bytes = b"") -> Behaviour:
        """Write no more than this, and keep the connection open."""

        def answer(asked: Asked, connection: socket.socket) -> None:
            connection.sendall(begin)
            asked.gone.wait(10)

        return answer

    def chunk(self, content: Any = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
        """One chunk of a stream."""
        delta = {} if content is None else {"content": content}
        return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **more}

    def completion(self, content: Any = "x = 1\n", finish: str = "stop", **more: Any) -> dict[str, Any]:
        """A whole answer."""
        message = {"role": "assistant", "content": content}
        return {"id": "c", "choices": [{"index": 0, "message": message, "finish_reason": finish}], **more}


def plain(data: str | dict[str, Any]) -> str:
    """Text as it is, an object as JSON in UTF-8."""
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)


@pytest.fixture
def wire() -> Iterator[Wire]:
    """Servers that misbehave as they are told, gone with the test."""
    with ExitStack() as stack:
        yield Wire(stack)
