"""JUnit XML: what a build server sees is what the run saw, attempt by attempt."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree as ET
from xml.sax.saxutils import escape

from orchestrator.evaluators.reports import read_junit
from orchestrator.exports.junit import export_junit
from orchestrator.run import Run
from orchestrator_events.isolation import IN_PROCESS
from orchestrator_events.verdict import CaseStatus

FAILED_ATTEMPT = """\
  <testsuite name="attempt 2" tests="3" failures="2" errors="0" skipped="0" time="2.000000" \
timestamp="2026-01-01T00:00:04.000Z">
    <properties>
      <property name="kind" value="workflow result; not a verification for deployment" />
      <property name="run" value="7f3a" />
      <property name="spec" value="colours" />
      <property name="spec_digest" value="{spec}" />
      <property name="prompt_sha256" value="{prompt}" />
      <property name="candidate_sha256" value="{candidate}" />
      <property name="generator" value="{generator}" />
      <property name="evaluator" value="{evaluator}" />
      <property name="language" value="python" />
      <property name="strategy" value="failure-feedback" />
      <property name="parameters" value="{{}}" />
      <property name="integrity" value="host" />
      <property name="generator_isolation" value="none (in-process)" />
      <property name="evaluator_isolation" value="none (in-process)" />
      <property name="generator_not_enforced" value="{unheld}" />
      <property name="evaluator_not_enforced" value="{unheld}" />
    </properties>
    <testcase classname="palette" name="red" time="0" />
    <testcase classname="palette" name="green" time="0">
      <failure type="failed" message="no">not so</failure>
    </testcase>
    <testcase classname="" name="only" time="0">
      <failure type="skipped" message="skipped" />
    </testcase>
  </testsuite>
"""


def test_an_attempt_in_full(run_called: Callable[[str], Run]) -> None:
    """A suite tells digests, strategy, what held whom, and every case with its message; skipped is not passed."""
    run = run_called("exhausted")
    attempt = run.attempts[1]
    assert attempt.generated is not None
    written = export_junit(run)
    identity = {each.get("name"): each.get("value") for each in ET.fromstring(written).iter("property")}
    expected = FAILED_ATTEMPT.format(
        spec=run.spec.digest,
        prompt=attempt.ready.prompt.digest,
        candidate=attempt.generated.candidate.digest,
        generator=escape(identity["generator"] or ""),
        evaluator=identity["evaluator"],
        unheld=", ".join(IN_PROCESS.not_enforced),
    )
    start = written.index('  <testsuite name="attempt 2"')
    assert written[start : start + len(expected)] == expected


def test_every_ending_is_well_formed_and_adds_up(ended: Run) -> None:
    """There is a suite for each judged attempt, and the counts of suites and document are those of the cases."""
    root = ET.fromstring(export_junit(ended))
    counts = [
        (
            suite.get("name"),
            len(suite.findall("testcase")),
            len(suite.findall("*/failure")),
            len(suite.findall("*/error")),
        )
        for suite in root
    ]
    stated = [
        (suite.get("name"), *(int(suite.get(name, "")) for name in ("tests", "failures", "errors"))) for suite in root
    ]
    assert stated == counts
    assert [name for name, *_ in counts] == [f"attempt {attempt.number}" for attempt in ended.attempts]
    totals = [int(root.get(name, "")) for name in ("tests", "failures", "errors")]
    assert totals == [sum(int(suite.get(name, "")) for suite in root) for name in ("tests", "failures", "errors")]


def test_our_own_reader_finds_the_same_cases(run_called: Callable[[str], Run]) -> None:
    """What is written is read back: ids, statuses and messages, over all attempts."""
    run = run_called("passed")
    found = [(case.id, case.status, case.message) for case in read_junit(export_junit(run).encode())]
    bad = CaseStatus.FAILED
    assert found == [
        ("generation", CaseStatus.ERROR, "ValueError: nothing came: <b>"),
        ("palette::red", CaseStatus.PASSED, ""),
        ("only", CaseStatus.PASSED, ""),
        ("palette::green", bad, "no\nnot so"),
        ("palette::red", CaseStatus.PASSED, ""),
        ("palette::green", CaseStatus.PASSED, ""),
        ("only", CaseStatus.PASSED, ""),
    ]


def test_hostile_texts_stay_texts(run_called: Callable[[str], Run]) -> None:
    """No text becomes an element, and no character is left that XML forbids or a terminal acts on."""
    written = export_junit(run_called("hostile"))
    root = ET.fromstring(written)
    known = {"testsuites", "testsuite", "properties", "property", "testcase", "failure", "error"}
    assert {element.tag for element in root.iter()} == known
    texts = "".join([*root.itertext(), *(value for element in root.iter() for value in element.attrib.values())])
    assert [each for each in texts if each < " " and each not in "\n\t"] == []
    assert [each for each in "\x1b\ufffe\uffff\u202e" if each in written] == []
    assert "<script>alert(1)</script>" in texts
