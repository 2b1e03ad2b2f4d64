"""Which program a simple command really starts, through keywords, assignments and programs that start others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from orchestrator.harness.words import Word

__all__ = [
    "FETCHERS",
    "INTERPRETERS",
    "SHELLS",
    "Invocation",
    "commands_of_find",
    "found_by",
    "invocation_of",
    "program_of_stdin",
    "script_of_shell",
]

SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "fish", "csh", "tcsh", "rbash"})
INTERPRETERS: Final = frozenset({"python", "perl", "ruby", "node", "php", "lua", "deno", "bun", "pypy"})
FETCHERS: Final = frozenset(
    {"curl", "wget", "fetch", "aria2c", "http", "https", "nc", "ncat", "netcat", "socat", "ftp", "lynx"}
)

_OPENING = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "coproc"})
_CLOSING = frozenset({"}", "fi", "done", "esac", "for", "select", "[[", "[", "test"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_VERSION = re.compile(r"(?<=[a-z])[0-9][0-9.]*\Z")
_PATHS_OF_FIND = re.compile(r"-[HLPO]\d*")

_STARTERS: Final[Mapping[str, tuple[frozenset[str], int]]] = {
    "env": (frozenset({"-u", "--unset"}), 0),
    "nohup": (frozenset(), 0),
    "time": (frozenset({"-f", "-o", "--format", "--output"}), 0),
    "nice": (frozenset({"-n", "--adjustment"}), 0),
    "ionice": (frozenset({"-c", "-n", "-p", "--class", "--classdata"}), 0),
    "timeout": (frozenset({"-s", "-k", "--signal", "--kill-after"}), 1),
    "stdbuf": (frozenset({"-i", "-o", "-e"}), 0),
    "setsid": (frozenset(), 0),
    "command": (frozenset(), 0),
    "builtin": (frozenset(), 0),
    "exec": (frozenset({"-a"}), 0),
    "busybox": (frozenset(), 0),
    "toybox": (frozenset(), 0),
    "chrt": (frozenset({"-T", "-P", "-D"}), 1),
    "taskset": (frozenset(), 1),
    "flock": (frozenset({"-w", "-E", "--timeout", "--wait"}), 1),
    "strace": (frozenset({"-e", "-o", "-p", "-s", "-u"}), 0),
    "catchsegv": (frozenset(), 0),
}
"""Programs that start another one: their options that take a value, and how many operands stand before it."""

_ENV_UNCLEAR = ("-S", "--split-string", "-C", "--chdir")
_XARGS_VALUES = frozenset({"-I", "-n", "-P", "-L", "-d", "-a", "-s", "-E", "--replace", "--max-args", "--max-procs"})
_NARROWING = frozenset(
    {"-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-newer", "-mtime", "-mmin", "-size"}
    | {"-empty", "-user", "-group", "-perm", "-atime", "-ctime", "-amin", "-cmin", "-inum", "-samefile", "-lname"}
)
_STARTING = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_PROGRAM_OPTIONS = frozenset({"-c", "-m", "-e", "-r", "-p", "-E", "-V", "-v", "-h", "--eval", "--print"})
_TELLING = frozenset({"--version", "--help"})
_VALUED_SHELL_OPTIONS = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


@attrs.frozen
class Invocation:
    """A program and its arguments."""

    program: str
    """Its name without directories and version, in lower case."""
    arguments: tuple[Word, ...]
    raw: str
    is_unclear: bool = False
    """Whether the program is known only when the command runs."""

    @property
    def operands(self) -> tuple[Word, ...]:
        """The arguments that are no options; those after `--` are none whatever they begin with."""
        texts = [word.text for word in self.arguments]
        end = texts.index("--") if "--" in texts else len(texts)
        plain = [word for word in self.arguments[:end] if not word.text.startswith("-") or word.text == "-"]
        return (*plain, *self.arguments[end + 1 :])

    @property
    def options(self) -> tuple[str, ...]:
        """The arguments that are options."""
        texts = [word.text for word in self.arguments]
        end = texts.index("--") if "--" in texts else len(texts)
        return tuple(text for text in texts[:end] if text.startswith("-") and text != "-")

    def has_flag(self, letters: str, *names: str) -> bool:
        """Whether one of the short options, alone or among others, or one of the long ones is given."""
        return any(
            bool(set(option[1:]) & set(letters)) if option[1] != "-" else _is_long(option, names)
            for option in self.options
        )

    @property
    def started(self) -> tuple[tuple[Word, ...], str]:
        """Of xargs: the words of the command it starts, and the text in them that stands for what it reads."""
        rest, placeholder = self.arguments, ""
        while rest and rest[0].text.startswith("-"):
            option, rest = rest[0].text, rest[1:]
            takes_value = option in _XARGS_VALUES
            if option.startswith("-I") or option in ("--replace", "-i"):
                placeholder = rest[0].text if option == "-I" and rest else option[2:] if option[:2] == "-I" else "{}"
                takes_value = option == "-I"
            rest = rest[1:] if takes_value else rest
        return rest, placeholder


def invocation_of(words: Sequence[Word]) -> Invocation | None:
    """The program that the words start in the end; None when they start none."""
    rest = _without_keywords(tuple(words))
    while rest:
        program = _program(rest[0])
        starter = _STARTERS.get(program)
        if starter is None or not rest[0].is_certain:
            return Invocation(program, rest[1:], rest[0].raw, is_unclear=not rest[0].is_certain)
        options, operands = starter
        started = _after_options(rest[1:], options)[operands:]
        while program == "env" and started and "=" in started[0].text:
            started = started[1:]
        started = _without_keywords(started)
        before = rest[1 : len(rest) - len(started)]
        if program == "env" and any(word.text.startswith(_ENV_UNCLEAR) for word in before):
            return Invocation(program, (), " ".join(word.raw for word in rest), is_unclear=True)
        if not started:
            return Invocation(program, rest[1:], rest[0].raw)
        rest = started
    return None


def script_of_shell(arguments: Sequence[Word]) -> Word | None:
    """The text that `sh -c` runs; None without one."""
    rest, has_script = list(arguments), False
    while rest and rest[0].text[:1] in ("-", "+") and rest[0].text not in ("-", "--"):
        option = rest.pop(0).text
        has_script = has_script or (option[:2] != "--" and "c" in option[1:])
        if option in _VALUED_SHELL_OPTIONS and rest:
            rest.pop(0)
    if rest and rest[0].text == "--":
        rest.pop(0)
    return rest[0] if has_script and rest else None


def program_of_stdin(invocation: Invocation) -> bool:
    """Whether a shell or an interpreter reads its program from its input."""
    is_shell = invocation.program in SHELLS
    elsewhere = _TELLING if is_shell else _TELLING | _PROGRAM_OPTIONS
    if elsewhere.intersection(invocation.options):
        return False
    is_asked = is_shell and invocation.has_flag("s")
    first = next(iter(invocation.operands), None)
    return is_asked or first is None or first.text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0")


def commands_of_find(arguments: Sequence[Word]) -> Iterator[tuple[Word, ...]]:
    """The commands that find starts, `{}` in them replaced by what it finds."""
    rest = list(arguments)
    while rest:
        if rest.pop(0).text not in _STARTING:
            continue
        words: list[Word] = []
        while rest and rest[0].text not in (";", "+"):
            words.append(rest.pop(0))
        for found in found_by(arguments):
            yield tuple(word.filled("{}", found) for word in words)


def found_by(arguments: Sequence[Word]) -> tuple[Word, ...]:
    """What find finds: something below each place it starts at, or the place itself when nothing narrows it."""
    starts: list[Word] = []
    for word in arguments:
        if word.text[:1] in ("-", "(", "!") and not _PATHS_OF_FIND.fullmatch(word.text):
            break
        if not word.text.startswith("-"):
            starts.append(word)
    is_narrow = any(word.text in _NARROWING for word in arguments)
    below = "/{}" if is_narrow else ""
    return tuple(attrs.evolve(word, text=word.text + below) for word in starts or [Word(".", ".")])


def _without_keywords(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and (words[0].raw in _OPENING or words[0].raw == "function"):
        words = words[2:] if words[0].raw == "function" else words[1:]
    if words and words[0].raw in _CLOSING:
        return ()
    return _without_assignments(words)


def _without_assignments(words: tuple[Word, ...]) -> tuple[Word, ...]:
    while words and _ASSIGNMENT.match(words[0].raw):
        words = words[1:]
    return words


def _after_options(words: tuple[Word, ...], valued: frozenset[str]) -> tuple[Word, ...]:
    while words and words[0].text.startswith("-"):
        option = words[0].text
        words = words[2:] if option in valued else words[1:]
        if option == "--":
            break
    return words


def _program(word: Word) -> str:
    name = word.text.rpartition("/")[2].lower()
    plain = _VERSION.sub("", name)
    return plain if plain in INTERPRETERS else name


def _is_long(option: str, names: Sequence[str]) -> bool:
    # GNU programs take any beginning of a long option that is long enough to be told apart.
    given = option.partition("=")[0]
    return any(name.startswith(given) for name in names) and len(given) > len("--")
