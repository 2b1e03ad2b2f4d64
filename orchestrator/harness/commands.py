"""Judges a shell command: what it would start, where, and whether that destroys, escapes or hides something."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import attrs

from orchestrator.harness.danger import Danger, unclear
from orchestrator.harness.invocations import (
    FETCHERS,
    INTERPRETERS,
    SHELLS,
    Invocation,
    commands_of_find,
    found_by,
    invocation_of,
    program_of_stdin,
    script_of_shell,
)
from orchestrator.harness.locations import absolute
from orchestrator.harness.place import HOMELESS, NOWHERE, Place
from orchestrator.harness.programs import dangers_of_program
from orchestrator.harness.shell import UnclearCommandError, read_script
from orchestrator.harness.words import HOME, UNKNOWN, Command, Pipeline, Redirection, Script, Word, commands_of

__all__ = ["Danger", "judge_command"]

_SIMPLER: Final = "write it simpler: plain commands, one a line"
_FILTERS = frozenset({"grep", "egrep", "fgrep", "sort", "uniq", "head", "tail"})
_DEEPEST = 10
_MOST = 2_000


def judge_command(
    command: str, workspace: str | None, *, also_writable: Sequence[str] = (), directory: str = "."
) -> Danger | None:
    """The first danger of a command that starts in `directory` of the workspace; None when there is none.

    The workspace is absolute; None means that nothing but relative paths is known to be inside.
    """
    root = workspace or HOMELESS
    place = Place(root, tuple(also_writable), (absolute(directory, root),))
    try:
        return next(_Judge().text(command, place), None)
    except UnclearCommandError as error:
        return Danger(f"the command cannot be understood: {error.problem}", _SIMPLER)


@attrs.define(eq=False)
class _Judge:
    """Walks through one command; `depth` counts the texts within texts."""

    depth: int = 0
    judged: int = 0
    functions: list[str] = attrs.Factory(list[str])
    """Names of the functions whose body is being read."""

    def text(self, text: str, place: Place) -> Iterator[Danger]:
        """The dangers of a text that a shell reads."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise UnclearCommandError(f"it starts shells within shells, more than {_DEEPEST}")
        yield from self.script(read_script(text), place)
        self.depth -= 1

    def script(self, script: Script, place: Place) -> Iterator[Danger]:
        """The dangers of a script; where it goes is known to itself alone, as in a subshell."""
        start = place
        for pipeline in script:
            yield from self.pipeline(pipeline, place)
            place = _moved(pipeline, place)
            if pipeline.follows != "&&":
                # A `cd` may have failed, and what follows runs where the list began.
                start = place = place.or_in(start)

    def pipeline(self, pipeline: Pipeline, place: Place) -> Iterator[Danger]:
        for index, command in enumerate(pipeline.commands):
            yield from self.command(command, pipeline.commands[:index], place)

    def command(self, command: Command, before: Sequence[Command], place: Place) -> Iterator[Danger]:
        if command.defines:
            self.functions.append(command.defines)
        yield from self.expansions(command, place)
        for redirection in command.redirections:
            yield from place.redirected(redirection)
        if command.group is not None:
            yield from self.script(command.group, place)
        invocation = invocation_of(command.words)
        if invocation is None:
            if self.functions and any(word.raw == "}" for word in command.words[:1]):
                self.functions.pop()
            return
        yield from self.invocation(invocation, command.redirections, before, place)

    def expansions(self, command: Command, place: Place) -> Iterator[Danger]:
        """The dangers of what runs while the words are expanded."""
        for word in (*command.words, *(redirection.target for redirection in command.redirections)):
            for script in word.scripts:
                yield from self.script(script, place)

    def invocation(
        self, invocation: Invocation, redirections: Sequence[Redirection], before: Sequence[Command], place: Place
    ) -> Iterator[Danger]:
        """The dangers of one program with its arguments."""
        self.judged += 1
        if self.judged > _MOST:
            raise UnclearCommandError(f"it starts more than {_MOST} programs")
        if invocation.is_unclear:
            yield unclear("which program this starts", invocation.raw, "name the program")
        elif invocation.program in self.functions:
            yield Danger(f"the function {invocation.program!r} calls itself without end", "write a loop with an end")
        elif invocation.program in SHELLS:
            yield from self.shell(invocation, redirections, place)
        elif invocation.program in INTERPRETERS:
            yield from _interpreter(invocation, redirections, before)
        elif invocation.program in ("eval", "trap", "watch", "alias", ".", "source"):
            yield from self.words_as_text(invocation, place)
        elif invocation.program == "xargs":
            yield from self.xargs(invocation, before, place)
        elif invocation.program == "find":
            yield from dangers_of_program(invocation, place)
            for words in commands_of_find(invocation.arguments):
                yield from self.started(words, place)
        else:
            yield from dangers_of_program(invocation, place)

    def started(self, words: Sequence[Word], place: Place) -> Iterator[Danger]:
        """The dangers of a command that another program starts."""
        invocation = invocation_of(words)
        if invocation is not None:
            yield from self.invocation(invocation, (), (), place)

    def shell(self, invocation: Invocation, redirections: Sequence[Redirection], place: Place) -> Iterator[Danger]:
        """The dangers of `sh -c '…'`, of a shell that reads a text, and of one that runs what is piped into it."""
        script = script_of_shell(invocation.arguments)
        if script is not None:
            yield from self.word_as_text(script, place)
            return
        if any(word.is_process for word in invocation.arguments):
            yield _runs_output(invocation)
        if not program_of_stdin(invocation):
            return
        texts = [each.target for each in redirections if each.operator.startswith("<<")]
        for text in texts:
            yield from self.word_as_text(text, place)
        is_file = any(each.operator == "<" and not each.target.is_process for each in redirections)
        if not texts and not is_file:
            # Its input comes from a pipe, if not from this command's, then from one around it.
            yield _runs_output(invocation)

    def word_as_text(self, word: Word, place: Place) -> Iterator[Danger]:
        if word.is_certain:
            yield from self.text(word.text.replace(HOME, "$HOME"), place)
        else:
            yield unclear("what this runs", word.raw, "write the commands out")

    def words_as_text(self, invocation: Invocation, place: Place) -> Iterator[Danger]:
        """The dangers of programs that read their arguments as commands, or a file of them."""
        words = invocation.operands
        match invocation.program:
            case "." | "source":
                if any(word.is_process or word.text in ("/dev/stdin", "-") for word in words[:1]):
                    yield _runs_output(invocation)
                return
            case "trap":
                words = words[:1]
            case "alias":
                words = tuple(attrs.evolve(word, text=word.text.partition("=")[2]) for word in words)
        text = " ".join(word.text for word in words)
        raw = " ".join(word.raw for word in words)
        yield from self.word_as_text(Word(text, raw, is_certain=all(word.is_certain for word in words)), place)

    def xargs(self, invocation: Invocation, before: Sequence[Command], place: Place) -> Iterator[Danger]:
        """The dangers of a command that gets its arguments from what another one writes."""
        words, placeholder = invocation.started
        for passed in _passed(before):
            filled = [word.filled(placeholder, passed) for word in words] if placeholder else [*words, passed]
            yield from self.started(filled, place)


def _moved(pipeline: Pipeline, place: Place) -> Place:
    """Where the next command runs."""
    invocation = invocation_of(pipeline.commands[0].words) if len(pipeline.commands) == 1 else None
    if invocation is None or invocation.program not in ("cd", "pushd", "popd"):
        return place
    target = invocation.operands[0] if invocation.operands else None
    if target is None:
        text = HOME if invocation.program == "cd" else NOWHERE
    else:
        is_known = target.is_certain and not target.has_glob and target.text != "-"
        text = target.text if is_known else NOWHERE
    return place.inside(text)


def _passed(before: Sequence[Command]) -> tuple[Word, ...]:
    """What xargs passes on: the files of a `find` before it, or something nobody knows."""
    invocations = [invocation_of(command.words) for command in before]
    first = invocations[0] if invocations else None
    are_filters = all(each is not None and each.program in _FILTERS for each in invocations[1:])
    if first is not None and first.program == "find" and are_filters:
        return found_by(first.arguments)
    return (Word(UNKNOWN, "what it reads", is_certain=False),)


def _interpreter(
    invocation: Invocation, redirections: Sequence[Redirection], before: Sequence[Command]
) -> Iterator[Danger]:
    """The dangers of running as a program what was fetched."""
    is_fed = any(_fetches(command) for command in before)
    if not before and not invocation.arguments:
        # It waits for a program: one that is piped into a block around it.
        is_fed = not any(each.operator.startswith("<") for each in redirections)
    arguments = (script for word in invocation.arguments for script in word.scripts)
    fetches = any(_fetches(command) for script in arguments for command in commands_of(script))
    if fetches or (is_fed and program_of_stdin(invocation)):
        yield _runs_output(invocation)


def _fetches(command: Command) -> bool:
    """Whether a command fetches, or is a block whose commands are not looked into."""
    invocation = invocation_of(command.words)
    return invocation is None or invocation.program in FETCHERS


def _runs_output(invocation: Invocation) -> Danger:
    return Danger(
        f"{invocation.program} would run what another command prints",
        "store it in a file of the workspace and read it before you run it",
    )
