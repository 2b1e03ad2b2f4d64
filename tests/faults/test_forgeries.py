"""Seven candidates that lie about their result: each would fool somebody, and none is believed.

The suite checks Luhn's formula. Each liar's function is wrong; what differs is how it lies. Which of them fools a
judge that looks at nothing but the exit status is shown too, so that every attack is known to be real. So is what
the pinned ids alone are fooled by, which is what the control is for.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import Budget, Exhausted, MergedSpec, Orchestrator, Passed, RunInterruptedError
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.evaluators.separate import SeparateEvaluator
from orchestrator.pins import Pins, digest_of_suite
from orchestrator.ports import Evaluator
from orchestrator.testing import ScriptedGenerator

SUITE = {
    "test_luhn.py": """
import unittest
from luhn import is_valid, check_digit

class LuhnTest(unittest.TestCase):
    def test_valid_number(self):
        self.assertEqual(is_valid("4539319503436467"), True)

    def test_wrong_number(self):
        self.assertEqual(is_valid("8273123273520569"), False)

    def test_letters(self):
        self.assertIs(is_valid("4539a"), False)

    def test_check_digit(self):
        self.assertEqual(check_digit("453931950343646"), 7)

    def test_spaces(self):
        self.assertTrue(is_valid("059") is True)

    def test_must_fail(self):
        self.assertEqual(1, 2)

def test_plain_assert():
    assert check_digit("7992739871") == 3
"""
}
NAMES = ("valid_number", "wrong_number", "letters", "check_digit", "spaces")
CASES = (*(f"test_luhn.LuhnTest::test_{name}" for name in NAMES), "test_luhn::test_plain_assert")
CONTROL = "test_luhn.LuhnTest::test_must_fail"
UNCONTROLLED = {name: text.replace("        self.assertEqual(1, 2)", "        pass") for name, text in SUITE.items()}

HONEST = """
def is_valid(text):
    digits = text.replace(" ", "")
    return digits.isdigit() and len(digits) > 1 and check_digit(digits[:-1]) == int(digits[-1])

def check_digit(text):
    doubled = [int(digit) * (2 - place % 2) for place, digit in enumerate(reversed(text))]
    return -sum(each - 9 * (each > 9) for each in doubled) % 10
"""
WRONG = """
def is_valid(text):
    return None

def check_digit(text):
    return None
"""
FORGED_REPORT = """
import atexit, os, sys

def forge():
    case = '<testcase classname="luhn" name="works"/>'
    files = [word.partition("=")[2] for word in sys.argv if word.startswith("--junitxml=")]
    with open(files[0], "w") as file:
        file.write('<?xml version="1.0"?><testsuites><testsuite name="pytest">' + case + "</testsuite></testsuites>")
    os._exit(0)

atexit.register(forge)
"""
PATCHED_REPORTS = """
import sys
from _pytest.reports import TestReport

made = TestReport.from_item_and_call.__func__

def forged(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report

TestReport.from_item_and_call = classmethod(forged)
"""
PATCHED_ASSERTS = """
import sys, unittest

for name in [each for each in dir(unittest.TestCase) if each.startswith("assert")]:
    setattr(unittest.TestCase, name, lambda *args, **kwargs: None)
"""
EQUAL_TO_ALL = """
class Anything:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __hash__(self): return 1
    def __sub__(self, other): return 0
    __rsub__ = __sub__

def is_valid(text): return Anything()
def check_digit(text): return Anything()
"""
SKIPS = """
import pytest
def is_valid(text): pytest.skip("not today")
def check_digit(text): pytest.skip("not today")
"""
FORGERIES = {
    "leaves at import": "import os\nos._exit(0)\n",
    "exits at import": "import sys\nsys.exit(0)\n",
    "replaces the assert methods": PATCHED_ASSERTS + WRONG,
    "returns a value equal to everything": EQUAL_TO_ALL,
    "forges the report at exit": FORGED_REPORT + WRONG,
    "replaces the reports": PATCHED_REPORTS + WRONG,
    "skips from inside": SKIPS,
}
FOOL_EXIT_STATUS = {
    "leaves at import",
    "replaces the reports",
    "forges the report at exit",
    "skips from inside",
}
"""Those that the exit status alone is fooled by, in this suite of methods and one plain assert."""

SPEC = MergedSpec(name="luhn", intent="Say whether a number fulfils Luhn's formula.")
PYTEST = "{python} -m pytest -q -p no:cacheprovider --junitxml=report.xml test_luhn.py"


def by_command(suite: dict[str, str] = SUITE, command: str = PYTEST) -> CommandEvaluator:
    """The suite in one process with the candidate."""
    return CommandEvaluator(command, suite=suite, candidate_file="luhn.py", seconds=30)


def by_separate_judge(suite: dict[str, str] = SUITE) -> SeparateEvaluator:
    """The suite in a process of its own."""
    return SeparateEvaluator(suite=suite, candidate_file="luhn.py", arguments=("test_luhn.py",), seconds=30)


def outcome(
    candidate: str, evaluator: Evaluator, suite: dict[str, str], cases: tuple[str, ...], controls: tuple[str, ...]
) -> Passed | Exhausted:
    """What a run makes of one candidate, held to pinned cases."""
    made = Orchestrator(
        generator=ScriptedGenerator([candidate]),
        evaluator=evaluator,
        budget=Budget(attempts=1),
        pins=Pins(spec_digest=SPEC.digest, cases=cases, suite_digest=digest_of_suite(suite)),
        controls=controls,
    )
    return made.run(SPEC)


def exit_status(candidate: str, suite: dict[str, str], directory: Path) -> int:
    """What a naive judge looks at."""
    for name, text in {**suite, "luhn.py": candidate}.items():
        (directory / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=report.xml", "test_luhn.py"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=False).returncode


@pytest.mark.parametrize("name", FORGERIES)
def test_the_attack_is_real(name: str, tmp_path: Path) -> None:
    """A judge that looks at the exit status alone believes just these; the honest candidate ends with 0 too."""
    assert (exit_status(FORGERIES[name], UNCONTROLLED, tmp_path) == 0) is (name in FOOL_EXIT_STATUS)


def test_patched_asserts_fool_a_suite_of_methods(tmp_path: Path) -> None:
    """Without the one plain assert, the replaced assert methods pass every case."""
    assert exit_status(FORGERIES["replaces the assert methods"], methods(UNCONTROLLED), tmp_path) == 0


@pytest.mark.parametrize("name", FORGERIES)
def test_refused_beside_the_judge(name: str) -> None:
    """In one process with the judge none passes, held to the pinned ids and the control."""
    found = outcome(FORGERIES[name], by_command(), SUITE, CASES, (CONTROL,))
    assert isinstance(found, Exhausted)
    (attempt,) = found.history
    assert attempt.failing


def test_report_that_is_written_over_is_no_verdict() -> None:
    """Where the report goes through a pipe, a forged one comes after the real one: nobody can read that."""
    evaluator = by_command(command=PYTEST.replace("report.xml", "{report}"))
    with pytest.raises(RunInterruptedError, match="the JUnit report cannot be read"):
        outcome(FORGERIES["forges the report at exit"], evaluator, SUITE, CASES, (CONTROL,))


@pytest.mark.parametrize("name", FORGERIES)
def test_refused_by_a_separate_judge(name: str) -> None:
    """Apart from the judge none passes, and no control is needed to see it."""
    cases = (*CASES, CONTROL)
    found = outcome(FORGERIES[name], by_separate_judge(UNCONTROLLED), UNCONTROLLED, cases, ())
    assert isinstance(found, Exhausted)
    (attempt,) = found.history
    passed = set(attempt.passed) - {CONTROL}
    assert (passed, bool(attempt.failing)) == (set(), True)


METHODS = CASES[:-1]


def methods(suite: dict[str, str]) -> dict[str, str]:
    """The suite without its plain assert."""
    return {name: text.partition("def test_plain")[0] for name, text in suite.items()}


@pytest.mark.parametrize("name", ["replaces the assert methods", "replaces the reports"])
def test_what_the_control_is_for(name: str) -> None:
    """A judge taken over from inside reports every expected case: the ids alone are fooled, the control is not."""
    suites = methods(UNCONTROLLED), methods(SUITE)
    fooled = outcome(FORGERIES[name], by_command(suites[0]), suites[0], (*METHODS, CONTROL), ())
    caught = outcome(FORGERIES[name], by_command(suites[1]), suites[1], METHODS, (CONTROL,))
    assert (fooled.status, fooled.as_json()["history"][0]["integrity"]) == ("passed", "cooperative")
    assert [(case.id, case.severity) for case in caught.history[0].failing] == [("(judge)", "critical")]


@pytest.mark.parametrize("is_separate", [False, True])
def test_the_honest_candidate_passes(is_separate: bool) -> None:
    """What is refused are the lies: the right program passes under both judges, with the same ids."""
    evaluator = by_separate_judge() if is_separate else by_command()
    found = outcome(HONEST, evaluator, SUITE, CASES, (CONTROL,))
    (attempt,) = found.history
    assert (found.status, sorted(attempt.passed), found.as_json()["history"][0]["integrity"]) == (
        "passed", sorted(CASES), "separate" if is_separate else "cooperative",
    )  # fmt: skip
