"""One JSON object a line over a socket, bounded in size and depth, and checked before anything looks at it."""

from __future__ import annotations

import json
import select
import socket
import time
from typing import Any, Final

__all__ = ["PROTOCOL", "GoneError", "LateError", "ProtocolError", "Wire", "exactly", "field"]

PROTOCOL: Final = "orchestrator.runner/1"
LARGEST_MESSAGE: Final = 16_000_000
"""Longest line that is sent or read, bytes."""
CHUNK: Final = 65_536


class ProtocolError(Exception):
    """The other side sent what the protocol does not allow."""


class GoneError(Exception):
    """The other side has closed the socket."""


class LateError(Exception):
    """Nothing came in time."""


class Wire:
    """The socket to the other side."""

    def __init__(self, descriptor: int) -> None:
        self.socket = socket.socket(fileno=descriptor)
        self.socket.set_inheritable(False)
        self.socket.setblocking(True)
        self.received = bytearray()

    def send(self, message: dict[str, Any]) -> None:
        """Send one message; GoneError when nobody is there, ProtocolError when it is too large."""
        line = json.dumps(message, allow_nan=False, separators=(",", ":")).encode() + b"\n"
        if len(line) > LARGEST_MESSAGE:
            raise ProtocolError(f"a message of {len(line)} bytes is too large: at most {LARGEST_MESSAGE} are sent")
        try:
            self.socket.sendall(line)
        except ConnectionError as error:
            raise GoneError(str(error)) from None

    def receive(self, until: float | None = None) -> dict[str, Any]:
        """The next message; LateError when it did not come until then, by the monotonic clock."""
        searched = 0
        while (end := self.received.find(b"\n", searched)) < 0:
            searched = len(self.received)
            if searched > LARGEST_MESSAGE:
                raise ProtocolError(f"a message of more than {LARGEST_MESSAGE} bytes")
            self.received += self.chunk(until)
        line = bytes(self.received[:end])
        del self.received[: end + 1]
        return parsed(line)

    def chunk(self, until: float | None) -> bytes:
        """Some bytes."""
        # A suite's alarm may raise in here whatever it likes, TimeoutError for one: that is the suite's error.
        try:
            if until is not None and not select.select([self.socket], [], [], max(until - time.monotonic(), 0))[0]:
                raise LateError
            data = self.socket.recv(CHUNK)
        except ConnectionError as error:
            raise GoneError(str(error)) from None
        if not data:
            raise GoneError("it closed the connection")
        return data


def parsed(line: bytes) -> dict[str, Any]:
    """One line as a JSON object."""
    try:
        message = json.loads(line.decode("ascii"), parse_constant=refused, object_pairs_hook=table)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message that is not plain JSON: {error}") from None
    if type(message) is not dict:
        raise ProtocolError("a message that is no object")
    return message


def refused(constant: str) -> object:
    """NaN and the infinities are no JSON."""
    raise ValueError(f"{constant} is no JSON")


def table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are unlike."""
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key is given twice")
    return made


def field(message: dict[str, Any], name: str, kind: type[Any], default: Any = None) -> Any:
    """A field of exactly this type; ProtocolError when it is missing, unless there is a default."""
    if name not in message and default is not None:
        return default
    value = message.get(name)
    if type(value) is not kind:
        raise ProtocolError(f"a message whose {name!r} is {type(value).__name__} instead of {kind.__name__}")
    return value


def exactly(kind: type[Any], value: Any) -> Any:
    """The value, when it has just this type; ProtocolError otherwise."""
    if type(value) is not kind:
        raise ProtocolError(f"{type(value).__name__} where {kind.__name__} belongs")
    return value
