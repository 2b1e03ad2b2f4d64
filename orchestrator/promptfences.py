"""Fences: text of others stands between two lines with a token that no part of what is rendered with it contains.

The tokens are taken from a digest over all parts together, fenced or not, instead of random numbers, so that a
prompt can be rendered again: a text cannot contain a digest of itself and its neighbours, so the tokens are as hard
to guess for each of them as a nonce. A token of each text alone would not do: a candidate can contain the digest
of an earlier failure message, and would close that one's fence where both stand in one prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import attrs

__all__ = ["Fenced", "Part", "size_of", "written"]

TOKEN_LENGTH = 16


@attrs.define
class Fenced:
    """Text of others, and a word for what it is."""

    label: str
    text: str
    digest: str = ""
    """SHA-256 of what the text was taken from, where it is known: it then stands for the text in the token."""


Part = str | Fenced
"""Text of ours, or text of others."""


def written(parts: Sequence[Part]) -> str:
    """The parts as one text, fences and all."""
    names = [part if isinstance(part, str) else part.digest or part.text for part in parts]
    digest = digest_of("\0".join(names))
    while True:
        text, tokens = fenced(parts, digest)
        if [text.count(token) for token in tokens] == [2] * len(tokens):  # where its fence opens, and where it closes
            return text
        digest = digest_of(digest)


def fenced(parts: Sequence[Part], digest: str) -> tuple[str, list[str]]:
    """The text with fences whose tokens are cut from a digest, and the tokens."""
    shown: list[str] = []
    tokens: list[str] = []
    for part in parts:
        if isinstance(part, str):
            shown.append(part)
            continue
        if len(digest) < TOKEN_LENGTH * (len(tokens) + 1):
            digest += digest_of(digest)
        token = digest[TOKEN_LENGTH * len(tokens) :][:TOKEN_LENGTH]
        tokens.append(token)
        shown.append(f"<<< {part.label} {token}\n{part.text}\n{token} >>>")
    return "".join(shown), tokens


def size_of(parts: Sequence[Part]) -> int:
    """The length of what `written` makes of them, characters."""
    around = len("<<<  \n\n >>>") + 2 * TOKEN_LENGTH
    return sum(len(part) if isinstance(part, str) else len(part.label) + len(part.text) + around for part in parts)


def digest_of(text: str) -> str:
    """SHA-256 of a text, lone surrogates and all."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
