"""A run as a CTRF report (Common Test Report Format, ctrf.io): the eval cases, with their earlier attempts."""

from __future__ import annotations

import json
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from orchestrator.attempt import Attempt
from orchestrator.exports.decisive import decisive, identity_of, stamp
from orchestrator.outcome import DISCLAIMER, attempt_json, isolation_json
from orchestrator.run import Run
from orchestrator_events.verdict import CaseResult
from orchestrator_states.run import RunState

__all__ = ["CTRF_VERSION", "export_ctrf"]

CTRF_VERSION: Final = "0.0.0"
"""Version of the specification that the report follows."""
TOOL: Final = "orchestrator-fsm"
CANDIDATE: Final = "a candidate is judged"
"""The one test of a run in which no candidate was."""
STATUSES: Final = ("passed", "failed", "pending", "skipped", "other")


def export_ctrf(run: Run) -> str:
    """A loaded run as an indented CTRF document with a final newline.

    The tests are the eval cases as the conforming candidate met them, else the closest one; `retryAttempts` are
    their results with the candidates of the other attempts. Whatever did not pass is `failed`, its own word is
    in `rawStatus`. A run without a verdict has one test that says so. Times are milliseconds.
    """
    chosen = decisive(run)
    tests = [absent(run)] if chosen is None else [case_of(run, chosen, name) for name in names_of(chosen)]
    counts = {status: sum(test["status"] == status for test in tests) for status in STATUSES}
    first, last = run.records[0].at // 1000, run.records[-1].at // 1000
    document = {
        "reportFormat": "CTRF",
        "specVersion": CTRF_VERSION,
        "reportId": str(uuid5(NAMESPACE_OID, f"orchestrator run {run.run_id}")),
        "timestamp": stamp(run.records[-1].at),
        "generatedBy": TOOL,
        "results": {
            "tool": {"name": TOOL},
            "summary": {"tests": len(tests), **counts, "start": first, "stop": last, "duration": last - first},
            "tests": tests,
            "environment": {"reportName": run.spec.name, "extra": environment_of(run)},
            "extra": {
                "kind": DISCLAIMER,
                "state": str(run.state),
                "attempt": None if chosen is None else chosen.number,
                "attempts": [attempt_json(attempt) for attempt in run.attempts],
            },
        },
    }
    return json.dumps(document, indent=1) + "\n"


def environment_of(run: Run) -> dict[str, Any]:
    """What the run was made with."""
    identity = identity_of(run)
    names = ("generator", "evaluator", "strategy", "language")
    told = {name: identity[name] for name in names if name in identity}
    held = {} if run.isolation is None else {"isolation": isolation_json(run.isolation)}
    return {"run": run.run_id, "spec_digest": run.spec.digest} | told | held


def names_of(attempt: Attempt) -> list[str]:
    """The cases of an attempt, those that passed first; a case that was reported twice is named once."""
    return list(dict.fromkeys([*attempt.passed, *(case.id for case in attempt.failing)]))


def case_of(run: Run, chosen: Attempt, name: str) -> dict[str, Any]:
    """One case as the decisive attempt met it, and as the others did."""
    others = [attempt for attempt in run.attempts if attempt is not chosen and attempt.generated is not None]
    retries = [retry for retry in (retry_of(attempt, name) for attempt in others) if retry is not None]
    retried = {"retries": len(retries), "retryAttempts": retries} if retries else {}
    severity = run.spec.severity_of(name)
    extra = {"attempt": chosen.number, **({"severity": severity} if severity else {})}
    return {"name": name, **result_of(chosen, name), "duration": 0, **retried, "extra": extra}


def retry_of(attempt: Attempt, name: str) -> dict[str, Any] | None:
    """A case in another attempt; None where it was not reported."""
    if name not in names_of(attempt):
        return None
    found = result_of(attempt, name)
    raw = found.pop("rawStatus")
    return {"attempt": attempt.number, **found, "extra": {"rawStatus": raw}}


def result_of(attempt: Attempt, name: str) -> dict[str, Any]:
    """Status and message of a case in an attempt."""
    case: CaseResult | None = next((case for case in attempt.failing if case.id == name), None)
    if case is None:
        return {"status": "passed", "rawStatus": "passed"}
    message = {"message": case.message} if case.message else {}
    return {"status": "failed", "rawStatus": str(case.status), **message}


def absent(run: Run) -> dict[str, Any]:
    """The test that stands for a run in which no candidate was judged: nothing ran is not a success."""
    message = next((attempt.error for attempt in reversed(run.attempts) if attempt.error), f"the run is {run.state}")
    status = "failed" if run.state == RunState.EXHAUSTED else "other"
    return {"name": CANDIDATE, "status": status, "rawStatus": str(run.state), "message": message, "duration": 0}
