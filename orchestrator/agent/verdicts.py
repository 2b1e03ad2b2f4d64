"""From what a verifier gives to counts: structured data only, text is never read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from orchestrator.agent.plainjson import clean
from orchestrator.harness.harness import AUTOMATIC_REASON, Harness
from orchestrator.harness.verification import Verification
from orchestrator.jsondata import JSON
from orchestrator.ports import Verdict
from orchestrator_events.agent import VerificationFinished
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["NO_COUNTS", "automatic_message", "no_verdict", "reported"]

NO_COUNTS = "the verifier gave no counts: its data must be an object with passed and total"


def reported(turn: int, data: object, duration_us: int, *, is_automatic: bool) -> VerificationFinished:
    """What a verifier's data say: counts and failing cases, or that there is no verdict."""
    try:
        passed, total, failing = counted(data)
        Verification(passed, total, failing)
    except ValueError as error:
        return no_verdict(turn, str(error), duration_us, is_automatic=is_automatic)
    return VerificationFinished(
        turn=turn,
        is_automatic=is_automatic,
        passed=passed,
        total=total,
        failing=failing,
        duration_us=duration_us,
    )


def no_verdict(turn: int, error: str, duration_us: int, *, is_automatic: bool) -> VerificationFinished:
    """A verification that says nothing about the work."""
    return VerificationFinished(
        turn=turn, is_automatic=is_automatic, passed=0, total=0, error=clean(error), duration_us=duration_us
    )


def automatic_message(harness: Harness, verdict: VerificationFinished) -> dict[str, JSON]:
    """What the model reads of an automatic verification, after the tool results."""
    if verdict.error:
        name = harness.roles.verify_tool or "verify_progress"
        text = f"[AUTO] {name}() -> no verdict: {verdict.error}\n({AUTOMATIC_REASON})"
    else:
        found = Verification(verdict.passed, verdict.total, verdict.failing, is_automatic=True, turn=verdict.turn)
        text = harness.automatic_text(found)
    counts = {
        "passed": verdict.passed,
        "total": verdict.total,
        "failing": [case.id for case in verdict.failing],
        "error": verdict.error,
    }
    metadata = {"source": "harness", "reason": AUTOMATIC_REASON, "verification": counts}
    return {"role": "user", "content": text, "metadata": metadata}


def counted(data: object) -> tuple[int, int, tuple[CaseResult, ...]]:
    """Passed, total and the failing cases; ValueError where there are no counts."""
    if isinstance(data, Verification):
        return data.passed, data.total, tuple(data.failing)
    if isinstance(data, Verdict):
        failing = tuple(case for case in data.results if case.status != CaseStatus.PASSED)
        return len(data.results) - len(failing), len(data.results), failing
    if not isinstance(data, Mapping):
        raise ValueError(NO_COUNTS)  # noqa: TRY004 -- data of others, not a mistake in a call
    fields = cast(Mapping[str, object], data)
    passed, total = fields.get("passed"), fields.get("total")
    if type(passed) is not int or type(total) is not int:
        raise ValueError(NO_COUNTS)
    listed = fields.get("failing")
    return passed, total, tuple(map(case_of, listed)) if isinstance(listed, list | tuple) else ()


def case_of(data: object) -> CaseResult:
    """A failing case, from its id or its fields."""
    if isinstance(data, CaseResult):
        return data
    if not isinstance(data, Mapping):
        return CaseResult(clean(str(data)), CaseStatus.FAILED)
    fields = cast(Mapping[str, object], data)
    status = str(fields.get("status", ""))
    known = CaseStatus(status) if status in set(CaseStatus) - {CaseStatus.PASSED} else CaseStatus.FAILED
    return CaseResult(clean(str(fields.get("id", ""))), known, clean(str(fields.get("message", ""))))
