"""Secrets that are registered once and replaced by `[redacted NAME]` wherever text is stored or shown.

Two rules, for two kinds of text. Text that is whole (prompts, answers, parameters) loses every form of a value.
Text that somebody may have cut, an error or a failure message, also loses whatever is eight characters long and
stands in a form: wherever it was cut, and however often, no more than seven characters of a secret are left. The
second rule is not for specs and prompts, in which `https://` must stay though it begins a secret.

Rejected: redacting before each cut, which every adapter would have to remember, those of hosts included; and
looking for halves beside cut marks, since what was cut twice has a piece from the middle between them.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, ClassVar, Self, TypeVar

import attrs

from orchestrator.secretforms import SHORTEST, forms_of, pieces_of
from orchestrator_events.errors import OrchestratorError

if TYPE_CHECKING:
    from orchestrator_events.event import Event

__all__ = ["RedactingStream", "Secrets", "UnfitSecretError"]

FEWEST_KINDS = 4
"""A value of fewer different characters is a line of dashes or the like, not a secret."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")

AnyEvent = TypeVar("AnyEvent", bound="Event")


class UnfitSecretError(OrchestratorError, ValueError):
    """A value cannot be redacted; `secret` is its name. The value is never in the message."""

    def __init__(self, secret: str, reason: str) -> None:
        self.secret = secret
        super().__init__(f"secret {secret!r:.80} {reason}")


def own_table(values: Mapping[str, str]) -> dict[str, str]:
    """A copy that nobody else changes."""
    return dict(values)


@attrs.define(eq=False, repr=False)
class Secrets:
    """Values by name, built once. Raises UnfitSecretError for a value or a name that cannot be used.

    Register what is secret and no more: the password, not the URL it stands in.

    >>> secrets = Secrets({"key": "sk-3fa85f64"})
    >>> secrets.redact("curl -H 'Authorization: sk-3fa85f64'"), secrets
    ("curl -H 'Authorization: [redacted key]'", Secrets(key))
    """

    keeps_answers: ClassVar[bool] = False
    """Whether a model's answer is a candidate, which is never altered."""

    values: Mapping[str, str] = attrs.field(converter=own_table)
    longest: int = attrs.field(init=False, default=0)
    """Length of the longest form, characters."""
    marks: dict[str, str] = attrs.field(init=False, factory=dict)
    """What replaces each form."""
    pieces: dict[str, str] = attrs.field(init=False, factory=dict)
    """What replaces each run of eight characters of a form."""
    pattern: re.Pattern[str] | None = attrs.field(init=False, default=None)
    stamp: object = attrs.field(init=False, factory=object)
    """Marks what was looked through for these secrets; nobody else's is the same."""
    ordered: tuple[str, ...] = attrs.field(init=False, default=())
    """The forms, so that those that go on from a beginning stand right after it."""
    beginnings: frozenset[str] = attrs.field(init=False, default=frozenset())
    """The first characters of forms, one to eight of them."""

    def __attrs_post_init__(self) -> None:
        for name, value in self.values.items():
            refuse_unfit(name, value)
            for form in forms_of(value):
                self.marks.setdefault(form, f"[redacted {name}]")
                self.pieces |= {piece: self.pieces.get(piece, f"[redacted {name}]") for piece in pieces_of(form)}
        for name in self.values:
            if any(piece in self.pieces for piece in pieces_of(f"[redacted {name}]")):
                raise UnfitSecretError(name, "is named by a part of a secret: choose another name")
        forms = sorted(self.marks, key=len, reverse=True)
        self.longest = max(map(len, forms), default=0)
        self.pattern = re.compile("|".join(map(re.escape, forms))) if forms else None
        self.ordered = tuple(sorted(forms))
        self.beginnings = frozenset(form[:length] for form in forms for length in range(1, SHORTEST + 1))

    def __repr__(self) -> str:
        return f"Secrets({', '.join(self.values)})"

    def __reduce__(self) -> str:
        raise TypeError("secrets are neither copied nor pickled")

    def __deepcopy__(self, _: object) -> Self:
        return self

    __copy__ = __deepcopy__

    def redact(self, text: str) -> str:
        """The text without any form of a secret; the same object when there is none. One linear pass."""
        if self.pattern is None or self.pattern.search(text) is None:
            return text
        return self.scanned(text, len(text), 0)[0]

    def redact_pieces(self, text: str) -> str:
        """The text without any eight characters of a form: for what may have been cut, wherever it was."""
        spans = list(self.piece_spans(text))
        if not spans:
            return text
        parts, position = [], 0
        for start, end in spans:
            parts += [text[position:start], self.pieces[text[start : start + SHORTEST]]]
            position = end
        return "".join([*parts, text[position:]])

    def found(self, text: str) -> tuple[str, ...]:
        """Names of the secrets that stand in the text in any form, in order of registration."""
        if self.pattern is None or self.pattern.search(text) is None:
            return ()
        marks = {mark for form, mark in self.marks.items() if form in text}
        return tuple(name for name in self.values if f"[redacted {name}]" in marks)

    def cleansed(self, event: AnyEvent) -> AnyEvent:
        """The event as it may be recorded; itself when no text of it holds a secret. Candidates are never altered."""
        from orchestrator.cleansing import cleansed_event

        return cleansed_event(event, self)

    def piece_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Where pieces stand: touching ones are one span."""
        pieces = self.pieces
        start = end = -1
        for position in range(len(text) - SHORTEST + 1):
            if text[position : position + SHORTEST] in pieces:
                if position > end:
                    if end > 0:
                        yield start, end
                    start = position
                end = position + SHORTEST
        if end > 0:
            yield start, end

    def undecided(self, text: str) -> int:
        """Where the end of a text begins that more text may make a form of; the text's length without one."""
        for position in range(max(0, len(text) - self.longest + 1), len(text)):
            if text[position : position + SHORTEST] in self.beginnings and self.is_beginning(text[position:]):
                return position
        return len(text)

    def is_beginning(self, text: str) -> bool:
        """Whether a form goes on from this text."""
        following = bisect_right(self.ordered, text)
        return following < len(self.ordered) and self.ordered[following].startswith(text)

    def scanned(self, text: str, stop: int, covered: int, told: int = 0) -> tuple[str, int]:
        """What becomes of the text before `stop`, and how far a secret that began there reaches beyond it.

        The first `covered` characters belong to a secret that was replaced already, the first `told` were shown.
        """
        assert self.pattern is not None
        parts: list[str] = []
        position = 0
        while (match := self.pattern.search(text, position)) and match.start() < stop:
            if match.start() >= covered:  # else it overlaps the one before, whose mark stands for both
                parts += [text[max(covered, told) : match.start()], self.marks[match[0]]]
            covered = max(covered, match.end())
            position = match.start() + 1
        parts.append(text[max(covered, told) : stop])
        return "".join(parts), max(0, covered - stop)


@attrs.define(eq=False, repr=False)
class RedactingStream:
    """Redacts a text that comes in chunks: what comes out is what `redact` makes of the whole.

    It holds back what may become a secret, which is seldom more than a character or two, until that is decided or
    the text is over; less than a secret's longest form in any case.
    """

    secrets: Secrets
    held: str = attrs.field(init=False, default="")
    """The beginning of a form, as far as anybody knows."""
    covered: int = attrs.field(init=False, default=0)
    """How much of that belongs to a secret that was replaced."""
    told: int = attrs.field(init=False, default=0)
    """How much of it was shown in a pause."""

    def feed(self, chunk: str) -> str:
        """What can be shown once this chunk is there."""
        text = self.held + chunk
        return self.shown(text, self.secrets.undecided(text))

    def pause(self) -> str:
        """What is held back, where it is too short to tell a secret by: something else is shown before the next chunk.

        Should a secret go on from it after all, the rest of that is redacted, and no more than seven characters of
        the secret stand before its mark.
        """
        if len(self.held) >= SHORTEST:
            return ""
        rest = self.held[max(self.covered, self.told) :]
        self.told = len(self.held)
        return rest

    def end(self) -> str:
        """The rest of a text that is whole; the stream can then be used anew."""
        return self.shown(self.held, len(self.held))

    def cut(self) -> str:
        """The rest of a text that was cut off: no eight characters of a secret; the stream can then be used anew."""
        held, rest = self.held, self.end()
        return rest if len(held) < SHORTEST else self.secrets.pieces[held[:SHORTEST]]

    def shown(self, text: str, stop: int) -> str:
        """What is decided of the text: everything that begins before `stop`."""
        self.held = text[stop:]
        if self.secrets.pattern is None or stop == 0:
            return text[:stop]
        done, self.covered = self.secrets.scanned(text, stop, self.covered, self.told)
        self.told = max(0, self.told - stop)
        return done


def refuse_unfit(name: str, value: object) -> None:
    """Raise UnfitSecretError for what would redact innocent text, or could not be found again."""
    if not NAME.fullmatch(name):
        raise UnfitSecretError("", "needs a name of at most 64 letters, digits, dots, dashes and underscores")
    if not isinstance(value, str):
        raise UnfitSecretError(name, f"is {type(value).__name__}, not str")
    if len(value) < SHORTEST:
        raise UnfitSecretError(name, f"has fewer than {SHORTEST} characters: redacting it would hit innocent text")
    if len(set(value)) < FEWEST_KINDS:
        raise UnfitSecretError(name, f"has fewer than {FEWEST_KINDS} different characters, as innocent text has")
    if value != value.strip():
        raise UnfitSecretError(name, "has white space around it: strip it, or the stripped value would be shown")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise UnfitSecretError(name, "holds a lone surrogate, which no text that is stored can hold")
