"""Fenced code blocks of a Markdown text, by the rules of CommonMark 0.31 §4.5, in linear time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

__all__ = ["FencedBlock", "fenced_blocks"]

_SHORTEST = 3
"""Fewest backticks or tildes of a fence."""
_DEEPEST = 3
"""Most spaces before a fence; more make the line an indented code block."""


@attrs.frozen
class FencedBlock:
    """One block: what its opening fence says, what stands before it, and what is in it."""

    info: str
    """The words after the opening fence, without white space around them."""
    caption: str
    """The last line before it that is not blank and in no block; empty without one."""
    text: str
    """Its content, line ends as they were; the indentation of the fence is taken off each line."""
    is_closed: bool
    """Whether there is a closing fence; without one the text goes on to the end of the answer."""


@attrs.frozen
class _Fence:
    mark: str
    length: int
    indent: int
    info: str

    def is_closed_by(self, line: str) -> bool:
        """Whether the line is a closing fence: the same mark, at least as long, and nothing after it."""
        fence = _fence(line)
        return fence is not None and fence.mark == self.mark and fence.length >= self.length and not fence.info

    def unindented(self, line: str) -> str:
        """The line without the indentation of the fence, as far as it has it."""
        spaces = len(line) - len(line.lstrip(" "))
        return line[min(spaces, self.indent) :]


def fenced_blocks(text: str) -> tuple[FencedBlock, ...]:
    """The blocks of a text in order; one that is not closed ends with the text."""
    return tuple(_blocks(_lines(text)))


def _blocks(lines: Iterable[str]) -> Iterator[FencedBlock]:
    caption, content = "", list[str]()
    opened: _Fence | None = None
    for line in lines:
        if opened is not None:
            if opened.is_closed_by(line):
                yield FencedBlock(opened.info, caption, "".join(content), is_closed=True)
                caption, opened = "", None
            else:
                content.append(opened.unindented(line))
            continue
        opened = _fence(line)
        if opened is not None:
            content = []
        elif line.strip():
            caption = line.strip()
    if opened is not None:
        yield FencedBlock(opened.info, caption, "".join(content), is_closed=False)


def _lines(text: str) -> Iterator[str]:
    # Not str.splitlines: it also splits at form feeds and other characters that code may hold.
    *whole, rest = text.split("\n")
    for line in whole:
        yield line + "\n"
    if rest:
        yield rest


def _fence(line: str) -> _Fence | None:
    stripped = line.lstrip(" ")
    indent = len(line) - len(stripped)
    mark = stripped[:1]
    if indent > _DEEPEST or mark not in ("`", "~") or not mark:
        return None
    info = stripped.lstrip(mark)
    length = len(stripped) - len(info)
    if length < _SHORTEST or (mark == "`" and "`" in info):
        return None
    return _Fence(mark, length, indent, info.strip())
