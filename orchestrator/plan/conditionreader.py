"""Reads conditions from text: a small language, parsed by its grammar and never evaluated as code.

    risk_level in ['high', 'critical'] and not ambiguous
    task_type == ux or (role != 'Implementer' and failure_count >= 2)

A comparison has a field of the situation on its left and literals on its right. Risk levels have an order, so
`risk_level >= medium` works. `ambiguous` and `doc_trigger` stand alone as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

from orchestrator.plan.conditions import (
    COMPARISONS,
    FIELDS,
    Condition,
    ConditionError,
    Every,
    Literal,
    Not,
    Some,
    Test,
    checked,
    field_named,
)

__all__ = ["parse_condition"]

LONGEST: Final = 2_000
DEEPEST: Final = 30
TOKEN = re.compile(
    r"\s*(?:(?P<text>'[^']*'|\"[^\"]*\")|(?P<number>-?\d{1,9})|(?P<word>[A-Za-z_][\w-]*)"
    r"|(?P<sign>==|!=|<=|>=|&&|\|\||[<>()\[\],!])|(?P<end>\Z))"
)
SPELLINGS: Final = MappingProxyType({"&&": "and", "||": "or", "!": "not"})
RESERVED: Final = ("and", "or", "not", "in", "true", "false")


def parse_condition(text: str) -> Condition:
    """The condition that a text says; raises ConditionError, which says what is wrong and where."""
    if len(text) > LONGEST:
        raise ConditionError(f"longer than {LONGEST} characters: split it into several rules")
    reader = _Reader(list(tokens(text)))
    found = reader.some(0)
    if reader.word != "":
        raise reader.error("'and', 'or' or the end")
    return found


def tokens(text: str) -> Iterator[tuple[str, str, int]]:
    """Kind, text and column of each token; the last one is the end, an empty text."""
    place = 0
    while True:
        found = TOKEN.match(text, place)
        if found is None:
            rest = text[place:].lstrip()
            column = len(text) - len(rest) + 1
            raise ConditionError(f"column {column}: {rest[:1]!r} cannot stand here; texts are quoted, = is written ==")
        kind = str(found.lastgroup)
        yield kind, SPELLINGS.get(found[kind], found[kind]), found.start(kind) + 1
        if kind == "end":
            return
        place = found.end()


class _Reader:
    """Reads tokens by the grammar: some, every, one, test."""

    def __init__(self, found: list[tuple[str, str, int]]) -> None:
        self._tokens = found
        self._place = 0

    @property
    def word(self) -> str:
        """The next token's text."""
        return self._tokens[self._place][1]

    @property
    def kind(self) -> str:
        """The next token's kind."""
        return self._tokens[self._place][0]

    def error(self, expected: str) -> ConditionError:
        """What to say of the next token."""
        found = repr(self.word[:40]) if self.word else "the end"
        return ConditionError(f"column {self._tokens[self._place][2]}: expected {expected}, found {found}")

    def taken(self, *words: str) -> bool:
        """Whether the next token is one of these words, which is then passed."""
        is_there = self.kind != "text" and self.word in words
        self._place += is_there
        return is_there

    def some(self, depth: int) -> Condition:
        """Conditions joined by 'or'."""
        if depth > DEEPEST:
            raise ConditionError(f"nested deeper than {DEEPEST} levels: split it into several rules")
        parts = [self.every(depth)]
        while self.taken("or"):
            parts.append(self.every(depth))
        return parts[0] if len(parts) == 1 else Some(tuple(parts))

    def every(self, depth: int) -> Condition:
        """Conditions joined by 'and'."""
        parts = [self.one(depth)]
        while self.taken("and"):
            parts.append(self.one(depth))
        return parts[0] if len(parts) == 1 else Every(tuple(parts))

    def one(self, depth: int) -> Condition:
        """A negation, something in parentheses, or a test."""
        if self.taken("not"):
            if depth > DEEPEST:
                raise ConditionError(f"nested deeper than {DEEPEST} levels: split it into several rules")
            return Not(self.one(depth + 1))
        if self.taken("("):
            inner = self.some(depth + 1)
            if not self.taken(")"):
                raise self.error("')'")
            return inner
        return self.test()

    def test(self) -> Test:
        """A field, an operator and literals."""
        if self.kind != "word" or self.word in RESERVED:
            raise self.error("a field such as risk_level")
        field = field_named(self.word)
        self._place += 1
        operator = self.operator()
        if not operator:
            if FIELDS[field] is not bool and field != "doc_trigger":
                raise self.error(f"a comparison of {field}, such as ==")
            return Test(field, "==", (True,))
        return checked(field, operator, self.literals() if "in" in operator.split() else [self.literal()])

    def operator(self) -> str:
        """The operator that comes next; empty for none."""
        for operator in COMPARISONS:
            if self.taken(operator):
                return operator
        if self.taken("in"):
            return "in"
        is_negated = self.word == "not" and self._tokens[self._place + 1][1] == "in"
        self._place += 2 * is_negated
        return "not in" if is_negated else ""

    def literals(self) -> list[Literal]:
        """A list of literals in brackets or parentheses."""
        closing = ")" if self.word == "(" else "]"
        if not self.taken("[", "("):
            raise self.error("a list such as ['high', 'critical']")
        found = [self.literal()]
        while self.taken(","):
            found.append(self.literal())
        if not self.taken(closing):
            raise self.error(f"',' or {closing!r}")
        return found

    def literal(self) -> Literal:
        """A quoted text, a number, true or false, or a bare word."""
        kind, word = self.kind, self.word
        if kind not in ("text", "number", "word") or (kind == "word" and word in RESERVED[:4]):
            raise self.error("a value")
        self._place += 1
        if kind == "text":
            return word[1:-1]
        if kind == "number":
            return int(word)
        return word == "true" if word in ("true", "false") else word
