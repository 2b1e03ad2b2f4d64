"""The forms in which a secret turns up in text: as it is, and as the usual encodings write it."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator

from orchestrator.excerpt import excerpt

__all__ = ["SHORTEST", "forms_of", "pieces_of"]

SHORTEST = 8
"""Length of the shortest secret, form and piece, characters: anything shorter stands in innocent text."""
LINES = (64, 76)
"""How long the lines are into which programs break base64: OpenSSL and PEM, base64(1) and MIME; characters."""


def forms_of(value: str) -> frozenset[str]:
    """Every form of a value that is redacted, the value itself among them.

    Base64 (standard and URL-safe, at each of the three alignments, with and without padding, and in lines),
    percent-encoding (upper and lower hexadecimal, `quote_plus`), JSON and Python escapes, also one in another; and
    all that of the value as an excerpt has it, and with CR LF for its line feeds.
    """
    cleaned = excerpt(value, len(value))
    values = {value, cleaned, " ".join(cleaned.split()), cleaned.replace("\n", "\r\n")}
    return frozenset(form for each in values for form in written_forms(each) if len(form) >= SHORTEST)


def pieces_of(form: str) -> Iterator[str]:
    """Every run of SHORTEST characters in a form."""
    for start in range(len(form) - SHORTEST + 1):
        yield form[start : start + SHORTEST]


def written_forms(value: str) -> Iterator[str]:
    """The forms of one spelling."""
    yield value
    yield from escaped_forms(value)
    yield from percent_forms(value)
    for encode in (b64encode, urlsafe_b64encode):
        yield from base64_forms(value.encode(), encode)


def escaped_forms(value: str) -> Iterator[str]:
    """As JSON and Python write it inside quotes, and as they write that: source code stands in JSON, JSON in JSON."""
    for once in written_inside_quotes(value):
        yield once
        yield from written_inside_quotes(once)


def written_inside_quotes(value: str) -> Iterator[str]:
    """The bodies of the literals of a text."""
    for body in (json.dumps(value), json.dumps(value, ensure_ascii=False), repr(value), ascii(value)):
        yield body[1:-1]
        yield body[1:-1].replace("/", "\\/")


def percent_forms(value: str) -> Iterator[str]:
    """As a URL holds it, in its path or in its query."""
    from urllib.parse import quote, quote_plus

    for encoded in (quote(value, safe=""), quote(value), quote_plus(value), quote_plus(value, safe="/")):
        yield encoded
        head, *escapes = encoded.split("%")
        yield "%".join([head, *(escape[:2].lower() + escape[2:] for escape in escapes)])


def base64_forms(data: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """What base64 makes of the bytes wherever they stand in a longer text, and where they are its end.

    Characters that also hold bits of what stands before or after differ from text to text and are left out.
    """
    yield from lines_of(encode(data).decode())
    yield from lines_of(encode(data + b"\n").decode())  # `echo $KEY | base64`
    for before in range(3):
        padded = encode(b"\0" * before + data).decode()
        text = padded.rstrip("=")[(0, 2, 3)[before] :]
        is_whole = (before + len(data)) % 3 == 0
        yield text if is_whole else text[:-1]
        if not is_whole:
            yield text
            yield text + "=" * (len(padded) - len(padded.rstrip("=")))


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text that is broken into lines, each by itself: what stands between them is anyone's."""
    for length in LINES:
        if len(text) > length:
            yield from (text[start : start + length] for start in range(0, len(text), length))
