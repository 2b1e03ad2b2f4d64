"""Verifications and the progress they make."""

from __future__ import annotations

import pytest

from orchestrator.harness.actions import ActionRecord, ToolRoles
from orchestrator.harness.verification import Progress, Verification
from orchestrator_events.verdict import CaseResult, CaseStatus

FAILING = (CaseResult("a", CaseStatus.FAILED),)


def written(*, is_success: bool = True) -> ActionRecord:
    """A write that was executed."""
    return ActionRecord(ToolRoles().action("", "write_file", {"path": "a"}, 1), is_success=is_success)


@pytest.mark.parametrize(
    ("verification", "is_green"),
    [
        (Verification(3, 3), True),
        (Verification(2, 3), False),
        (Verification(0, 0), False),
        (Verification(3, 3, FAILING), False),
    ],
)
def test_green_means_that_there_are_cases_and_all_passed(verification: Verification, is_green: bool) -> None:
    """An empty suite is never green."""
    assert verification.is_green is is_green


@pytest.mark.parametrize("counts", [(-1, 3), (4, 3), (0, -1)])
def test_impossible_counts_are_refused(counts: tuple[int, int]) -> None:
    """A verifier that miscounts is found out at once."""
    with pytest.raises(ValueError, match="cannot have passed"):
        Verification(*counts)


def test_the_best_verification_is_the_first_that_no_other_betters() -> None:
    """An equal share is no improvement, whatever the totals."""
    verifications = [
        Verification(0, 12, turn=1),
        Verification(6, 12, turn=2),
        Verification(1, 2, turn=3),
        Verification(0, 0, turn=4),
        Verification(5, 12, turn=6),
    ]
    progress = Progress()
    seen = []
    for verification in verifications:
        progress = progress.after_verification(verification)
        seen.append((progress.best, progress.turns_since_improvement))
    assert [(best.turn if best else None, idle) for best, idle in seen] == [(1, 0), (2, 0), (2, 1), (2, 2), (2, 4)]
    assert progress.last == verifications[-1]


def test_a_green_verification_is_stale_after_a_write() -> None:
    """A failed write changes nothing; a new verification counts anew."""
    green = Progress().after_action(written()).after_verification(Verification(1, 1))
    failed = green.after_action(written(is_success=False))
    stale = green.after_action(written())
    renewed = stale.after_verification(Verification(1, 1))
    assert [each.is_green for each in (Progress(), green, failed, stale, renewed)] == [False, True, True, False, True]
