"""Reads the tagged sections of a module's text: `<intent>`, `<constraints>`, `<example name="…">` …

A tag opens at the start of a line and closes at the end of one. Inside fenced code, indented code and
running text a tag is text, so that a spec can speak of tags, and so is an unknown tag inside a section.
What stands outside of all sections is for human readers and is no part of the spec.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from orchestrator.faults import Fault, closest_name

__all__ = ["TAGS", "TaggedSection", "TaggedText", "read_tagged_text"]

TAGS: Final = ("intent", "constraints", "avoid", "interface", "threat-model", "example", "references")
"""The tags a module's text may use."""

_OPENING = re.compile(r""" {0,3}<([A-Za-z][A-Za-z0-9_-]*)(\s(?:[^<>"']|"[^"]*"|'[^']*')*)?>""")
_CLOSING = re.compile(r"</([A-Za-z][A-Za-z0-9_-]*)\s*>\s*\Z")
_FENCE = re.compile(r" {0,3}(`{3,}(?=[^`]*\Z)|~{3,})")
_NAME = re.compile(r"""(?:^|\s)name\s*=\s*(?:"([^"]*)"|'([^']*)')""")


@attrs.frozen
class TaggedSection:
    """One section: its tag, its name (examples only), the line of its tag and of its text, its text."""

    tag: str
    name: str
    line: int
    first_line: int
    text: str


@attrs.frozen
class TaggedText:
    """All sections in order, and everything that is wrong, by line."""

    sections: tuple[TaggedSection, ...]
    faults: tuple[Fault, ...]


def read_tagged_text(text: str) -> TaggedText:
    """The sections of `text`, each without the line ends next to its tags, otherwise byte for byte."""
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), start=1):
        reader.read(number, line)
    reader.finish()
    return TaggedText(tuple(reader.sections), tuple(reader.faults))


@attrs.define
class _OpenSection:
    tag: str
    name: str
    line: int
    first_line: int
    lines: list[str]


@attrs.define
class _Reader:
    sections: list[TaggedSection] = attrs.Factory(list[TaggedSection])
    faults: list[Fault] = attrs.Factory(list[Fault])
    _section: _OpenSection | None = None
    _abandoned: list[str] = attrs.Factory(list[str])
    _fence: str = ""
    _fence_line: int = 0

    def read(self, number: int, line: str) -> None:
        if self._is_code(number, line):
            self._add(line)
            return
        opening = _OPENING.match(line)
        if opening and opening[1] in TAGS:
            line = line[opening.end() :]
            self._open(number, opening[1], opening[2] or "", first_line=number + (not line.strip()))
            if not line.strip():
                return
        elif opening and self._section is None:
            self._refuse_unknown(number, opening[1])
            return
        self._read_rest(number, line)

    def finish(self) -> None:
        if self._section is None:
            return
        tag = self._section.tag
        fence = f"; the code fence of line {self._fence_line} is still open" if self._fence else ""
        self._fault(self._section.line, f"<{tag}> is never closed: add </{tag}>{fence}")

    def _is_code(self, number: int, line: str) -> bool:
        fence = _FENCE.match(line)
        if self._fence:
            if fence and fence[1].startswith(self._fence) and not line[fence.end() :].strip():
                self._fence = ""
            return True
        if fence:
            self._fence, self._fence_line = fence[1], number
        return fence is not None

    def _open(self, number: int, tag: str, attributes: str, *, first_line: int) -> None:
        if self._section is not None:
            outer = self._section
            message = f"<{tag}> opens inside <{outer.tag}> of line {outer.line}: close <{outer.tag}> first"
            self._fault(number, message)
            self._abandoned.append(outer.tag)
        if tag == "intent" and any(section.tag == "intent" for section in self.sections):
            self._fault(number, "a second <intent>: a module has one")
        name = _NAME.search(attributes)
        given = (name[1] or name[2] or "") if name else ""
        if tag == "example" and not given:
            self._fault(number, 'an example without a name: write <example name="…">')
            given = f"line {number}"
        self._section = _OpenSection(tag, given, number, first_line, [])

    def _read_rest(self, number: int, line: str) -> None:
        closing = _CLOSING.search(line)
        if closing is None or (closing[1] not in TAGS and self._section is not None):
            self._add(line)
        elif self._section is not None and closing[1] == self._section.tag:
            self._close(line[: closing.start()])
        elif closing[1] in self._abandoned:
            self._abandoned.remove(closing[1])
        elif closing[1] in TAGS:
            open_now = f"<{self._section.tag}> of line {self._section.line}" if self._section else "nothing"
            self._fault(number, f"</{closing[1]}> closes what is not open: {open_now} is")
        elif not line[: closing.start()].strip():
            self._refuse_unknown(number, closing[1])

    def _close(self, rest: str) -> None:
        section = self._section
        if section is None:
            return
        lines = [*section.lines, rest] if rest.strip() else section.lines
        text = "\n".join(lines).removesuffix("\r")
        self.sections.append(TaggedSection(section.tag, section.name, section.line, section.first_line, text))
        self._section = None

    def _add(self, line: str) -> None:
        if self._section is not None:
            self._section.lines.append(line)

    def _refuse_unknown(self, number: int, tag: str) -> None:
        self._fault(number, f"unknown tag <{tag}>", closest_name(tag.lower(), TAGS))

    def _fault(self, number: int, message: str, hint: str = "") -> None:
        self.faults.append(Fault(f"line {number}", message, hint))
