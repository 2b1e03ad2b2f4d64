"""One HTTP request through the SDK, and its failures as values.

This module imports the SDK: import it only where a generator is made.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime
from math import isfinite
from typing import Any, Final
from urllib.parse import quote, urlsplit
from urllib.request import getproxies, proxy_bypass

import attrs
import httpx2
import openai

from orchestrator.excerpt import excerpt
from orchestrator.generators.openai.credentials import ApiKey
from orchestrator.generators.openai.decoding import decoded
from orchestrator.generators.openai.eventstream import event_data
from orchestrator.generators.openai.failures import (
    QUOTED,
    CallFailedError,
    Failure,
    Meaning,
    lost,
    status_failure,
)
from orchestrator.generators.openai.reception import Reception
from orchestrator.generators.openai.transport import BoundedTransport

__all__ = ["ChatCall", "receive"]

_END: Final = b"[DONE]"
_PLACEHOLDER: Final = "added-by-the-transport"
"""What the SDK is given for a key."""


@attrs.frozen(kw_only=True)
class ChatCall:
    """Everything that decides one request."""

    base_url: str
    key: ApiKey = attrs.field(repr=False)
    body: Mapping[str, Any] = attrs.field(repr=False)
    """The JSON object to send, `model`, `messages` and `stream` in it."""
    idempotency_key: str
    seconds: float | None
    """For everything: connecting, sending, waiting and reading."""
    document_limit: int
    """Largest JSON document, a whole answer or one event of a stream; bytes."""
    stream_limit: int
    """Largest body of a stream, bytes."""
    trust_env: bool
    tls: ssl.SSLContext


async def receive(call: ChatCall, reception: Reception) -> Failure | None:
    """Ask once and read the answer into `reception`; None when it is all there, else why it is not.

    A failure is returned and not raised, so that no error of the SDK, with a request in its frames, hangs on
    the one the adapter raises.
    """
    failure = await _asked(call, reception)
    return failure and attrs.evolve(failure, reason=call.key.redacted(failure.reason))


async def _asked(call: ChatCall, reception: Reception) -> Failure | None:
    try:
        async with asyncio.timeout(call.seconds), _answered(call) as response:
            await _read(call, response, reception)
            reception.complete()
    except CallFailedError as error:
        return error.failure
    except TimeoutError:
        return Failure(Meaning.LOST, f"timed out after {call.seconds or 0:g} s, {reception.size} bytes of answer in")
    except openai.APIStatusError as error:
        return _status(error.response, call.key)
    except (openai.APIConnectionError, httpx2.RequestError, ssl.SSLError, OSError) as error:
        return _broken(error, reception, call.key)
    except Exception as error:  # noqa: BLE001 -- whatever the SDK makes of hostile bytes, the call gave no candidate
        return Failure(Meaning.LOST, f"could not be asked: {type(error).__name__} in the SDK")
    return None


@asynccontextmanager
async def _answered(call: ChatCall) -> AsyncIterator[httpx2.Response]:
    # A client for each call: one that is kept belongs to the event loop it was first used in.
    limit = call.stream_limit if call.body.get("stream") else call.document_limit
    inner = httpx2.AsyncHTTPTransport(verify=call.tls, trust_env=False, proxy=_proxy(call), retries=0)
    transport = BoundedTransport(inner, call.key, limit)
    timeout = httpx2.Timeout(None)  # per read, so it would bound nothing; the caller's deadline does
    async with (
        httpx2.AsyncClient(transport=transport, timeout=timeout, follow_redirects=False, trust_env=False) as http,
        openai.AsyncOpenAI(
            api_key=_PLACEHOLDER, base_url=call.base_url, max_retries=0, timeout=timeout, http_client=http
        ) as client,
    ):
        answer = client.chat.completions.with_streaming_response.create(
            model=call.body["model"],
            messages=call.body["messages"],
            extra_body=dict(call.body),
            extra_headers={"Idempotency-Key": quote(call.idempotency_key, safe="!#$&'()*+,-./:;=?@_~")},
        )
        async with answer as response:
            yield response.http_response


async def _read(call: ChatCall, response: httpx2.Response, reception: Reception) -> None:
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        async for data in event_data(response.aiter_raw(), call.document_limit):
            if data.strip() == _END:
                reception.is_ended = True
                return
            if data.strip():
                reception.take(data)
        return
    body = bytearray()
    async for part in response.aiter_raw():
        body += part
        if len(body) > call.document_limit:
            raise lost(f"was stopped because it sent a document of more than {call.document_limit} bytes")
    reception.take(bytes(body))
    reception.is_ended = True


def _proxy(call: ChatCall) -> str | None:
    parts = urlsplit(call.base_url)
    if not call.trust_env or proxy_bypass(parts.netloc):
        return None
    return getproxies().get(parts.scheme)


def _status(response: httpx2.Response, key: ApiKey) -> Failure:
    try:
        told = decoded(response.content, key)
    except CallFailedError:
        told = None
    if isinstance(told, Mapping):
        told = told.get("error", told)
    return status_failure(response.status_code, told, key, _retry_after(response.headers))


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds a server asks to wait (RFC 9110 §10.2.3; some say milliseconds in a header of their own)."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * unit
        except ValueError:
            continue
        if isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None


def _root_cause(error: BaseException) -> BaseException:
    """What the operating system said last, or TLS first; the libraries chain errors of their own around it."""
    cause = at = error
    while (below := at.__cause__ or at.__context__) is not None and not isinstance(cause, ssl.SSLError):
        at = below
        if isinstance(at, OSError) or not isinstance(cause, OSError):
            cause = at
    return cause


def _broken(error: Exception, reception: Reception, key: ApiKey) -> Failure:
    cause = _root_cause(error)
    words = excerpt(key.redacted(f"{type(cause).__name__}: {cause}"), QUOTED)
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Failure(Meaning.TERMINAL, f"shows a certificate that cannot be verified: {words}")
    if _is_unreachable(error, cause):
        reason = f"cannot be reached: {words}: is it running? see base_url"
        return Failure(Meaning.PASSING, reason, is_unreachable=True)
    after = f"broke off after {reception.size} bytes of answer" if reception.size else "gave no answer"
    return Failure(Meaning.PASSING, f"{after}: {words}")


def _is_unreachable(error: BaseException, cause: BaseException) -> bool:
    """Whether no connection came about at all; one that TLS ended did."""
    if isinstance(cause, ssl.SSLError):
        return False
    at: BaseException | None = error
    while at is not None and not isinstance(at, httpx2.ConnectError):
        at = at.__cause__ or at.__context__
    return at is not None
