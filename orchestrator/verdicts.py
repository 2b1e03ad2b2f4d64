"""What counts as a verdict: case results of the right types, their text bounded, storable and on one line."""

from __future__ import annotations

import attrs

from orchestrator.adapter_errors import EvaluationError
from orchestrator.excerpt import EXCERPT_CHARACTERS, excerpt
from orchestrator.ports import Verdict
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["checked_verdict"]

INTEGRITIES = ("separate", "cooperative", "host")
"""Who held the judge: a process of its own, one that the candidate shares, or the host, which does not say."""
LONGEST_ID = 1_000
"""Longest case id that is kept whole, characters."""


def checked_verdict(verdict: object, expected: frozenset[str] | None) -> Verdict:
    """The verdict, its untrusted text made harmless; EvaluationError when it is none.

    A message is cut to 4,000 characters and loses lone surrogates, which no record can hold; an id that
    nobody expects becomes one line of at most 1,000 characters, since ids stand unfenced in prompts.
    """
    if not isinstance(verdict, Verdict):
        raise EvaluationError(f"it reported {type(verdict).__name__} instead of a Verdict")
    if not verdict.results:
        raise EvaluationError("it reported no case")
    if type(verdict.isolation) is not str:
        raise EvaluationError(f"its isolation is {type(verdict.isolation).__name__}, not str")
    if type(verdict.integrity) is not str or verdict.integrity not in INTEGRITIES:
        raise EvaluationError(f"its integrity is none of {', '.join(INTEGRITIES)}")
    if is_plain(verdict.results):
        return verdict
    known = expected or frozenset[str]()
    return attrs.evolve(verdict, results=tuple(harmless(result, known) for result in verdict.results))


def is_plain(results: tuple[CaseResult, ...]) -> bool:
    """Whether there is nothing to change in any result: the common case, told cheaply."""
    characters = 0
    for result in results:
        if type(result) is not CaseResult or type(result.status) is not CaseStatus:
            return False
        case, message = result.id, result.message
        if type(case) is not str or type(message) is not str or not (message.isascii() and case.isprintable() and case):
            return False
        characters += len(case) + len(message)
    return characters <= LONGEST_ID


def harmless(result: object, expected: frozenset[str]) -> CaseResult:
    """One result, as it is when there is nothing to change."""
    if type(result) is not CaseResult:
        raise EvaluationError(f"it reported {type(result).__name__} instead of a CaseResult")
    case, message = result.id, result.message
    if type(case) is not str or type(message) is not str or type(result.status) is not CaseStatus:
        raise EvaluationError(f"case {case!r:.80} needs a text id, a CaseStatus and a text message")
    is_plain_id = case in expected or (case.isprintable() and 0 < len(case) <= LONGEST_ID)
    is_plain_message = len(message) <= EXCERPT_CHARACTERS and (message.isascii() or is_storable(message))
    if is_plain_id and is_plain_message:
        return result
    shown = case if is_plain_id else " ".join(excerpt(case, LONGEST_ID).split()) or "(unnamed)"
    return attrs.evolve(result, id=shown, message=message if is_plain_message else excerpt(message))


def is_storable(text: str) -> bool:
    """Whether a text has no lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
