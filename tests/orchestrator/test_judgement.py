"""From a report to a judgement: exactly the expected cases, each once, all passed."""

from __future__ import annotations

import pytest

from orchestrator import CaseResult, CaseStatus, EvalCase, MergedSpec, Verdict
from orchestrator.judgement import Expectation, judge
from orchestrator_events.run import CasesPinned

PINNED = Expectation.of(MergedSpec(intent="x", evals=(EvalCase(name="a"), EvalCase(name="b", severity="critical"))))
OPEN = Expectation.of(MergedSpec(intent="x"))
ALL = ["passed", "failed", "error", "skipped", "timed out", "missing", "unexpected", "duplicate"]


def report(*results: tuple[str, str]) -> Verdict:
    """A verdict from pairs of id and status."""
    return Verdict(tuple(CaseResult(case, CaseStatus(status)) for case, status in results))


def judged(verdict: Verdict, expectation: Expectation) -> tuple[bool, list[str], list[tuple[str, str]]]:
    """Whether it conforms, what passed, what did not and why."""
    found = judge(verdict, expectation)
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


@pytest.mark.parametrize("expectation", [PINNED, OPEN], ids=["pinned", "open"])
def test_whether_the_cases_were_pinned_is_recorded(expectation: Expectation) -> None:
    """A judgement says whether the expected cases were known beforehand."""
    assert judge(report(("a", "passed")), expectation).is_pinned is (expectation is PINNED)


def test_empty_report_passes_nothing() -> None:
    """No case is no pass, with or without expected cases."""
    empty = Verdict(())
    assert [judge(empty, spec).is_conforming for spec in (PINNED, OPEN)] == [False, False]


CONTROLLED = Expectation.of(MergedSpec(intent="x"), CasesPinned(cases=("a", "b"), controls=("no",)))
WHOLE = [("a", "passed"), ("b", "passed")]
TAMPERED = "the judge itself was tampered with: a case that must fail "
DOUBTFUL = "the judge was tampered with, or the suite was changed: a case that must fail "


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ([*WHOLE, ("no", "failed")], (True, ["a", "b"], [])),
        ([*WHOLE, ("no", "passed")], (False, ["a", "b"], [("(judge)", "error")])),
        ([*WHOLE, ("no", "skipped")], (False, ["a", "b"], [("(judge)", "error")])),
        ([*WHOLE, ("no", "error")], (False, ["a", "b"], [("(judge)", "error")])),
        ([*WHOLE, ("no", "timed out")], (False, ["a", "b"], [("(judge)", "error")])),
        ([*WHOLE, ("no", "failed"), ("no", "failed")], (False, ["a", "b"], [("(judge)", "error")])),
        (WHOLE, (False, ["a", "b"], [("(judge)", "error")])),
        ([("a", "passed"), ("no", "failed")], (False, ["a"], [("b", "missing")])),
        ([("a", "failed"), ("no", "passed")], (False, [], [("(judge)", "error"), ("a", "failed"), ("b", "missing")])),
        ([("a", "error")], (False, [], [("a", "error"), ("b", "missing")])),
        ([("no", "failed")], (False, [], [("a", "missing"), ("b", "missing")])),
    ],
)
def test_controls(results: list[tuple[str, str]], expected: tuple[bool, list[str], list[tuple[str, str]]]) -> None:
    """A control must have failed; it counts among no cases, and says nothing where no case ran."""
    assert judged(report(*results), CONTROLLED) == expected


@pytest.mark.parametrize(
    ("status", "reason"), [("passed", "passed"), ("error", "ended in another way"), (None, "is not in the report")]
)
def test_tampered_judge_is_critical_and_does_not_name_the_control(status: str | None, reason: str) -> None:
    """The case that stands for the judge goes into the next prompt: it must not say which case to make fail."""
    results = WHOLE if status is None else [*WHOLE, ("no", status)]
    unchanged = CasesPinned(cases=("a", "b"), controls=("no",), suite_digest="sha256:ab")
    held = Expectation.of(MergedSpec(intent="x"), unchanged)
    assert [judge(report(*results), each).failing for each in (CONTROLLED, held)] == [
        (CaseResult("(judge)", CaseStatus.ERROR, DOUBTFUL + reason, "critical"),),
        (CaseResult("(judge)", CaseStatus.ERROR, TAMPERED + reason, "critical"),),
    ]


def test_pinned_cases_stand_for_those_of_the_spec() -> None:
    """What a trusted run pinned is expected where the spec names nothing; where it does, the controls come to it."""
    spec = MergedSpec(intent="x", evals=(EvalCase(name="a"),))
    both = Expectation.of(spec, CasesPinned(cases=(), controls=("no",)))
    wanted = [frozenset({"a", "b"}), frozenset({"a"}), frozenset({"no"})]
    assert [CONTROLLED.expected, both.expected, both.controls] == wanted


def test_verdict_from_a_mapping() -> None:
    """`Verdict.of` takes True for passed, and False or a message for failed, case by case."""
    cases: dict[str, bool | str] = {"a": True, "b": False, "c": "why"}
    assert Verdict.of(cases).results == (
        CaseResult("a", CaseStatus.PASSED),
        CaseResult("b", CaseStatus.FAILED),
        CaseResult("c", CaseStatus.FAILED, "why"),
    )
    assert Verdict.of([CaseResult("a", CaseStatus.ERROR)]).results == (CaseResult("a", CaseStatus.ERROR),)
