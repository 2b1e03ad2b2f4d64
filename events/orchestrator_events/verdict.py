"""What an eval suite says about a candidate, case by case."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import attrs

from orchestrator_events.making import cheaply_made

__all__ = ["CaseResult", "CaseStatus"]


class CaseStatus(StrEnum):
    """The outcome of one case; only `passed` counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    TIMED_OUT = "timed out"
    MISSING = "missing"
    """Expected, but absent from the report."""
    UNEXPECTED = "unexpected"
    """Reported, but not among the expected cases."""
    DUPLICATE = "duplicate"
    """Reported more than once."""


@cheaply_made
@attrs.frozen(weakref_slot=False)
class CaseResult:
    """The result of one eval case, as its runner reported it; the text is untrusted."""

    id: Annotated[str, "Name of the case, unique in its suite."]
    status: Annotated[CaseStatus, "Outcome; everything but passed counts as not passed."]
    message: Annotated[str, "Why it did not pass; empty when it did."] = ""
    severity: Annotated[str, "The spec's severity of the case: error, critical or empty."] = ""
