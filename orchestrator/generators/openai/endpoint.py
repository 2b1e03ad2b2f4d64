"""Where a model is served: the base URL, checked, and what it means for the key and the name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from ipaddress import ip_address
from typing import Final
from urllib.parse import SplitResult, urlsplit

import attrs

__all__ = ["OPENAI", "Endpoint"]

OPENAI: Final = "https://api.openai.com/v1"

_USUAL_PORTS: Final = {"http": 80, "https": 443}


def _is_plain_url(_: object, __: object, url: str) -> None:
    fault = _fault(url)
    if fault:  # the URL itself may hold a secret and is not quoted
        raise ValueError(f"base_url {fault}: write it as https://host:port/v1")


@attrs.frozen(slots=False)
class Endpoint:
    """One server, by the URL that `/chat/completions` is appended to."""

    base_url: str = attrs.field(default=OPENAI, validator=_is_plain_url)

    @property
    def is_openai(self) -> bool:
        """Whether it is OpenAI's own server."""
        return self._parts.hostname == "api.openai.com"

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine, where servers need no key."""
        host = self._parts.hostname or ""
        if host == "localhost" or host.endswith(".localhost"):
            return True
        try:
            return ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def host(self) -> str:
        """Host name, and the port where it is not the usual one."""
        parts = self._parts
        host = parts.hostname or ""
        shown = f"[{host}]" if ":" in host else host
        return shown if parts.port in (None, _USUAL_PORTS[parts.scheme]) else f"{shown}:{parts.port}"

    @cached_property
    def _parts(self) -> SplitResult:
        return urlsplit(self.base_url)


def _fault(url: str) -> str:
    if not all("!" <= character <= "~" for character in url):
        return "holds a blank, a line break or a character beyond ASCII"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        return f"is no URL ({error})"
    return next((fault for fault, is_there in _faults(parts) if is_there), "")


def _faults(parts: SplitResult) -> Iterator[tuple[str, bool]]:
    yield "does not begin with http:// or https://", parts.scheme not in _USUAL_PORTS
    yield "names no host", not parts.hostname
    yield "holds a user name or password: give the key as a variable", "@" in parts.netloc
    yield "holds a query or a fragment", bool(parts.query or parts.fragment)
