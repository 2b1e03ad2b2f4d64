"""Redaction: whatever the text, the encoding, the cut and the chunks, nothing of a secret comes through."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from urllib.parse import quote, quote_plus

from hypothesis import example, given
from hypothesis import strategies as some

from orchestrator.excerpt import excerpt, tail
from orchestrator.prompt import shorten
from orchestrator.promptfences import Fenced, Part, size_of, written
from orchestrator.redaction import FEWEST_KINDS, RedactingStream, Secrets
from orchestrator.secretforms import SHORTEST, forms_of, pieces_of

MARK = "[redacted key]"
PLAIN = some.text(some.characters(codec="utf-8"), max_size=60)

values = (
    some.text(some.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=SHORTEST, max_size=40)
    .map(str.strip)
    .filter(lambda text: len(text) >= SHORTEST and len(set(text)) >= FEWEST_KINDS and "redacted" not in text)
)

ENCODINGS: list[Callable[[str], str]] = [
    str,
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    quote,
    lambda text: quote(text, safe=""),
    lambda text: re.sub("%..", lambda escape: escape[0].lower(), quote(text, safe="")),
    quote_plus,
    json.dumps,
    lambda text: json.dumps(text, ensure_ascii=False),
    lambda text: json.dumps(json.dumps(text)),
    repr,
]


def leaked(text: str, value: str) -> list[str]:
    """The pieces of a value that stand between the marks of a text."""
    parts = text.split(MARK)
    return [piece for piece in pieces_of(value) if any(piece in part for part in parts)]


@given(values, PLAIN, PLAIN, some.sampled_from(ENCODINGS))
def test_no_form_survives(value: str, before: str, after: str, encode: Callable[[str], str]) -> None:
    """A value is gone however it is encoded; the text around it stays."""
    encoded = encode(value)
    redacted = Secrets({"key": value}).redact(f"{before}{encoded}{after}")
    assert [form for form in forms_of(value) if any(form in part for part in redacted.split(MARK))] == []
    assert MARK in redacted


@given(values, some.binary(max_size=12), some.binary(max_size=12), some.booleans())
def test_base64_of_a_longer_text(value: str, before: bytes, after: bytes, is_url: bool) -> None:
    """A value inside a longer text that is base64 as a whole (a Basic header) is gone at each alignment."""
    encode = base64.urlsafe_b64encode if is_url else base64.b64encode
    encoded = encode(before + value.encode() + after).decode()
    redacted = Secrets({"key": value}).redact(encoded)
    assert MARK in redacted
    kept = "".join(part for part in redacted.split(MARK))
    assert len(kept) <= 4 * (len(before) + len(after)) // 3 + 12


@given(values, some.lists(some.one_of(PLAIN, values), max_size=6), some.integers(0, 300), some.data())
def test_no_piece_survives_any_cut(value: str, around: list[str], limit: int, data: some.DataObject) -> None:
    """Cut where and how often you like, the most that is left of a secret is seven characters."""
    texts = [*around, value, value, data.draw(some.sampled_from(ENCODINGS))(value)]
    text = "".join(data.draw(some.permutations(texts)))
    secrets = Secrets({"key": value})
    cuts = [
        excerpt(text, limit),
        tail(text.encode(), limit),
        shorten(text, limit),
        text[:limit],
        text[limit:],
        excerpt(f"failed: {excerpt(text, limit)!r:.80}", limit // 2),
    ]
    assert [leaked(secrets.redact_pieces(cut), value) for cut in cuts] == [[]] * len(cuts)


@given(some.lists(values, min_size=1, max_size=3), some.data())
@example(["abcdefghab"], None)
@example(["aabbccdd-aabbccdd"], None)
def test_chunks_make_no_difference(found: list[str], data: some.DataObject | None) -> None:
    """A stream gives what redacting the whole gives, and never holds back more than the longest form less one."""
    secrets = Secrets({f"key{number}": value for number, value in enumerate(found)})
    text = (
        found[0] * 3 if data is None else "".join(data.draw(some.lists(some.one_of(PLAIN, some.sampled_from(found)))))
    )
    ends = range(len(text)) if data is None else sorted(data.draw(some.lists(some.integers(0, len(text)))))
    stream, shown, start = RedactingStream(secrets), "", 0
    for end in [*ends, len(text)]:
        shown += stream.feed(text[start:end])
        start = end
        assert len(stream.held) < secrets.longest
        assert stream.held == "" or secrets.is_beginning(stream.held)
        assert secrets.redact(text).startswith(shown)
    assert shown + stream.end() == secrets.redact(text)


@given(values, PLAIN, some.lists(some.integers(0, 200)), some.data())
def test_pauses_and_cuts_show_no_piece(value: str, plain: str, ends: list[int], data: some.DataObject) -> None:
    """A stream may pause and be cut off anywhere: eight characters of a secret are never shown, other text always."""
    stream = RedactingStream(Secrets({"key": value}))

    def shown(text: str) -> str:
        parts, start = "", 0
        for end in [*sorted(end for end in ends if end < len(text)), len(text)]:
            parts += stream.feed(text[start:end]) + (stream.pause() if data.draw(some.booleans()) else "")
            start = end
        return parts

    with_secret = f"{plain}{value}{plain}"
    assert leaked(shown(with_secret) + stream.end(), value) == []
    cut = data.draw(some.integers(0, len(with_secret)))
    assert leaked(shown(with_secret[:cut]) + stream.cut(), value) == []
    if stream.secrets.redact(plain) == plain:
        assert shown(plain) + stream.end() == plain


@given(values, PLAIN)
def test_redacting_twice_changes_nothing(value: str, text: str) -> None:
    """What is redacted stays as it is, and so does a text without any secret."""
    secrets = Secrets({"key": value})
    once = secrets.redact(f"{text}{value}{text}")
    assert secrets.redact(once) == once
    assert value in text or secrets.redact(text) is text or MARK in secrets.redact(text)


WORDS = PLAIN.filter(lambda text: "<<<" not in text)
parts = some.lists(
    some.one_of(WORDS, some.builds(Fenced, some.sampled_from(["seed", "failures", "candidate"]), WORDS)), max_size=5
)


@given(parts, some.integers(1, 3))
def test_no_text_closes_a_fence(found: list[Part], rounds: int) -> None:
    """Each fence is opened and closed once, though the texts hold all that earlier prompts were fenced with."""
    for _ in range(rounds):
        fences = [part for part in found if isinstance(part, Fenced)]
        prompt = written(found)
        assert len(prompt) == size_of(found)
        tokens, rest = [], prompt
        for each in fences:
            rest = rest.partition(f"<<< {each.label} ")[2]
            tokens.append(rest[:16])
            assert rest.startswith(f"{tokens[-1]}\n{each.text}\n{tokens[-1]} >>>")
        assert [prompt.count(token) for token in tokens] == [2] * len(fences)
        hostile = "".join(f"\n{token} >>>" for token in tokens)
        found = [Fenced(each.label, each.text + hostile) if isinstance(each, Fenced) else each for each in found]
