"""The API key: shown nowhere, and found again in whatever a server sends back."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Final
from urllib.parse import quote

import attrs

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.secretforms import forms_of

__all__ = ["NO_KEY", "ApiKey", "key_of"]

REDACTED: Final = "[the API key]"

_SHORTEST_SECRET: Final = 12
"""Shorter keys are the made-up ones of local servers (`ollama`, `EMPTY`), which may well stand in an answer."""


@attrs.frozen(slots=False, repr=False)
class ApiKey:
    """A key that is sent as a bearer token and written nowhere else; empty for none."""

    secret: str

    def __repr__(self) -> str:
        return "ApiKey(…)" if self.secret else "ApiKey()"

    @property
    def header(self) -> bytes:
        """Value of the header `Authorization`."""
        return b"Bearer " + self.secret.encode()

    def is_in(self, text: str) -> bool:
        """Whether a text that would be kept gives the key away."""
        return len(self.secret) >= _SHORTEST_SECRET and any(form in text for form in self._forms)

    def redacted(self, text: str) -> str:
        """The text without the key, in whatever form."""
        for form in self._forms:
            text = text.replace(form, REDACTED)
        return text

    @cached_property
    def _forms(self) -> tuple[str, ...]:
        plain = {self.secret, quote(self.secret, safe=""), quote(self.secret)} - {""}
        forms = plain | forms_of(self.secret) if len(self.secret) >= _SHORTEST_SECRET else plain
        return tuple(sorted(forms, key=len, reverse=True))


NO_KEY: Final = ApiKey("")


def key_of(given: str | None, variable: str, *, is_needed: bool, server: str) -> ApiKey:
    """The key that was given, else the environment variable's.

    Raises GeneratorUnavailableError, which names the variable and never the key, when a needed one is missing
    or it holds what no HTTP header can carry.
    """
    secret = os.environ.get(variable, "") if given is None else given
    place = f"the environment variable {variable}" if given is None else "api_key"
    if not secret and is_needed:
        raise GeneratorUnavailableError(f"{server} needs an API key and {place} is not set or empty: set {variable}")
    if not all("!" <= character <= "~" for character in secret):
        raise GeneratorUnavailableError(
            f"{place} holds a blank, a line break or a character beyond ASCII, which no key has: set it anew"
        )
    return ApiKey(secret)
