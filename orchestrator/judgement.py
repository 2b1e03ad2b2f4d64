"""From a report to a judgement: conforming means that exactly the expected cases passed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final

import attrs

from orchestrator.ports import Verdict
from orchestrator.spec import MergedSpec
from orchestrator_events.run import CasesPinned
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["JUDGE", "Expectation", "Judgement", "judge"]

PASSED = CaseStatus.PASSED

JUDGE: Final = "(judge)"
"""Id of the case that stands for the judge itself."""

TAMPERED: Final = "the judge itself was tampered with: a case that must fail"
DOUBTFUL: Final = "the judge was tampered with, or the suite was changed: a case that must fail"
"""The same where nothing says that the suite is the one that the controls were named for."""


@attrs.frozen(kw_only=True)
class Expectation:
    """Which cases must pass and which must fail; made once for a run."""

    expected: frozenset[str] | None
    """Ids that must be exactly those that pass; None where nobody knows them."""
    controls: frozenset[str]
    """Ids of cases that must fail: negative controls of the judge, no part of the verdict on the candidate."""
    severity_of: Callable[[str], str]
    """The spec's severity of a case."""
    is_suite_pinned: bool = False
    """Whether the suite was found to be the one that the cases were pinned with."""

    @classmethod
    def of(cls, spec: MergedSpec, pinned: CasesPinned | None = None) -> Expectation:
        """What the spec names, and what was pinned beside it."""
        cases, controls = ((), ()) if pinned is None else (pinned.cases, pinned.controls)
        expected = frozenset(cases) or spec.expected_cases
        return cls(
            expected=expected,
            controls=frozenset(controls),
            severity_of=spec.severity_of,
            is_suite_pinned=pinned is not None and bool(pinned.suite_digest),
        )


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


def judge(verdict: Verdict, expectation: Expectation) -> Judgement:
    """Hold a report against the expected case ids (contract 1).

    Missing, unexpected, duplicate, skipped and unknown cases are not passed; a skipped case that nobody
    expects is left out. Where nobody knows the cases, every reported one must pass. A control must have
    failed: it is never among the cases, and anything else about it fails the attempt critically. An exit status
    is never looked at.
    """
    results = verdict.results
    if not expectation.controls:
        return judged(results, expectation)
    controls = [result for result in results if result.id in expectation.controls]
    judgement = judged(tuple([result for result in results if result.id not in expectation.controls]), expectation)
    reason = tampering(controls, expectation.controls, has_run=bool(judgement.passed))
    if not reason:
        return judgement
    reason = f"{TAMPERED if expectation.is_suite_pinned else DOUBTFUL} {reason}"
    told = CaseResult(JUDGE, CaseStatus.ERROR, reason, "critical")
    return attrs.evolve(judgement, failing=(told, *judgement.failing))


def judged(results: tuple[CaseResult, ...], expectation: Expectation) -> Judgement:
    """The judgement on the cases that are no controls."""
    expected = expectation.expected
    if expected is None and len({result.id for result in results}) == len(results):
        return unpinned(results)
    counts = Counter(result.id for result in results)
    passed: list[str] = []
    failing: dict[str, CaseResult] = {}
    for result in results:
        fault = fault_of(result, counts[result.id], expectation)
        if fault is not None:
            failing.setdefault(result.id, fault)
        elif result.status == CaseStatus.PASSED:
            passed.append(result.id)
    for case in sorted((expected or frozenset()) - counts.keys()):
        failing[case] = CaseResult(case, CaseStatus.MISSING, "not in the report", expectation.severity_of(case))
    return Judgement(tuple(passed), tuple(failing.values()), expected is not None)


def unpinned(results: tuple[CaseResult, ...]) -> Judgement:
    """The judgement where nobody knows the cases and the report names none twice."""
    passed = tuple([result.id for result in results if result.status is PASSED])
    failing = tuple([result for result in results if result.status is not PASSED]) if passed else results
    return Judgement(passed, failing, is_pinned=False)


def tampering(controls: list[CaseResult], expected: frozenset[str], *, has_run: bool) -> str:
    """What became of a control, so that the judge cannot be believed; empty when it can.

    The control is not named, since this goes into the next prompt. Where no case passed at all, a control that
    did not run says no more than the other cases do.
    """
    if any(control.status is PASSED for control in controls):
        return "passed"
    counts = Counter(control.id for control in controls)
    if any(count > 1 for count in counts.values()):
        return "was reported twice"
    if not has_run:
        return ""
    if any(control.status is not CaseStatus.FAILED for control in controls):
        return "ended in another way"
    return "is not in the report" if counts.keys() != expected else ""


def fault_of(result: CaseResult, count: int, expectation: Expectation) -> CaseResult | None:
    """The result as it counts against the candidate; None when it does not."""
    expected = expectation.expected
    if count > 1:
        text = f"reported {count} times"
        return CaseResult(result.id, CaseStatus.DUPLICATE, text, expectation.severity_of(result.id))
    if expected is None or result.id in expected:
        return None if result.status == CaseStatus.PASSED else with_severity(result, expectation)
    match result.status:
        case CaseStatus.PASSED:
            return CaseResult(result.id, CaseStatus.UNEXPECTED, "not among the expected cases")
        case CaseStatus.SKIPPED:
            return None
        case _:
            return result


def with_severity(result: CaseResult, expectation: Expectation) -> CaseResult:
    """The result with the severity that the spec gives its case."""
    severity = expectation.severity_of(result.id)
    return result if result.severity == severity else attrs.evolve(result, severity=severity)
