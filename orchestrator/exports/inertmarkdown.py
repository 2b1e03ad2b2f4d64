"""Text that others wrote, set in Markdown so that it stays text: no HTML, no links, no way out of its place.

Escaping was rejected: what is a link or a mention differs from renderer to renderer. Code is code in all.
"""

from __future__ import annotations

import re

from orchestrator.excerpt import in_short, inert

__all__ = ["block", "span"]

SHORTEST_FENCE = 3
BACKTICKS = re.compile("`+")
NOT_A_LANGUAGE = re.compile(r"[^0-9A-Za-z+#-]")


def span(text: str, limit: int = 300) -> str:
    """The text as a code span on one line, in at most `limit` characters; not for cells of tables.

    Of several lines that are too long, the first and the last are kept. An empty text is an empty string, since
    there is no empty code span.
    """
    line = in_short(text, limit)
    if not line:
        return ""
    fence = "`" * (longest_run(line) + 1)
    pad = " " if "`" in (line[0], line[-1]) else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(text: str, language: str = "") -> str:
    """The text as a fenced block, whole but for control characters; ends in a newline."""
    plain = inert(text)
    fence = "`" * max(SHORTEST_FENCE, longest_run(plain) + 1)
    end = "" if plain.endswith("\n") or not plain else "\n"
    return f"{fence}{NOT_A_LANGUAGE.sub('', language)}\n{plain}{end}{fence}\n"


def longest_run(text: str) -> int:
    """The most backticks in a row."""
    return max(map(len, BACKTICKS.findall(text)), default=0)
