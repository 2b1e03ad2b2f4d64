"""Shell commands once they are read: words, redirections, commands, pipelines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

import attrs

__all__ = [
    "HOME",
    "LONGEST",
    "UNKNOWN",
    "Command",
    "Pipeline",
    "Redirection",
    "Script",
    "Word",
    "WordParts",
    "commands_of",
]

HOME: Final = "/\0home"
"""Stands for the home directory: a place outside every workspace, with a name no file can have."""
UNKNOWN: Final = "\0"
"""Stands in a word for what is known only when the command runs."""

LONGEST: Final = 100_000
"""Longest text that is read, characters."""

_BRACES = re.compile(r"\{[^{}]*\}")
_GLOB = re.compile(r"[*?\[]")


@attrs.frozen
class Word:
    """One word, without its quotation marks."""

    text: str
    raw: str
    """As it is written."""
    is_certain: bool = True
    """Whether the text is what the program gets, but for globs."""
    has_glob: bool = False
    is_process: bool = False
    """Whether it is the output of a command, as a file: `<(…)`."""
    scripts: tuple[Script, ...] = ()
    """What runs while the word is expanded."""

    def filled(self, placeholder: str, passed: Word) -> Word:
        """The word with what another program puts in place of the placeholder."""
        count = self.text.count(placeholder)
        if not count:
            return self
        if len(self.text) + count * len(passed.text) > LONGEST:
            return attrs.evolve(self, is_certain=False)
        text = self.text.replace(placeholder, passed.text)
        return attrs.evolve(self, text=text, is_certain=self.is_certain and passed.is_certain)


@attrs.define
class Redirection:
    """Where input or output is redirected; the target of a here-document is its text."""

    operator: str
    target: Word


@attrs.frozen
class Command:
    """Words that start a program, or a group in parentheses, or the opening of a function."""

    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...] = ()
    group: Script | None = None
    defines: str = ""
    """Name of the function whose body follows; empty otherwise."""


@attrs.frozen
class Pipeline:
    """Commands, each reading what the one before it writes."""

    commands: tuple[Command, ...]
    follows: str
    """The operator after it; empty for the last."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing stands there but the operator."""
        return self.commands == (Command(()),) and self.follows != "&"


Script: TypeAlias = tuple[Pipeline, ...]
"""Pipelines in order."""


@attrs.define(eq=False)
class WordParts:
    """A word while it is read."""

    texts: list[str] = attrs.Factory(list[str])
    unquoted: list[str] = attrs.Factory(list[str])
    """The same with everything quoted made harmless: here globs and braces have their meaning."""
    is_certain: bool = True
    is_process: bool = False
    scripts: list[Script] = attrs.Factory(list[Script])

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read yet, not even a quotation mark."""
        return not self.texts

    def bare(self, text: str) -> None:
        """Text outside quotation marks."""
        self.texts.append(text)
        self.unquoted.append(text)

    def quote(self, text: str) -> None:
        """Text in which nothing has a meaning of its own."""
        self.texts.append(text)
        self.unquoted.append("_" * len(text))

    def unknown(self) -> None:
        """Something known only when the command runs."""
        self.quote(UNKNOWN)
        self.is_certain = False

    def process(self) -> None:
        """The output of a command, as a file."""
        self.unknown()
        self.is_process = True

    def variable(self, name: str) -> None:
        """The value of a variable; only the home and the current directory are known."""
        if name == "HOME":
            self.quote(HOME)
        elif name == "PWD" and not any(self.texts):
            self.quote(".")
        else:
            self.unknown()

    def substitute(self, script: Script) -> None:
        """The output of a command."""
        self.scripts.append(script)
        words = [word.text for command in commands_of(script) for word in command.words]
        if words == ["pwd"] and not any(self.texts):
            self.quote(".")
        else:
            self.unknown()

    def word(self, raw: str) -> Word:
        """The whole word."""
        unquoted = "".join(self.unquoted)
        is_expanded = any("," in braces or ".." in braces for braces in _BRACES.findall(unquoted))
        return Word(
            "".join(self.texts),
            raw,
            is_certain=self.is_certain and not is_expanded,
            has_glob=bool(_GLOB.search(unquoted)),
            is_process=self.is_process,
            scripts=tuple(self.scripts),
        )


def commands_of(script: Script) -> Iterator[Command]:
    """Every command of a script, those in groups and words included."""
    for pipeline in script:
        for command in pipeline.commands:
            yield command
            yield from commands_of(command.group or ())
            for word in (*command.words, *(redirection.target for redirection in command.redirections)):
                for inner in word.scripts:
                    yield from commands_of(inner)
