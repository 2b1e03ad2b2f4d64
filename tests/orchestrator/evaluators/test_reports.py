"""What the readers of reports promise."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.adapter_errors import EvaluationError
from orchestrator.evaluators.reports import LARGEST_REPORT, READERS, read_ctrf, read_json, read_junit
from orchestrator_events.verdict import CaseResult, CaseStatus

PASSED, FAILED, ERROR, SKIPPED = CaseStatus.PASSED, CaseStatus.FAILED, CaseStatus.ERROR, CaseStatus.SKIPPED


def test_junit_cases_come_in_order_with_their_reasons() -> None:
    """Class and name are the id; message and text of a failure are its message; suites may be nested."""
    report = b"""<?xml version="1.0" encoding="utf-8"?>
<!-- a <comment> -->
<testsuites><testsuite name="s">
  <testcase classname="m.C" name="a" time="0.1"/>
  <testcase classname="m.C" name="b"><failure message="1 != 2">line 7\n</failure></testcase>
  <testcase classname="" name="c"><error message="collection failure"/></testcase>
  <testcase name="d"><skipped message="later"/></testcase>
  <testsuite name="inner"><testcase classname="m" name="e"><system-out>x</system-out></testcase></testsuite>
</testsuite></testsuites>"""
    assert read_junit(report) == (
        CaseResult("m.C::a", PASSED),
        CaseResult("m.C::b", FAILED, "1 != 2\nline 7"),
        CaseResult("c", ERROR, "collection failure"),
        CaseResult("d", SKIPPED, "later"),
        CaseResult("m::e", PASSED),
    )


def test_what_pytest_could_not_collect_says_why_at_once() -> None:
    """The last error in the text stands in the first line, which is what is shown of a case that failed."""
    text = "suite/test_a.py:1\n    import a\nE     File &quot;a.py&quot;\nE   SyntaxError: invalid syntax"
    report = (
        f"<testsuite><testcase name='test_a'><error message='collection failure'>{text}</error></testcase></testsuite>"
    )
    (found,) = read_junit(report.encode())
    assert (found.status, found.message.splitlines()[0]) == (ERROR, "collection failure: SyntaxError: invalid syntax")


def test_a_lone_suite_is_a_report_too() -> None:
    """The outer element may be a single suite; a byte order mark is no fault."""
    report = "\ufeff<testsuite><testcase name='a'/></testsuite>".encode()
    assert read_junit(report) == (CaseResult("a", PASSED),)


def test_the_worst_of_several_results_counts() -> None:
    """A case with a failure and an error is an error; with a skip and a failure it failed."""
    report = (
        b"<testsuite><testcase name='a'><failure message='f'/><error message='e'/></testcase>"
        b"<testcase name='b'><failure message='f'/><skipped message='s'/></testcase></testsuite>"
    )
    assert read_junit(report) == (CaseResult("a", ERROR, "e"), CaseResult("b", FAILED, "f"))


def test_a_case_that_was_not_run_has_not_passed() -> None:
    """GoogleTest marks a disabled case by an attribute alone."""
    report = b"<testsuite><testcase name='a' status='notrun'/><testcase name='b' status='run'/></testsuite>"
    assert read_junit(report) == (CaseResult("a", SKIPPED), CaseResult("b", PASSED))


def test_a_case_that_is_reported_twice_comes_twice() -> None:
    """What repetition means is for the engine to say."""
    report = b"<testsuite><testcase name='a'/><testcase name='a'><failure/></testcase></testsuite>"
    assert [result.status for result in read_junit(report)] == [PASSED, FAILED]


def test_messages_are_bounded_and_inert() -> None:
    """Head and tail of a long message are kept; nothing is left that a terminal would act on."""
    report = f"<testsuite><testcase name='a&#10;b'><failure>\x9b1mhead{'x' * 9000}tail</failure></testcase></testsuite>"
    (result,) = read_junit(report.encode())
    assert (result.id, len(result.message), result.message[:4], result.message[-4:]) == (
        "a b", 4000, "head", "tail",
    )  # fmt: skip


BOMB = """<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<testsuite><testcase name="&b;"/></testsuite>"""


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"no xml",
        b"<testsuite>",
        b"<html></html>",
        b"<testsuite><testcase name='\xff'/></testsuite>",
        BOMB.encode(),
        b'<?xml version="1.0"?><!-- <x> -->' + BOMB.encode(),
        '<?xml version="1.0" encoding="utf-16"?>'.encode("utf-16") + BOMB.encode("utf-16"),
        b'<?xml version="1.0" encoding="utf-7"?><testsuite/>',
        b"<??>" * 30_000 + b"!",
        b"<testsuite>" * 5_000 + b"</testsuite>" * 5_000,
        b" " * (LARGEST_REPORT + 1),
    ],
    ids=[
        "empty", "text", "cut off", "html", "not utf-8", "bomb", "hidden bomb", "utf-16", "utf-7",
        "instructions", "deep", "large",
    ],
)  # fmt: skip
def test_junit_that_cannot_be_trusted_is_no_verdict(report: bytes) -> None:
    """Malformed, oversized, oddly encoded XML and any document type are refused, quickly."""
    with pytest.raises(EvaluationError):
        read_junit(report)


def test_nesting_that_is_too_deep_is_named() -> None:
    """Not by what Python says of itself."""
    for read, deep in ((read_junit, b"<testsuite>" * 5_000 + b"</testsuite>" * 5_000), (read_ctrf, b"[" * 100_000)):
        with pytest.raises(EvaluationError, match="it nests too deep"):
            read(deep)


def test_an_absent_parser_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """JUnit reports need an extra of the distribution."""
    monkeypatch.setitem(sys.modules, "junitparser", None)
    with pytest.raises(EvaluationError, match=r"install orchestrator-fsm\[cli\]"):
        read_junit(b"<testsuite/>")


def ctrf(*tests: Any) -> bytes:
    """A CTRF report of these tests."""
    return json.dumps({"reportFormat": "CTRF", "results": {"tool": {"name": "t"}, "tests": tests}}).encode()


def test_ctrf_cases_are_named_by_suite_and_name() -> None:
    """One suite or several, a message and a trace; what is neither passed, failed nor skipped is an error."""
    report = ctrf(
        {"name": "a", "status": "passed", "duration": 1},
        {"name": "b", "status": "failed", "suite": ["x", "y"], "message": "no", "trace": "line 1"},
        {"name": "c", "status": "pending", "suite": "x"},
        {"name": "d", "status": "other", "message": "lone \ud800"},
    )
    assert read_ctrf(report) == (
        CaseResult("a", PASSED),
        CaseResult("x::y::b", FAILED, "no\nline 1"),
        CaseResult("x::c", SKIPPED),
        CaseResult("d", ERROR, "lone "),
    )


@pytest.mark.parametrize(
    "report",
    [
        b"",
        b"[]",
        b"{}",
        b'{"results": []}',
        b'{"results": {"tests": {}}}',
        b"[" * 100000,
        ctrf({"name": "a"}),
        ctrf({"status": "passed"}),
        ctrf("a"),
        ctrf({"name": 1, "status": "passed"}),
        ctrf({"name": "a", "status": "failed"}).replace(b'"failed"', b'"failed", "status": "passed"'),
        b"\xff",
    ],
)
def test_ctrf_that_is_malformed_is_no_verdict(report: bytes) -> None:
    """A report that lacks what a verdict needs is refused."""
    with pytest.raises(EvaluationError):
        read_ctrf(report)


def test_ctrf_suites_of_any_other_kind_are_left_out() -> None:
    """A suite that is neither text nor a list of texts cannot be part of an id."""
    assert read_ctrf(ctrf({"name": "a", "status": "passed", "suite": 7})) == (CaseResult("a", PASSED),)


def own(**changes: Any) -> bytes:
    """A report in our own form, with changes."""
    report = {"protocol": "orchestrator.report/1", "cases": [{"id": "a", "status": "passed"}], **changes}
    return json.dumps(report).encode()


def test_our_own_form_is_the_shortest() -> None:
    """Id, status and perhaps a message."""
    cases = [{"id": "a", "status": "timed out"}, {"id": "b", "status": "failed", "message": "no"}]
    assert read_json(own(cases=cases)) == (
        CaseResult("a", CaseStatus.TIMED_OUT),
        CaseResult("b", FAILED, "no"),
    )


@pytest.mark.parametrize(
    ("report", "reason"),
    [
        (own(protocol="orchestrator.report/2"), r"\$\.protocol: expected one of 'orchestrator.report/1'"),
        (own(cases=[{"id": "a", "status": "missing"}]), r"\$\.cases\[0\]\.status: expected one of 'passed'"),
        (own(cases=[{"id": "a", "status": True}]), r"\$\.cases\[0\]\.status"),
        (own(cases=[{"status": "passed"}]), r"\$\.cases\[0\]\.id: required key is missing"),
        (own(verdict="passed"), r"\$\.verdict: unknown key"),
        (b"{}", r"\$\.protocol: required key is missing"),
        (b'{"protocol": "a", "protocol": "b"}', "given more than once"),
    ],
)
def test_our_own_form_is_read_strictly(report: bytes, reason: str) -> None:
    """Every fault is named with its place."""
    with pytest.raises(EvaluationError, match=reason):
        read_json(report)


@pytest.mark.parametrize("reader", READERS.values(), ids=READERS)
def test_a_large_report_is_refused_before_it_is_parsed(reader: Callable[[bytes], object]) -> None:
    """The limit holds for every form."""
    with pytest.raises(EvaluationError, match=f"at most {LARGEST_REPORT} are read"):
        reader(b" " * (LARGEST_REPORT + 1))
