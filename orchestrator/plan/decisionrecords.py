"""Architecture decision records: one Markdown file for each decision, numbered, never overwritten."""

from __future__ import annotations

import re
import unicodedata
from itertools import count
from typing import Final, Literal

import attrs

from orchestrator.exports.inertmarkdown import block, span
from orchestrator.plan.rootfiles import RootDirectory
from orchestrator.plan.studiostate import DecisionEntry

__all__ = ["DecisionRecord", "record_decision"]

NUMBERED = re.compile(r"ADR-(\d{4,9})-.*\.md", re.ASCII)
NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
LONGEST_SLUG: Final = 60


@attrs.frozen(kw_only=True)
class DecisionRecord:
    """A decision, why it was made, and what follows from it."""

    title: str
    context: str
    decision: str
    consequences: str
    status: Literal["proposed", "accepted", "deprecated", "superseded"] = "accepted"

    def page(self, number: int) -> str:
        """The record as Markdown; its texts stand in it as code, so that they stay text."""
        parts = (("Context", self.context), ("Decision", self.decision), ("Consequences", self.consequences))
        body = "".join(f"\n## {title}\n\n{block(text)}" for title, text in parts)
        return f"# {number}. {span(self.title) or '(untitled)'}\n\n## Status\n\n{self.status.capitalize()}\n{body}"


def record_decision(root: RootDirectory, folder: str, record: DecisionRecord) -> DecisionEntry:
    """Write a decision under the next number, from 1.

    A decision that is there already, word for word, is not written twice, so that this can be repeated after a
    crash. Raises RootFileError.
    """
    numbers = {name: int(found[1]) for name in root.names(folder) if (found := NUMBERED.fullmatch(name))}
    ending = f"-{slug(record.title)}.md"
    for name, number in numbers.items():
        if name.endswith(ending) and root.read(f"{folder}/{name}") == record.page(number).encode():
            return entry(record, number, f"{folder}/{name}")
    for number in count(max(numbers.values(), default=0) + 1):
        path = f"{folder}/ADR-{number:04d}{ending}"
        if root.create(path, record.page(number).encode()):
            return entry(record, number, path)
    raise AssertionError  # numbers do not end


def entry(record: DecisionRecord, number: int, path: str) -> DecisionEntry:
    """What the state holds of a decision."""
    return DecisionEntry(number=number, title=record.title, status=record.status, path=path)


def slug(title: str) -> str:
    """The title as part of a file name."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    return NOT_IN_NAMES.sub("-", plain)[:LONGEST_SLUG].strip("-") or "decision"
