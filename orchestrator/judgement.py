"""From a report to a judgement: conforming means that exactly the expected cases passed."""

from __future__ import annotations

from collections import Counter

import attrs

from orchestrator.ports import Verdict
from orchestrator.spec import MergedSpec
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["Judgement", "judge"]

PASSED = CaseStatus.PASSED


@attrs.define
class Judgement:
    """Which cases passed, which did not, and whether the expected ids were known beforehand."""

    passed: tuple[str, ...]
    failing: tuple[CaseResult, ...]
    is_pinned: bool

    @property
    def is_conforming(self) -> bool:
        """Whether nothing failed and something passed."""
        return bool(self.passed) and not self.failing


def judge(verdict: Verdict, spec: MergedSpec) -> Judgement:
    """Hold a report against the expected case ids (contract 1).

    Missing, unexpected, duplicate, skipped and unknown cases are not passed; a skipped case that nobody
    expects is left out. Where the spec names no case, every reported one must pass. An exit status is never
    looked at.
    """
    results = verdict.results
    expected = spec.expected_cases
    if expected is None and len({result.id for result in results}) == len(results):
        return unpinned(results)
    counts = Counter(result.id for result in results)
    passed: list[str] = []
    failing: dict[str, CaseResult] = {}
    for result in results:
        fault = fault_of(result, counts[result.id], expected, spec)
        if fault is not None:
            failing.setdefault(result.id, fault)
        elif result.status == CaseStatus.PASSED:
            passed.append(result.id)
    for case in sorted((expected or frozenset()) - counts.keys()):
        failing[case] = CaseResult(case, CaseStatus.MISSING, "not in the report", spec.severity_of(case))
    return Judgement(tuple(passed), tuple(failing.values()), expected is not None)


def unpinned(results: tuple[CaseResult, ...]) -> Judgement:
    """The judgement where the spec names no case and the report none twice."""
    passed = tuple([result.id for result in results if result.status is PASSED])
    failing = tuple([result for result in results if result.status is not PASSED]) if passed else results
    return Judgement(passed, failing, is_pinned=False)


def fault_of(result: CaseResult, count: int, expected: frozenset[str] | None, spec: MergedSpec) -> CaseResult | None:
    """The result as it counts against the candidate; None when it does not."""
    if count > 1:
        text = f"reported {count} times"
        return CaseResult(result.id, CaseStatus.DUPLICATE, text, spec.severity_of(result.id))
    if expected is None or result.id in expected:
        return None if result.status == CaseStatus.PASSED else with_severity(result, spec)
    match result.status:
        case CaseStatus.PASSED:
            return CaseResult(result.id, CaseStatus.UNEXPECTED, "not among the expected cases")
        case CaseStatus.SKIPPED:
            return None
        case _:
            return result


def with_severity(result: CaseResult, spec: MergedSpec) -> CaseResult:
    """The result with the severity that the spec gives its case."""
    severity = spec.severity_of(result.id)
    return result if result.severity == severity else attrs.evolve(result, severity=severity)
