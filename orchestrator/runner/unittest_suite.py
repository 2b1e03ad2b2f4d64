"""A unittest suite in the judge's process; its ids are those that pytest would give the same cases."""

from __future__ import annotations

import os
import unittest
from typing import Any, Final

from orchestrator.runner.cases import Case
from orchestrator.runner.peer import Peer

__all__ = ["run_suite"]

GRAVITY: Final = ("passed", "skipped", "failed", "error")


def run_suite(peer: Peer, arguments: list[str]) -> tuple[list[Case], int]:
    """Run the named files, modules or cases, or all of `test*.py` and `*_test.py`; 0 when everything passed."""
    loader = unittest.TestLoader()
    names = [module_name(each) for each in arguments] or sorted(
        module_name(each) for each in os.listdir() if each.endswith(".py") and is_suite(each)
    )
    watch = Watch(peer)
    loader.loadTestsFromNames(names).run(watch)
    cases = list(watch.cases.values())
    return cases, 0 if all(each.status in ("passed", "skipped") for each in cases) else 1


def is_suite(name: str) -> bool:
    """Whether a file is called like a suite."""
    return name.startswith("test") or name.removesuffix(".py").endswith("_test")


def module_name(name: str) -> str:
    """A file as a module."""
    return name.removesuffix(".py").replace("/", ".")


class Watch(unittest.TestResult):
    """Collects the cases; none passes in which the candidate's process failed."""

    def __init__(self, peer: Peer) -> None:
        super().__init__()
        self.peer = peer
        self.known = 0
        self.cases: dict[str, Case] = {}

    def startTest(self, test: Any) -> None:  # noqa: N802 -- unittest's name
        super().startTest(test)
        self.known = len(self.peer.faults)
        self.note(test, "passed", "")

    def stopTest(self, test: Any) -> None:  # noqa: N802
        fault = "; ".join(self.peer.faults[self.known :]) or self.peer.broken
        if fault:
            self.note(test, "error", fault)
        super().stopTest(test)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addError(test, err)
        self.note(test, "error", self.errors[-1][1])

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addFailure(test, err)
        self.note(test, "failed", self.failures[-1][1])

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        super().addSkip(test, reason)
        self.note(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        super().addExpectedFailure(test, err)
        self.note(test, "skipped", "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        super().addUnexpectedSuccess(test)
        self.note(test, "failed", "Unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            is_failure = issubclass(err[0], test.failureException)
            text = self._exc_info_to_string(err, subtest)  # type: ignore[attr-defined]
            self.note(test, "failed" if is_failure else "error", f"{subtest}\n{text}")

    def note(self, test: Any, status: str, message: str) -> None:
        """Keep the gravest that is said of a case."""
        name = case_id(test)
        known = self.cases.get(name)
        if known is None or GRAVITY.index(status) > GRAVITY.index(known.status):
            self.cases[name] = Case(name, status, message)


def case_id(test: Any) -> str:
    """The id that pytest's JUnit report gives a case."""
    kind = type(test)
    method = getattr(test, "_testMethodName", "")
    if kind.__module__.partition(".")[0] == "unittest":
        return method or str(test)
    return f"{kind.__module__}.{kind.__qualname__}::{method}"
