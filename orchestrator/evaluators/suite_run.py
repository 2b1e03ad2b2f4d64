"""What one run of an eval suite says about its candidate when the report alone does not."""

from __future__ import annotations

import re
from typing import Final

import attrs

from orchestrator.adapter_errors import EvaluationError
from orchestrator.commandline import ending
from orchestrator.excerpt import excerpt, tail
from orchestrator.process import Completed
from orchestrator_events.verdict import CaseResult, CaseStatus

__all__ = ["SUITE", "SuiteRun"]

SUITE: Final = "(suite)"
"""Id of the case that stands for the suite as a whole."""

_BREAKDOWNS: Final = frozenset({4, 5, 126, 127})
"""Statuses that no candidate is blamed for: pytest was misused or found nothing, a shell found no program."""

_RUNNER_MISSING = re.compile(rb"\S*python[^:\n]*: No module named \S+\s*\Z")


@attrs.frozen(kw_only=True)
class SuiteRun:
    """How an eval suite ended on one candidate."""

    completed: Completed
    seconds: float | None
    """The time it had."""
    expected: frozenset[str] | None
    """Ids of the cases it should have reported; None where nobody knows them."""
    report_file: str
    hint: str = ""
    """What to change when the sandbox hid something from the suite; for the host, never for a prompt."""

    @property
    def was_cut_off(self) -> bool:
        """Whether it was killed, by us or by a crash, so that its report may be absent or half written."""
        completed = self.completed
        is_killed = completed.returncode < 0 or bool(completed.overuse and completed.returncode)
        return completed.timed_out or bool(completed.exceeded) or is_killed

    def confirmed(self, results: tuple[CaseResult, ...]) -> tuple[CaseResult, ...]:
        """The reported results; when nothing failed in them but the suite did, one more that says so."""
        failure = ending(self.completed, self.seconds)
        if not failure or any(not_passed(result) for result in results):
            return results
        message = f"no case failed, but the suite {failure}"
        return (*results, CaseResult(SUITE, self._status, self._with_output(message)))

    def without_report(self) -> tuple[CaseResult, ...]:
        """Every expected case as timed out or error, since the suite ended before it could report.

        Raises EvaluationError when the suite rather than the candidate must be at fault, or when nobody
        knows which cases there are and the suite ended by itself.
        """
        failure = ending(self.completed, self.seconds) or "ended with status 0"
        message = f"the suite {failure} and reported no case in {self.report_file}"
        if self._is_breakdown or (not self.expected and not self.was_cut_off):
            raise EvaluationError("\n".join(filter(None, (self._with_output(message), self.hint))))
        first, *others = sorted(self.expected or (SUITE,))
        rest = (CaseResult(case, self._status, message) for case in others)
        return (CaseResult(first, self._status, self._with_output(message)), *rest)

    @property
    def _status(self) -> CaseStatus:
        return CaseStatus.TIMED_OUT if self.completed.timed_out else CaseStatus.ERROR

    @property
    def _is_breakdown(self) -> bool:
        if self.was_cut_off:
            return False
        status = self.completed.returncode
        return status in _BREAKDOWNS or (status == 1 and bool(_RUNNER_MISSING.search(self.completed.stderr)))

    def _with_output(self, message: str) -> str:
        said = [tail(output, 2_000) for output in (self.completed.stdout, self.completed.stderr)]
        return excerpt("\n".join([message, *(text for text in said if text)]))


def not_passed(result: CaseResult) -> bool:
    """Whether a case was run and did not pass."""
    return result.status not in (CaseStatus.PASSED, CaseStatus.SKIPPED)
