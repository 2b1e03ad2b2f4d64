"""From a report to a judgement: conforming means that exactly the expected cases passed."""

from __future__ import annotations

from collections import Counter

import attrs
from orchestrator_events.verdict import CaseResult, CaseStatus

from orchestrator.ports import Verdict
from orchestrator.spec import MergedSpec

__all__ = ["Judgement", "judge"]


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

    Missing, unexpected, duplicate, skipped and unknown cases are not passed; a skipped case that nobody expects
    is left out. Where the spec names no case, every reported one must pass. An exit status is never looked at.
    """
    expected = spec.expected_cases
    results = verdict.results
    if expected is None and len({result.id for result in results}) == len(results):
        return unpinned(results)
    counts = Counter(result.id for result in results)
    passed: list[str] = []
    failing: list[CaseResult] = []
    for result in results:
        if counts[result.id] > 1:
            if result.id not in {case.id for case in failing}:
                text = f"reported {counts[result.id]} times"
                failing.append(CaseResult(result.id, CaseStatus.DUPLICATE, text, spec.severity_of(result.id)))
        elif expected is not None and result.id not in expected:
            if result.status == CaseStatus.PASSED:
                failing.append(CaseResult(result.id, CaseStatus.UNEXPECTED, "not among the expected cases"))
            elif result.status != CaseStatus.SKIPPED:
                failing.append(result)
        elif result.status is CaseStatus.PASSED:
            passed.append(result.id)
        else:
            failing.append(with_severity(result, spec))
    for case in sorted((expected or frozenset()) - counts.keys()):
        failing.append(CaseResult(case, CaseStatus.MISSING, "not in the report", spec.severity_of(case)))
    return Judgement(tuple(passed), tuple(failing), expected is not None)


def unpinned(results: tuple[CaseResult, ...]) -> Judgement:
    """The judgement where the spec names no case and the report none twice."""
    passed = tuple([result.id for result in results if result.status == CaseStatus.PASSED])
    return Judgement(passed, tuple([result for result in results if result.status != CaseStatus.PASSED]), False)


def with_severity(result: CaseResult, spec: MergedSpec) -> CaseResult:
    """The result with the severity that the spec gives its case."""
    severity = spec.severity_of(result.id)
    return result if result.severity == severity else attrs.evolve(result, severity=severity)
