"""Where a command runs, and which paths it may change from there."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator
from typing import Final

import attrs

from orchestrator.harness.danger import Danger, shown, unclear
from orchestrator.harness.locations import absolute, is_within
from orchestrator.harness.words import Redirection, Word

__all__ = ["HOMELESS", "NOWHERE", "Place"]

HOMELESS: Final = "/\0workspace"
"""Stands for the workspace where nobody knows its path."""
NOWHERE: Final = "/\0nowhere"
"""Stands for a directory that is known only when the command runs."""

_DEVICES = re.compile(r"/dev/(?:null|stdout|stderr|tty|fd/\d+)")
_MOST_DIRECTORIES = 16
_ANYTHING = re.compile(r"[*.?]*\*[*.?]*")


@attrs.frozen
class Place:
    """The workspace, further places that may be changed, and the directories a command may run in."""

    workspace: str
    also_writable: tuple[str, ...]
    directories: tuple[str, ...]
    """First the one where every `cd` worked, then those inside the workspace where some did not."""

    def inside(self, directory: str) -> Place:
        """The place after `cd directory`."""
        first, *others = (absolute(directory, each) for each in self.directories)
        return self.in_one_of([first, *filter(self.is_inside, others)])

    def or_in(self, other: Place) -> Place:
        """The same, when a command may run where it would in the other place as well."""
        return self.in_one_of([*self.directories, *filter(self.is_inside, other.directories)])

    def in_one_of(self, directories: list[str]) -> Place:
        """The same in other directories; too many are as good as unknown."""
        different = tuple(dict.fromkeys(directories))
        return attrs.evolve(self, directories=different if len(different) <= _MOST_DIRECTORIES else (NOWHERE,))

    def redirected(self, redirection: Redirection) -> Iterator[Danger]:
        """The danger of a redirection that writes."""
        if ">" not in redirection.operator:
            return
        is_descriptor = redirection.operator.endswith("&") and re.fullmatch(r"\d*-?", redirection.target.text)
        if not is_descriptor and not redirection.target.is_process:
            yield from self.written(redirection.target)

    def written(self, word: Word) -> Iterator[Danger]:
        """The danger of writing to a path."""
        if not (word.is_certain and _DEVICES.fullmatch(word.text)):
            yield from self.changed(word, "writes to")

    def changed(self, word: Word, does: str) -> Iterator[Danger]:
        """The danger of changing what lies at a path; `does` is the verb of the sentence."""
        if not word.is_certain:
            yield unclear(f"what the command {does}", word.raw, "write the path out")
            return
        paths = self.paths(word)
        if any(is_within(path, NOWHERE) for path in paths):
            yield unclear(f"where the command {does} something", word.raw, "give the path from the workspace")
        elif not all(self.is_inside(path) for path in paths):
            yield Danger(f"the command {does} {shown(word.raw)}, outside the workspace", "stay inside the workspace")

    def removed(self, word: Word, *, is_recursive: bool) -> Iterator[Danger]:
        """The danger of removing a path."""
        yield from self.changed(word, "removes")
        if is_recursive and word.is_certain and any(self.is_everything(path, word) for path in self.paths(word)):
            yield Danger(
                f"{shown(word.raw)} would remove the whole workspace",
                "name what is to go; join a cd with && to what follows it",
            )

    def paths(self, word: Word) -> tuple[str, ...]:
        """What a word may lead to, for each directory the command may run in."""
        parts = word.text.split("/")
        if word.has_glob:
            # `.*` and `.?` find the directory above as well.
            parts = [".." if part[:1] == "." and fnmatch.fnmatchcase("..", part) else part for part in parts]
        return tuple(absolute("/".join(parts), directory) for directory in self.directories)

    def is_inside(self, path: str) -> bool:
        """Whether a path may be changed."""
        return any(is_within(path, root) for root in (self.workspace, *self.also_writable))

    def is_everything(self, path: str, word: Word) -> bool:
        """Whether a path is the workspace, or all that is in it."""
        folder, _, name = path.rpartition("/")
        is_all = word.has_glob and _ANYTHING.fullmatch(name) is not None and (folder or "/") == self.workspace
        return path == self.workspace or is_all
