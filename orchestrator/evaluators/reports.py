"""Reads what eval runners report: JUnit XML, CTRF and a JSON form of our own."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, Final, Literal

import attrs

from orchestrator.adapter_errors import EvaluationError
from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.excerpt import excerpt
from orchestrator.structuring import structure
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["LARGEST_REPORT", "READERS", "REPORT_PROTOCOL", "Report", "read_ctrf", "read_json", "read_junit"]

LARGEST_REPORT: Final = 4_000_000
"""Largest report that is parsed, bytes."""
LONGEST_ID: Final = 1_000
"""Longest case id that is kept whole, characters."""
REPORT_PROTOCOL: Final = "orchestrator.report/1"
"""Name and version of our own form."""

_PROLOGUE = re.compile(r"(?>\s+|<\?.*?\?>|<!--.*?-->)*+<[\w:]", re.DOTALL)
_PYTEST_ERROR = re.compile(r"^E[ \t]+(\S.*)$", re.MULTILINE)
_ENCODING = re.compile(r"""<\?xml[^>]*encoding\s*=\s*["']([^"']*)["']""")
_NOT_RUN = frozenset({"notrun", "skipped", "disabled", "ignored"})


def read_junit(data: bytes) -> tuple[CaseResult, ...]:
    """The cases of a JUnit XML report in its order, twice reported ones twice.

    The id is `classname::name`, or the name alone where there is no class. Raises EvaluationError when the
    report is malformed, too large, not UTF-8, or has a document type, which could hold an entity bomb.
    """
    try:
        from junitparser import JUnitXml, JUnitXmlError
    except ImportError as error:
        raise EvaluationError("JUnit reports need junitparser: install orchestrator-fsm[cli]") from error
    try:
        report = JUnitXml.fromstring(_plain_xml(data))
        return tuple(_junit_result(case) for case in _junit_cases(report))
    except (SyntaxError, ValueError, JUnitXmlError) as error:
        raise EvaluationError(f"the JUnit report cannot be read: {error}") from error
    except RecursionError:
        raise EvaluationError("the JUnit report cannot be read: it nests too deep") from None


def read_ctrf(data: bytes) -> tuple[CaseResult, ...]:
    """The cases of a CTRF report (ctrf.io); the id is the suites and the name, joined by `::`.

    A pending case counts as skipped, any unknown status as an error. Raises EvaluationError when malformed.
    """
    try:
        # Not as strict as our own form: what nobody reads of it, and a half character in a message, spoil no verdict.
        report = json.loads(_decoded(data), object_pairs_hook=_table)
    except ValueError as error:
        raise EvaluationError(f"the CTRF report is not JSON: {error}") from None
    except RecursionError:
        raise EvaluationError("the CTRF report cannot be read: it nests too deep") from None
    results = report.get("results") if isinstance(report, dict) else None
    tests = results.get("tests") if isinstance(results, dict) else None
    if not isinstance(tests, list):
        raise EvaluationError("the CTRF report has no list at $.results.tests")
    return tuple(_ctrf_result(test, place) for place, test in enumerate(tests))


def read_json(data: bytes) -> tuple[CaseResult, ...]:
    """The cases of `{"protocol": "orchestrator.report/1", "cases": [{"id", "status", "message"?}]}`.

    A status is passed, failed, error, skipped or timed out. Raises EvaluationError with every fault.
    """
    source = "the JSON report"
    try:
        report = structure(parse_document(_decoded(data), ".json", source), Report, source)
    except DocumentError as error:
        raise EvaluationError(excerpt(str(error))) from None
    return tuple(_result(case.id, CaseStatus(case.status), case.message) for case in report.cases)


READERS: Final[Mapping[str, Callable[[bytes], tuple[CaseResult, ...]]]] = MappingProxyType(
    {"junit": read_junit, "ctrf": read_ctrf, "json": read_json}
)
"""What reads each form of report."""


def _decoded(data: bytes) -> str:
    if len(data) > LARGEST_REPORT:
        raise EvaluationError(f"the report has {len(data)} bytes, at most {LARGEST_REPORT} are read")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise EvaluationError(f"the report is not UTF-8 at byte {error.start}") from None


def _plain_xml(data: bytes) -> bytes:
    text = _decoded(data)
    encoding = _ENCODING.match(text)
    if encoding and encoding[1].lower() not in ("utf-8", "utf8", "us-ascii", "ascii"):
        raise ValueError(f"its encoding is {encoding[1]}: write it as UTF-8")
    if not _PROLOGUE.match(text):
        raise ValueError("it is no XML, or it has a document type, which is refused")
    return text.encode()


def _junit_cases(suites: Any) -> Iterator[Any]:
    from junitparser import TestSuite

    yield from suites.iterchildren(_junit_case_class())
    for suite in suites.iterchildren(TestSuite):
        yield from _junit_cases(suite)


@cache
def _junit_case_class() -> type[Any]:
    from junitparser import Attr, TestCase

    class Case(TestCase):
        # GoogleTest and others name a case that was not run by this attribute alone.
        status = Attr()

    return Case


def _junit_result(case: Any) -> CaseResult:
    name = "::".join(part for part in (case.classname, case.name) if part)
    worst, status = None, CaseStatus.PASSED
    if (case.status or "").lower() in _NOT_RUN:
        status = CaseStatus.SKIPPED
    for result in case.result:
        found = _JUNIT_STATUS[type(result).__name__]
        if _GRAVITY[found] > _GRAVITY[status] or (worst is None and found is status):
            worst, status = result, found
    parts = () if worst is None else (_junit_headline(worst), worst.text)
    return _result(name, status, "\n".join(part.strip() for part in parts if part))


def _junit_headline(result: Any) -> str:
    """The message, and where it only says that pytest could not collect a module, the last error of its text."""
    message = (result.message or "").strip()
    errors = _PYTEST_ERROR.findall(result.text or "") if message == "collection failure" else []
    return f"{message}: {errors[-1].strip()}" if errors else message


_JUNIT_STATUS: Final[Mapping[str, CaseStatus]] = MappingProxyType(
    {"Failure": CaseStatus.FAILED, "Error": CaseStatus.ERROR, "Skipped": CaseStatus.SKIPPED}
)
_GRAVITY: Final[Mapping[CaseStatus, int]] = MappingProxyType(
    {CaseStatus.PASSED: 0, CaseStatus.SKIPPED: 1, CaseStatus.FAILED: 2, CaseStatus.ERROR: 3}
)


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys are unlike: with two statuses, readers would differ about which one counts."""
    table = dict(pairs)
    if len(table) != len(pairs):
        raise ValueError("a key is given more than once")
    return table


def _ctrf_result(test: object, place: int) -> CaseResult:
    fields = test if isinstance(test, dict) else {}
    name, word = fields.get("name"), fields.get("status")
    if not isinstance(name, str) or not isinstance(word, str):
        raise EvaluationError(f"the CTRF report has no name or no status at $.results.tests[{place}]")
    suites = fields.get("suite")
    folders = _texts(suites if isinstance(suites, list) else [suites])
    message = "\n".join(_texts([fields.get("message"), fields.get("trace")]))
    return _result("::".join([*folders, name]), _CTRF_STATUS.get(word, CaseStatus.ERROR), message)


def _texts(values: list[object]) -> list[str]:
    return [value for value in values if isinstance(value, str) and value]


_CTRF_STATUS: Final[Mapping[str, CaseStatus]] = MappingProxyType(
    {
        "passed": CaseStatus.PASSED,
        "failed": CaseStatus.FAILED,
        "skipped": CaseStatus.SKIPPED,
        "pending": CaseStatus.SKIPPED,
    }
)


def _result(name: str, status: CaseStatus, message: str) -> CaseResult:
    shown = "" if status is CaseStatus.PASSED else excerpt(message)
    return CaseResult(excerpt(name, LONGEST_ID).replace("\n", " "), status, shown)


@attrs.frozen
class ReportedCase:
    """One case of a report in our own form."""

    id: str
    status: Literal["passed", "failed", "error", "skipped", "timed out"]
    message: str = ""


@attrs.frozen
class Report:
    """A report in our own form."""

    protocol: Literal["orchestrator.report/1"]
    cases: tuple[ReportedCase, ...]
