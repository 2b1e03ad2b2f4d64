"""What an excerpt promises."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.excerpt import excerpt, inert, tail


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\nof lines", "plain\ttext\nof lines"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://example.org\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;YQ==\x07", ""),
        ("a\x9b2Jb\x00\x07c", "abc"),
        ("over\rwritten", "overwritten"),
        ("one\r\ntwo", "one\ntwo"),
        ("\u202egnp.exe", "gnp.exe"),
        ("lone \ud800 surrogate", "lone  surrogate"),
    ],
)
def test_nothing_is_left_that_a_terminal_would_act_on(text: str, shown: str) -> None:
    """Escape sequences, control characters, bidirectional overrides and lone surrogates are removed."""
    assert excerpt(text) == shown


def test_head_and_tail_are_kept_and_the_rest_is_counted() -> None:
    """A long text says how much of it is missing."""
    shown = excerpt("h" * 500 + "t" * 500, 100)
    assert (len(shown), shown[:5], shown[-5:]) == (100, "hhhhh", "ttttt")
    assert "900 characters left out" in shown


@given(some.text(), some.integers(min_value=0, max_value=60))
def test_an_excerpt_is_never_longer_than_its_limit(text: str, limit: int) -> None:
    """The limit counts the mark in the middle too."""
    assert len(excerpt(text * 7, limit)) <= limit


def test_the_tail_is_whole_lines() -> None:
    """Of long output the last lines are shown, the first of them not cut where another follows."""
    assert tail(b"first line\nsecond\nthird\n", 14) == "second\nthird"
    assert tail(b"\xff\xfe broken", 100) == "\ufffd\ufffd broken"
    assert tail(b"x" * 50, 10) == "x" * 10


def test_hidden_text_is_removed_and_joined_letters_stay() -> None:
    """Invisible characters, tag letters among them, carry no message past a reader; joiners stay but on screens."""
    hidden = "".join(chr(0xE0000 + ord(letter)) for letter in "obey")
    text = f"a{hidden}\u200b\u2060\ufeff\u061cb\u2028c \U0001f468\u200d\U0001f469"
    assert excerpt(text) == "ab\nc \U0001f468\u200d\U0001f469"
    assert inert(text) == "ab\nc \U0001f468\U0001f469"
