"""Reads shell commands as a POSIX shell (and bash, where agents use it) splits them, and runs nothing.

`shlex` cannot serve here: it forgets what was quoted, so that `echo ';' rm` has an operator, `'~'` a home
directory and `"$(rm -rf /)"` no command in it. This reader keeps what a judge needs: which words are known
before the command runs, which commands hide inside words, and where output goes. What it does not understand
it refuses, since what nobody can read nobody can judge. `case`, arrays and extended globs are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs

from orchestrator.harness.words import HOME, LONGEST, Command, Pipeline, Redirection, Script, Word, WordParts

__all__ = ["UnclearCommandError", "read_script"]

DEEPEST: Final = 20
"""Deepest nesting of substitutions and groups."""

_REDIRECTION = re.compile(r"(?:&>>?|(?:\d+|\{\w+\})?(?:<<<|<<-|<<|<>|<&|>&|>>|>\||[<>](?!\()))")
_SEPARATOR = re.compile(r"&&|\|\||;;|;|&(?!>)|\n")
_NAME = re.compile(r"[A-Za-z_]\w*|[0-9@*#?$!-]")
_TILDE = re.compile(r"~[\w.+-]*")
_BLANK = re.compile(r"(?:[ \t]|\\\n)*")
_ASSIGNMENT_OPENING = re.compile(r"[A-Za-z_]\w*\+?=\Z")
_PLAIN = re.compile(r"""[^ \t\n;&|<>()\\'"$`~]*""")
_PLAIN_QUOTED = re.compile(r"""[^"\\$`]*""")
_ENDS_WORD = frozenset(" \t\n;&|<>()")
_OPENS_COMMAND = frozenset({"if", "then", "else", "elif", "while", "until", "do", "!", "{", "time"})


class UnclearCommandError(Exception):
    """A command cannot be read; `problem` says where it stops making sense."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


def read_script(text: str, depth: int = 0) -> Script:
    """The pipelines of a text; raises UnclearCommandError for what is no shell command, or too intricate."""
    if len(text) > LONGEST:
        raise UnclearCommandError(f"it is longer than {LONGEST} characters")
    if any(character in text for character in "\0\r\x1b"):
        raise UnclearCommandError("it holds control characters")
    return _Reader(text, depth).script()


@attrs.define(eq=False)
class _Reader:
    text: str
    depth: int = 0
    at: int = 0
    bodies: list[tuple[Redirection, str, bool]] = attrs.Factory(list[tuple[Redirection, str, bool]])
    """Here-documents whose text begins after the next line feed: where it goes, what ends it, whether it is quoted."""

    def script(self, closing: str = "") -> Script:
        """Pipelines up to `closing`, or to the end."""
        self.deeper()
        pipelines: list[Pipeline] = []
        while True:
            commands = [self.command()]
            while not self.takes("||") and (self.skips("|&") or self.skips("|")):
                self.blank_lines()
                commands.append(self.command())
            follows = self.separator() or ("()" if commands[-1].defines else "")
            pipelines.append(Pipeline(tuple(commands), follows))
            if follows:
                continue
            if self.at == len(self.text) and not closing:
                break
            if closing and self.skips(closing):
                break
            raise UnclearCommandError(f"{self.text[self.at : self.at + 20] or 'the end'!r} stands where it cannot")
        self.depth -= 1
        return tuple(each for each in pipelines if not each.is_empty)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > DEEPEST:
            raise UnclearCommandError(f"it is nested deeper than {DEEPEST} levels")

    # -- commands

    def command(self) -> Command:
        words: list[Word] = []
        redirections: list[Redirection] = []
        group: Script | None = None
        while self.blanks() and not self.ends_command():
            if self.takes("#"):
                self.at = self.until("\n")
            elif match := _REDIRECTION.match(self.text, self.at):
                redirections.append(self.redirection(match))
            elif self.takes("("):
                if words and not self.opens(words):
                    return self.function(words)
                group = self.group()
            elif group is not None:
                raise UnclearCommandError("a word follows a closing parenthesis")
            else:
                words.append(self.word())
                if words[-1].raw == "[[" and self.opens(words[:-1]):
                    words.append(self.test())
        return Command(tuple(words), tuple(redirections), group)

    @staticmethod
    def opens(words: list[Word]) -> bool:
        """Whether the next word is the first of a command."""
        return all(word.raw in _OPENS_COMMAND for word in words)

    def function(self, words: list[Word]) -> Command:
        if len(words) != 1 or not re.match(r"\(\s*\)", self.text[self.at :]):
            raise UnclearCommandError("a parenthesis stands where it cannot")
        self.at = self.text.index(")", self.at) + 1
        self.blank_lines()
        return Command((), (), None, defines=words[0].text)

    def group(self) -> Script:
        scripts = self.arithmetic() if self.takes("((") else None
        if scripts is None:
            self.at += 1
            scripts = self.script(")")
        return scripts

    def test(self) -> Word:
        """The rest of `[[ … ]]`, in which `<` and `&&` are no operators."""
        end = re.compile(r"\s\]\](?=[\s;&|)]|\Z)").search(self.text, self.at)
        if end is None:
            raise UnclearCommandError("'[[' is not closed")
        inner = self.inside(self.text[self.at : end.start()])
        self.at = end.end()
        return Word("]]", "]]", scripts=inner)

    def redirection(self, match: re.Match[str]) -> Redirection:
        self.at = match.end()
        self.blanks()
        operator = match.group().lstrip("0123456789")
        operator = operator.partition("}")[2] or operator
        target = self.word()
        if not target.raw:
            raise UnclearCommandError(f"nothing follows {operator!r}")
        made = Redirection(operator, target)
        if operator in ("<<", "<<-"):
            self.bodies.append((made, target.text, target.raw != target.text))
        return made

    # -- words

    def word(self) -> Word:
        parts, start = WordParts(), self.at
        while self.at < len(self.text):
            character = self.text[self.at]
            if self.takes("<(") or self.takes(">("):
                parts.process()
                self.at += 2
                parts.scripts.append(self.script(")"))
            elif character in _ENDS_WORD:
                break
            else:
                self.piece(character, parts)
        if self.takes("(") and _ASSIGNMENT_OPENING.match(self.text[start : self.at]):
            raise UnclearCommandError("it uses an array")
        return parts.word(self.text[start : self.at])

    def piece(self, character: str, parts: WordParts) -> None:
        readers: dict[str, Callable[[WordParts], None]] = {
            "\\": self.escaped, "'": self.single, '"': self.double, "$": self.dollar, "`": self.backticks,
        }  # fmt: skip
        if character in readers:
            readers[character](parts)
        elif character == "~" and parts.is_empty and (match := _TILDE.match(self.text, self.at)):
            parts.quote(HOME if match.group() == "~" else HOME + match.group()[1:])
            self.at = match.end()
        else:
            end = _PLAIN.match(self.text, self.at + 1)
            stop = end.end() if end else self.at + 1
            parts.bare(self.text[self.at : stop])
            self.at = stop

    def escaped(self, parts: WordParts) -> None:
        if not self.takes("\\\n"):
            parts.quote(self.text[self.at + 1 : self.at + 2])
        self.at = min(self.at + 2, len(self.text))

    def single(self, parts: WordParts) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnclearCommandError("a quotation mark is not closed")
        parts.quote(self.text[self.at + 1 : end])
        self.at = end + 1

    def double(self, parts: WordParts) -> None:
        parts.quote("")
        self.at += 1
        while self.at < len(self.text):
            if self.skips('"'):
                return
            self.quoted_piece(parts)
        raise UnclearCommandError("a quotation mark is not closed")

    def quoted_piece(self, parts: WordParts) -> None:
        """One piece of what stands between double quotes."""
        character = self.text[self.at]
        if character == "\\":
            following = self.text[self.at + 1 : self.at + 2]
            parts.quote({"\n": ""}.get(following, following if following in '"\\$`' else "\\" + following))
            self.at += 2
        elif character == "$" and self.text[self.at + 1 : self.at + 2] not in ("'", '"'):
            self.dollar(parts)
        elif character == "`":
            self.backticks(parts)
        else:
            end = _PLAIN_QUOTED.match(self.text, self.at + 1)
            stop = end.end() if end else self.at + 1
            parts.quote(self.text[self.at : stop])
            self.at = stop

    def inside(self, text: str) -> tuple[Script, ...]:
        """The commands in a text that a shell expands like one in double quotes."""
        parts, reader = WordParts(), _Reader(text, self.depth)
        reader.deeper()
        while reader.at < len(text):
            reader.quoted_piece(parts)
        return tuple(parts.scripts)

    def backticks(self, parts: WordParts) -> None:
        match = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL).match(self.text, self.at)
        if match is None:
            raise UnclearCommandError("a backtick is not closed")
        self.at = match.end()
        parts.substitute(read_script(re.sub(r"\\([`\\$])", r"\1", match.group(1)), self.depth))

    def dollar(self, parts: WordParts) -> None:
        if self.takes("$(("):
            self.at += 1
            scripts = self.arithmetic()
            if scripts is not None:
                parts.unknown()
                parts.scripts.append(scripts)
                return
            self.at -= 1
        if self.skips("$("):
            parts.substitute(self.script(")"))
        elif self.takes("${"):
            self.braces(parts)
        elif self.takes("$'"):
            self.ansi(parts)
        elif self.takes('$"'):
            self.at += 1
        elif match := _NAME.match(self.text, self.at + 1):
            self.at = match.end()
            parts.variable(match.group())
        else:
            parts.quote("$")
            self.at += 1

    def braces(self, parts: WordParts) -> None:
        """A parameter expansion; what stands in it may run commands."""
        depth, end = 0, self.at + 1
        while end < len(self.text):
            depth += {"{": 1, "}": -1}.get(self.text[end], 0)
            end += 2 if self.text[end] == "\\" else 1
            if depth == 0:
                inner = self.text[self.at + 2 : end - 1]
                parts.scripts.extend(self.inside(inner))
                parts.variable(inner)
                self.at = end
                return
        raise UnclearCommandError("'${' is not closed")

    def ansi(self, parts: WordParts) -> None:
        match = re.compile(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL).match(self.text, self.at)
        if match is None:
            raise UnclearCommandError("a quotation mark is not closed")
        parts.quote(match.group(1))
        if "\\" in match.group(1):
            parts.unknown()
        self.at = match.end()

    def arithmetic(self) -> Script | None:
        """What an arithmetic expression at `((` runs; None when it turns out to be no arithmetic."""
        end, depth = self.at + 2, 2
        while end < len(self.text) and depth > 1:
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        if self.text[end : end + 1] != ")":
            return None
        scripts = self.inside(self.text[self.at + 2 : end - 1])
        self.at = end + 1
        return tuple(pipeline for script in scripts for pipeline in script)

    # -- the text

    def takes(self, text: str) -> bool:
        return self.text.startswith(text, self.at)

    def skips(self, text: str) -> bool:
        is_there = self.takes(text)
        self.at += len(text) if is_there else 0
        return is_there

    def until(self, text: str) -> int:
        end = self.text.find(text, self.at)
        return len(self.text) if end < 0 else end

    def blanks(self) -> bool:
        match = _BLANK.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return True

    def blank_lines(self) -> None:
        self.blanks()
        while self.takes("\n"):
            self.separator()
            self.blanks()

    def ends_command(self) -> bool:
        is_stop = self.text[self.at : self.at + 1] in ("", "\n", ";", "|", ")")
        return is_stop or (self.takes("&") and not self.takes("&>"))

    def separator(self) -> str:
        match = _SEPARATOR.match(self.text, self.at)
        if match is None:
            return ""
        self.at = match.end()
        if match.group() == "\n":
            self.here_documents()
        elif match.group() in ("&&", "||"):
            self.blank_lines()
        return match.group()

    def here_documents(self) -> None:
        for made, delimiter, is_quoted in self.bodies:
            lines: list[str] = []
            while self.at < len(self.text):
                end = self.until("\n")
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                line = line.lstrip("\t") if made.operator == "<<-" else line
                if line == delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            is_certain = is_quoted or not re.search(r"[$`\\]", body)
            made.target = Word(body, body, is_certain=is_certain, scripts=() if is_quoted else self.inside(body))
        self.bodies.clear()
