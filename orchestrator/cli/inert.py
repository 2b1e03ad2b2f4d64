"""Text that others wrote, made safe to print: nothing in it that a terminal would act on."""

from __future__ import annotations

import unicodedata

from orchestrator.excerpt import excerpt

__all__ = ["indented", "inert", "one_line"]

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of control, format (bidirectional overrides among them), surrogate and separating characters."""


def inert(text: str) -> str:
    """The text without escape sequences, control and invisible characters; line feeds and tabs stay."""
    plain = excerpt(text, len(text))
    if plain.isprintable():
        return plain
    return "".join(
        character for character in plain if character in "\n\t" or unicodedata.category(character) not in _UNSEEN
    )


def indented(text: str) -> str:
    """The text, inert, every line but its first further in: what others wrote cannot pass for a line of ours."""
    return "\n  ".join(inert(line) for line in text.splitlines())


def one_line(text: str, limit: int, ellipsis: str = "…") -> str:
    """The first line that says something, inert, in at most `limit` characters."""
    lines = (" ".join(line.split()) for line in inert(text).splitlines())
    line = next((line for line in lines if line), "")
    return line if len(line) <= limit else line[: max(0, limit - len(ellipsis))] + ellipsis
