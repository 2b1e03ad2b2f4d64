"""What an eval suite run as a program promises."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from orchestrator.adapter_errors import CandidateRefusedError, EvaluationError
from orchestrator.candidate import Candidate
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.ports import Submission, Verdict
from orchestrator.process import CONTAINMENT
from orchestrator.spec import EvalCase, MergedSpec
from orchestrator_events.verdict import CaseResult, CaseStatus

PYTEST = [
    "{python}",
    "-m",
    "pytest",
    "-q",
    "-p",
    "no:cacheprovider",
    "--rootdir=.",
    "--junitxml={report}",
    ".",
]
SUITE = {
    "test_answer.py": "import answer\n\ndef test_one():\n    assert answer.f() == 1\n\n"
    "def test_two():\n    assert answer.f() + 1 == 2\n"
}
ONE, TWO = "test_answer::test_one", "test_answer::test_two"
PROTOCOL = '{"protocol": "orchestrator.report/1", "cases": '
PASSING = PROTOCOL + '[{"id": "a", "status": "passed"}]}'


def submission(candidate: Candidate, cases: Iterable[str] = (), seconds: float | None = None) -> Submission:
    """A submission against a spec that names these cases."""
    evals = tuple(EvalCase(name=case) for case in cases)
    spec = MergedSpec(intent="Do it.", evals=evals)
    return Submission(run_id="run", attempt=1, candidate=candidate, spec=spec, language="python", seconds=seconds)


def judge(text: str, cases: Iterable[str] = (ONE, TWO)) -> Verdict:
    """What pytest says of a candidate that is one text."""
    evaluator = CommandEvaluator(PYTEST, suite=SUITE, candidate_file="answer.py")
    return asyncio.run(evaluator.evaluate(submission(Candidate(text), cases)))


def run(program: str, cases: Iterable[str] = (), **options: Any) -> Verdict:
    """What a suite that is this Python program says, reporting in our own form to `report.json`."""
    evaluator = CommandEvaluator(
        ["{python}", "-c", program],
        suite=options.pop("suite", {}),
        candidate_file="answer.py",
        report="json",
        report_file="report.json",
        **options,
    )
    return asyncio.run(evaluator.evaluate(submission(Candidate("x"), cases)))


def reporting(text: str, then: str = "") -> str:
    """A program that writes a report and does something after it."""
    return f"open('report.json', 'w').write({text!r})\n{then}"


def statuses(verdict: Verdict) -> dict[str, CaseStatus]:
    """Case ids and their statuses."""
    return {result.id: result.status for result in verdict.results}


def test_a_conforming_candidate_passes_every_case() -> None:
    """The verdict is the report, case by case, and says what it ran under."""
    passed = tuple(CaseResult(case, CaseStatus.PASSED) for case in (ONE, TWO))
    level = asyncio.run(CommandEvaluator("true", suite={}).isolate()).label
    assert judge("def f():\n    return 1\n") == Verdict(passed, level, "cooperative")


def test_a_failing_case_says_why_without_naming_the_directory() -> None:
    """The message holds the assertion; the directory, which is new each time, reads as `.`."""
    verdict = judge("import os\ndef f():\n    return os.getcwd()\n")
    assert statuses(verdict) == {ONE: CaseStatus.FAILED, TWO: CaseStatus.FAILED}
    assert verdict.results[0].message.startswith("AssertionError: assert '.' == 1")


@pytest.mark.parametrize(
    ("candidate", "results"),
    [
        ("def f(:\n", {"test_answer": CaseStatus.ERROR}),
        ("import sys\nsys.exit(0)\n", {"pytest::internal": CaseStatus.ERROR}),
        ("raise KeyboardInterrupt\n", {ONE: CaseStatus.ERROR, TWO: CaseStatus.ERROR}),
        ("import os\nos._exit(0)\n", {ONE: CaseStatus.ERROR, TWO: CaseStatus.ERROR}),
        ("import os\nos._exit(1)\n", {ONE: CaseStatus.ERROR, TWO: CaseStatus.ERROR}),
        ("import os\nos.abort()\n", {ONE: CaseStatus.ERROR, TWO: CaseStatus.ERROR}),
    ],
)
def test_a_candidate_that_breaks_the_suite_has_not_passed(candidate: str, results: Mapping[str, CaseStatus]) -> None:
    """Syntax errors, exits and crashes are verdicts on the candidate, not breakdowns of the evaluation."""
    assert statuses(judge(candidate)) == results


def test_a_candidate_that_hangs_is_timed_out() -> None:
    """Every expected case is timed out, and the run can go on."""
    message = "the suite timed out after 0.3 s and reported no case in report.json"
    expected = tuple(CaseResult(case, CaseStatus.TIMED_OUT, message) for case in ("a", "b"))
    assert run("while True: pass", ["b", "a"], seconds=0.3).results == expected


def test_the_time_that_the_run_has_left_holds_too() -> None:
    """The shorter of the evaluator's own limit and the run's counts."""
    evaluator = CommandEvaluator("sleep 60", suite={}, candidate_file="a.py", seconds=50)
    verdict = asyncio.run(evaluator.evaluate(submission(Candidate("x"), ["a"], seconds=0.1)))
    assert statuses(verdict) == {"a": CaseStatus.TIMED_OUT}


@pytest.mark.parametrize(
    ("program", "status", "message"),
    [
        ("import time; time.sleep(60)", CaseStatus.TIMED_OUT, "the suite timed out after 0.3 s and"),
        ("import os; os.kill(os.getpid(), 11)", CaseStatus.ERROR, "the suite was killed by SIGSEGV and"),
    ],
)
def test_without_known_cases_the_suite_itself_stands_in(program: str, status: CaseStatus, message: str) -> None:
    """Where nobody knows the cases, one that stands for the whole suite has not passed."""
    (result,) = run(program, seconds=0.3 if "sleep" in program else 30).results
    assert (result.id, result.status, result.message[: len(message)]) == ("(suite)", status, message)


def test_a_flood_of_output_is_the_candidates_fault() -> None:
    """The suite is stopped at the limit; its expected cases are errors."""
    verdict = run("while True: print('x' * 999)", cases=["a"], output_limit=10_000)
    assert statuses(verdict) == {"a": CaseStatus.ERROR}
    assert verdict.results[0].message.startswith("the suite was stopped because it wrote too much to stdout")


@pytest.mark.parametrize(
    ("program", "cases", "reason"),
    [
        ("import sys; print('why'); sys.exit(0)", [], "ended with status 0 and reported no case.*\nwhy"),
        ("import sys; sys.exit(3)", [], "ended with status 3 and reported no case in report.json"),
        ("import sys; sys.exit(4)", ["a"], "ended with status 4"),
        ("import sys; sys.exit(5)", ["a"], "ended with status 5"),
        ("import sys; sys.exit(127)", ["a"], "ended with status 127"),
        (
            "import sys; sys.exit(sys.executable + ': No module named pytest')",
            ["a"],
            "No module named pytest",
        ),
        (reporting(PROTOCOL + "[]}"), [], "reported no case"),
        (reporting("{"), ["a"], "the JSON report: line 1"),
        ("import os; os.symlink('/etc/passwd', 'report.json')", ["a"], "report.json is not a regular file"),
        ("import os; os.mkfifo('report.json')", ["a"], "report.json is not a regular file"),
        ("import os; os.truncate(os.open('report.json', 66), 60_000_000)", ["a"], "report.json is too large"),
    ],
)
def test_a_suite_that_gives_no_verdict_is_an_error(program: str, cases: list[str], reason: str) -> None:
    """A runner that breaks, reports nothing or leaves a report that cannot be read is nobody's failure."""
    with pytest.raises(EvaluationError, match=rf"(?s){reason}"):
        run(program, cases)


@pytest.mark.parametrize(
    ("program", "seconds", "extra"),
    [
        (reporting(PASSING), 30, {}),
        (reporting(PASSING, "raise SystemExit(1)"), 30, {"(suite)": CaseStatus.ERROR}),
        (reporting(PASSING, "import os; os.abort()"), 30, {"(suite)": CaseStatus.ERROR}),
        (reporting(PASSING, "import time; time.sleep(60)"), 0.3, {"(suite)": CaseStatus.TIMED_OUT}),
    ],
)
def test_a_suite_that_fails_although_its_cases_passed_has_one_more_case(
    program: str, seconds: float, extra: Mapping[str, CaseStatus]
) -> None:
    """A report without a failure from a suite that failed is not taken at its word."""
    verdict = run(program, ["a"], seconds=seconds, launcher=CONTAINMENT)
    assert statuses(verdict) == {"a": CaseStatus.PASSED, **extra}


def test_a_report_that_was_cut_off_by_a_crash_is_no_report() -> None:
    """Half a report of a killed suite is the crash, not an unreadable report."""
    verdict = run(reporting(PASSING[:40], "import os; os.abort()"), ["a"])
    assert statuses(verdict) == {"a": CaseStatus.ERROR}


def test_a_report_that_comes_with_the_suite_is_not_read(tmp_path: Path) -> None:
    """What lies about from an earlier run says nothing of this candidate."""
    (tmp_path / "report.json").write_text(PASSING)
    with pytest.raises(EvaluationError, match="reported no case"):
        run("pass", suite=tmp_path)


@pytest.mark.parametrize("path", ["report.xml", "REPORT.xml", "test_answer.py", "Test_Answer.py", "../answer.py"])
def test_a_candidate_cannot_bring_its_own_suite_or_report(path: str) -> None:
    """Such a candidate is refused before anything runs."""
    evaluator = CommandEvaluator("no-such-runner", suite=SUITE)
    with pytest.raises(CandidateRefusedError):
        asyncio.run(evaluator.evaluate(submission(Candidate(files={path: "x"}))))


def test_a_suite_can_be_a_directory_and_a_candidate_several_files(tmp_path: Path) -> None:
    """The directory is copied, files go beside it; the original is not touched."""
    (tmp_path / "test_answer.py").write_text(SUITE["test_answer.py"])
    (tmp_path / "answer").mkdir()
    (tmp_path / "answer/data.txt").write_text("1")
    candidate = Candidate(
        files={
            "answer/__init__.py": "from answer.inner import f\n",
            "answer/inner.py": "def f():\n    return 1\n",
        }
    )
    verdict = asyncio.run(CommandEvaluator(PYTEST, suite=tmp_path).evaluate(submission(candidate)))
    assert statuses(verdict) == {ONE: CaseStatus.PASSED, TWO: CaseStatus.PASSED}
    assert sorted(os.listdir(tmp_path)) == ["answer", "test_answer.py"]


def test_nothing_of_an_evaluation_stays_on_the_disk(tmp_path: Path) -> None:
    """Working directory and temporary files are gone, even when the suite fails."""
    note = tmp_path / "note"
    program = f"import os, tempfile; open({str(note)!r}, 'w').write(os.getcwd() + ' ' + tempfile.mkdtemp())"
    with pytest.raises(EvaluationError):
        run(program, launcher=CONTAINMENT)
    assert [os.path.exists(path) for path in note.read_text().split()] == [False, False]


def test_placeholders_are_filled_in_and_braces_left_alone() -> None:
    """Only the three known placeholders are replaced."""
    evaluator = CommandEvaluator(
        [
            "{python}",
            "-c",
            "import sys; print({1: 2}, sys.argv[1:], file=sys.stderr)",
            "{report} {candidate} {x}",
        ],
        suite={},
        candidate_file="a.py",
    )
    with pytest.raises(EvaluationError, match=r"\{1: 2\} \['/dev/fd/\d+ a.py \{x\}'\]"):
        asyncio.run(evaluator.evaluate(submission(Candidate("x"))))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"command": "no-such-runner", "suite": {}}, "eval runner 'no-such-runner' cannot be started"),
        ({"command": "./run.sh", "suite": {"run.sh": ""}}, r"it is not executable: chmod \+x \./run\.sh$"),
        ({"command": "true", "suite": {"../x": "y"}}, "the suite cannot be written"),
        ({"command": "true", "suite": Path("/no/such/suite")}, "suite and candidate cannot be written"),
        ({"command": "true", "suite": {}, "candidate_file": ""}, "name its file with candidate_file"),
    ],
)
def test_what_the_host_got_wrong_is_no_verdict(options: dict[str, Any], reason: str) -> None:
    """The message says what to mend."""
    evaluator = CommandEvaluator(**{"candidate_file": "a.py", **options})
    with pytest.raises(EvaluationError, match=reason):
        asyncio.run(evaluator.evaluate(submission(Candidate("x"))))


def test_a_form_of_report_that_does_not_exist_is_refused_at_once() -> None:
    """The message lists what there is."""
    with pytest.raises(ValueError, match="choose one of junit, ctrf, json"):
        CommandEvaluator("true", suite={}, report="tap")  # type: ignore[arg-type] # the mistake under test


def test_the_suite_sees_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Candidates run with the suite's environment, so it holds what is allowed and nothing else."""
    monkeypatch.setenv("API_KEY", "secret")
    program = "import os, sys; sys.exit('API_KEY' in os.environ and 'leaked' or 'clean')"
    with pytest.raises(EvaluationError, match="clean"):
        run(program)
    assert sys.executable
