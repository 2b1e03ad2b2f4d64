"""From a report to a judgement: exactly the expected cases, each once, all passed."""

from __future__ import annotations

import pytest

from orchestrator import CaseResult, CaseStatus, EvalCase, MergedSpec, Verdict
from orchestrator.judgement import judge

PINNED = MergedSpec(intent="x", evals=(EvalCase(name="a"), EvalCase(name="b", severity="critical")))
OPEN = MergedSpec(intent="x")
ALL = ["passed", "failed", "error", "skipped", "timed out", "missing", "unexpected", "duplicate"]


def report(*results: tuple[str, str]) -> Verdict:
    """A verdict from pairs of id and status."""
    return Verdict(tuple(CaseResult(case, CaseStatus(status)) for case, status in results))


def judged(verdict: Verdict, spec: MergedSpec) -> tuple[bool, list[str], list[tuple[str, str]]]:
    """Whether it conforms, what passed, what did not and why."""
    found = judge(verdict, spec)
    return found.is_conforming, list(found.passed), [(case.id, str(case.status)) for case in found.failing]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([("a", "passed"), ("b", "passed")], (True, ["a", "b"], [])),
        ([("b", "passed"), ("a", "passed")], (True, ["b", "a"], [])),
        ([("a", "passed")], (False, ["a"], [("b", "missing")])),
        ([("c", "passed")], (False, [], [("c", "unexpected"), ("a", "missing"), ("b", "missing")])),
        ([("a", "passed"), ("b", "passed"), ("c", "passed")], (False, ["a", "b"], [("c", "unexpected")])),
        ([("a", "passed"), ("b", "passed"), ("c", "failed")], (False, ["a", "b"], [("c", "failed")])),
        ([("a", "passed"), ("b", "passed"), ("c", "skipped")], (True, ["a", "b"], [])),
        ([("a", "passed"), ("b", "skipped")], (False, ["a"], [("b", "skipped")])),
        ([("a", "passed"), ("a", "passed"), ("b", "passed")], (False, ["b"], [("a", "duplicate")])),
        ([("a", "failed"), ("a", "passed"), ("a", "passed"), ("b", "passed")], (False, ["b"], [("a", "duplicate")])),
    ],
)
def test_pinned_cases(results: list[tuple[str, str]], expected: tuple[bool, list[str], list[tuple[str, str]]]) -> None:
    """Where the spec names the cases, the set of passed ones has to be that set."""
    assert judged(report(*results), PINNED) == expected


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([("a", "passed")], (True, ["a"], [])),
        ([("a", "passed"), ("b", "failed")], (False, ["a"], [("b", "failed")])),
        ([("a", "passed"), ("b", "skipped")], (False, ["a"], [("b", "skipped")])),
        ([("a", "skipped")], (False, [], [("a", "skipped")])),
        ([("a", "passed"), ("a", "passed")], (False, [], [("a", "duplicate")])),
    ],
)
def test_unnamed_cases(results: list[tuple[str, str]], expected: tuple[bool, list[str], list[tuple[str, str]]]) -> None:
    """Where the spec names none, every reported case has to pass."""
    assert judged(report(*results), OPEN) == expected


@pytest.mark.parametrize("status", ALL)
def test_only_passed_is_passed(status: str) -> None:
    """Of all statuses one counts as passed."""
    assert judge(report(("a", "passed"), ("b", status)), PINNED).is_conforming is (status == "passed")


@pytest.mark.parametrize(
    "verdict", [report(("a", "passed"), ("b", "failed")), report(("a", "passed")), report(*[("b", "passed")] * 2)]
)
def test_severity_is_the_specs(verdict: Verdict) -> None:
    """A failing case carries the severity that the spec gives it, whatever the runner says."""
    (failing,) = (case for case in judge(verdict, PINNED).failing if case.id == "b")
    assert failing.severity == "critical"


def test_runner_cannot_set_a_severity() -> None:
    """A severity that only the report names is dropped."""
    verdict = Verdict((CaseResult("a", CaseStatus.FAILED, "no", severity="critical"),))
    assert [(case.id, case.severity) for case in judge(verdict, PINNED).failing] == [("a", ""), ("b", "critical")]


@pytest.mark.parametrize("spec", [PINNED, OPEN], ids=["pinned", "open"])
def test_whether_the_cases_were_pinned_is_recorded(spec: MergedSpec) -> None:
    """A judgement says whether the expected cases were known beforehand."""
    assert judge(report(("a", "passed")), spec).is_pinned is (spec is PINNED)


def test_empty_report_passes_nothing() -> None:
    """No case is no pass, with or without expected cases."""
    empty = Verdict(())
    assert [judge(empty, spec).is_conforming for spec in (PINNED, OPEN)] == [False, False]


def test_verdict_from_a_mapping() -> None:
    """`Verdict.of` takes True for passed, and False or a message for failed, case by case."""
    cases: dict[str, bool | str] = {"a": True, "b": False, "c": "why"}
    assert Verdict.of(cases).results == (
        CaseResult("a", CaseStatus.PASSED),
        CaseResult("b", CaseStatus.FAILED),
        CaseResult("c", CaseStatus.FAILED, "why"),
    )
    assert Verdict.of([CaseResult("a", CaseStatus.ERROR)]).results == (CaseResult("a", CaseStatus.ERROR),)
