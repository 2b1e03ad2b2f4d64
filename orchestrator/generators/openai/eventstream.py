"""Server-sent events (WHATWG HTML §9.2) from raw bytes: only the data, each event of bounded size."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Final

from orchestrator.generators.openai.failures import lost

__all__ = ["event_data", "lines"]

_MARK: Final = b"\xef\xbb\xbf"


async def event_data(parts: AsyncIterable[bytes], limit: int) -> AsyncIterator[bytes]:
    """The data of each event; an event that the end of the stream cuts off counts, if its line is there.

    Raises CallFailedError for an event of more than `limit` bytes.
    """
    data = list[bytes]()
    size = 0
    async for line in lines(parts, limit):
        if not line:
            if data:
                yield b"\n".join(data)
            data, size = [], 0
            continue
        name, _, value = line.partition(b":")
        if name != b"data":
            continue
        data.append(value.removeprefix(b" "))
        size += len(value)
        if size > limit:
            raise lost(f"was stopped because it sent an event of more than {limit} bytes")
    if data:
        yield b"\n".join(data)


async def lines(parts: AsyncIterable[bytes], limit: int) -> AsyncIterator[bytes]:
    """Lines without their ends, which are LF, CR LF or CR; CallFailedError for one of more than `limit` bytes.

    What stands behind the last end of a line comes last.
    """
    pending = bytearray()
    is_first = True
    async for part in parts:
        begins, complete, rest = part.rpartition(b"\n")
        pending += begins + complete
        if complete:
            for line in bytes(pending).splitlines():
                yield line.removeprefix(_MARK) if is_first else line
                is_first = False
            pending.clear()
        pending += rest
        if len(pending) > limit:
            raise lost(f"was stopped because it sent a line of more than {limit} bytes")
    for line in bytes(pending).splitlines():
        yield line.removeprefix(_MARK) if is_first else line
        is_first = False
