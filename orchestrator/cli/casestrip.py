"""One mark per eval case, in the same order for every attempt of a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from rich.text import Text

from orchestrator.attempt import Attempt
from orchestrator.cli.appearance import Marks
from orchestrator_events.verdict import CaseStatus

__all__ = ["MOST_MARKS", "case_order", "case_strip", "group_size"]

MOST_MARKS: Final = 60
"""More cases than this share marks: a mark then shows the worst of its group."""

_GRAVITY: Final = {
    CaseStatus.PASSED: 0, CaseStatus.SKIPPED: 1, CaseStatus.MISSING: 2, CaseStatus.DUPLICATE: 3,
    CaseStatus.UNEXPECTED: 4, CaseStatus.FAILED: 5, CaseStatus.ERROR: 6, CaseStatus.TIMED_OUT: 7,
}  # fmt: skip
_STYLES: Final = {CaseStatus.PASSED: "green", CaseStatus.FAILED: "red", CaseStatus.ERROR: "magenta"}


def case_order(names: Iterable[str], attempts: Iterable[Attempt]) -> tuple[str, ...]:
    """The cases of a run: those the spec names in its order, then those that were only reported."""
    reported = (case for attempt in attempts for case in (*attempt.passed, *(each.id for each in attempt.failing)))
    return tuple(dict.fromkeys((*names, *reported)))


def group_size(count: int) -> int:
    """How many cases share a mark."""
    return max(1, -(-count // MOST_MARKS))


def case_strip(order: Sequence[str], attempt: Attempt, marks: Marks) -> Text:
    """The marks of one attempt."""
    statuses = dict.fromkeys(attempt.passed, CaseStatus.PASSED)
    statuses |= {case.id: case.status for case in attempt.failing}
    size = group_size(len(order))
    strip = Text()
    for start in range(0, len(order), size):
        group = [statuses.get(case, CaseStatus.MISSING) for case in order[start : start + size]]
        worst = max(group, key=lambda status: _GRAVITY[status])
        strip.append(mark(worst, marks), _STYLES.get(worst, "yellow"))
    return strip


def mark(status: CaseStatus, marks: Marks) -> str:
    """The character of a status."""
    match status:
        case CaseStatus.PASSED:
            return marks.passed
        case CaseStatus.FAILED:
            return marks.failed
        case CaseStatus.ERROR:
            return marks.error
        case CaseStatus.TIMED_OUT:
            return marks.timed_out
        case _:
            return marks.absent
