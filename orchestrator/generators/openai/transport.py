"""The one place where bytes leave and arrive: what is sent is named, what comes is bounded.

The key is added here, below the SDK, so that no request that the SDK logs, raises or keeps holds it; and only
the headers named here are sent, so that nothing the SDK takes from the environment (other keys, organisation,
custom headers) reaches a server it was not meant for. Of what comes back, the headers named here pass, so that
nobody decodes or follows anything.

This module imports the SDK's HTTP client: import it only where a call is made.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import httpx2

from orchestrator.generators.openai.credentials import ApiKey
from orchestrator.generators.openai.failures import lost

__all__ = ["BoundedTransport"]

_SENT: Final = frozenset(
    {b"accept", b"connection", b"content-length", b"content-type", b"host", b"idempotency-key", b"user-agent"}
)
_KEPT: Final = ("content-type", "date", "retry-after", "retry-after-ms")
_LONGEST_HEADER: Final = 200
"""Characters of a kept header; all headers together are bounded by the HTTP client, at 100 KiB."""
_ERROR_BODY: Final = 64 * 1024
"""What is read of the body of an error, bytes; the rest is cut off, since the status is what counts."""


class BoundedTransport(httpx2.AsyncBaseTransport):
    """Sends one request and hands on at most `limit` bytes of the body of a good answer."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, key: ApiKey, limit: int) -> None:
        self.inner = inner
        self.key = key
        self.limit = limit

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The answer, its body still to be read; CallFailedError when it is encoded though none was asked for."""
        response = await self.inner.handle_async_request(self._signed(request))
        encoding = response.headers.get("content-encoding", "").strip().lower()
        if response.is_success and encoding not in ("", "identity"):
            await response.aclose()
            raise lost(f"answered with content-encoding {encoding[:40]!a}, though none was asked for")
        cut = None if response.is_success else _ERROR_BODY
        return httpx2.Response(
            status_code=response.status_code,
            headers={name: response.headers[name][:_LONGEST_HEADER] for name in _KEPT if name in response.headers},
            stream=_BoundedStream(response, self.limit, cut),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self.inner.aclose()

    def _signed(self, request: httpx2.Request) -> httpx2.Request:
        headers = [(name, value) for name, value in request.headers.raw if name.lower() in _SENT]
        headers.append((b"Accept-Encoding", b"identity"))
        if self.key.secret:
            headers.append((b"Authorization", self.key.header))
        return httpx2.Request(
            request.method, request.url, headers=headers, stream=request.stream, extensions=request.extensions
        )


class _BoundedStream(httpx2.AsyncByteStream):
    """Raw bytes of a body, counted as they come."""

    def __init__(self, response: httpx2.Response, limit: int, cut: int | None) -> None:
        self.response = response
        self.limit = limit
        self.cut = cut

    async def __aiter__(self) -> AsyncIterator[bytes]:
        count = 0
        async for part in self.response.aiter_raw():
            count += len(part)
            if self.cut is not None and count >= self.cut:
                yield part[: len(part) - (count - self.cut)]
                return
            if count > self.limit:
                raise lost(f"was stopped because its answer is longer than {self.limit} bytes of HTTP body")
            yield part

    async def aclose(self) -> None:
        await self.response.aclose()
