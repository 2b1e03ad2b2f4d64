"""A run as an in-toto Statement v1 with a test-result predicate, unsigned: signing is the verifier's side."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any, Final

from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.exports.decisive import decisive, start_of
from orchestrator.history import report_of
from orchestrator.outcome import DISCLAIMER
from orchestrator.run import Run
from orchestrator_events.errors import OrchestratorError

__all__ = ["PREDICATE_TYPE", "STATEMENT_TYPE", "NothingToAttestError", "export_intoto"]

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://in-toto.io/attestation/test-result/v0.1"


class NothingToAttestError(OrchestratorError):
    """A statement is about a candidate, and no candidate of this run was judged."""

    def __init__(self, run_id: str) -> None:
        self.run_id = run_id
        super().__init__(f"run {run_id} has no judged candidate to attest: export it as json to have its history")


def export_intoto(run: Run) -> str:
    """A loaded run as an indented in-toto statement with a final newline.

    The subject is the conforming candidate, else the closest one, and each of its files where it has several.
    `configuration` holds the spec, the table that decided, what was configured, and the head of the record.
    Raises NothingToAttestError for a run without a judged candidate.
    """
    chosen = decisive(run)
    candidate = None if chosen is None else chosen.candidate
    if chosen is None or candidate is None:
        raise NothingToAttestError(run.run_id)
    statement = {
        "_type": STATEMENT_TYPE,
        "subject": subjects_of(candidate),
        "predicateType": PREDICATE_TYPE,
        "predicate": {
            "result": "PASSED" if chosen.is_conforming else "FAILED",
            "configuration": configuration_of(run, chosen),
            "passedTests": list(chosen.passed),
            "failedTests": list(dict.fromkeys(case.id for case in chosen.failing)),
        },
    }
    return json.dumps(statement, indent=1) + "\n"


def subjects_of(candidate: Candidate) -> list[dict[str, Any]]:
    """The candidate as it is stored, and each of its files as it would be written."""
    return [
        {"name": "candidate", "digest": {"sha256": candidate.digest}},
        *(
            {"name": f"candidate/{path}", "digest": {"sha256": sha256(text.encode()).hexdigest()}}
            for path, text in candidate.files.items()
        ),
    ]


def configuration_of(run: Run, chosen: Attempt) -> list[dict[str, Any]]:
    """What the result depends on, each by its digest or in full."""
    start, head = start_of(run), report_of(run).journal_head
    told = {"kind": DISCLAIMER, "run": run.run_id, "state": str(run.state), "attempt": chosen.number}
    held = {"generator": chosen.generator_isolation, "evaluator": chosen.evaluator_isolation}
    told |= {"isolation": held, "integrity": chosen.integrity}
    record = {**told, "head": head.digest, "count": head.count}
    return [
        {
            "name": "spec",
            "digest": {"sha256": run.spec.digest.removeprefix("sha256:")},
            "annotations": {"name": run.spec.name},
        },
        {"name": "lifecycle", "digest": {"sha256": start.table_digest}, "annotations": {"name": run.lifecycle}},
        {
            "name": "runner",
            "digest": {"sha256": sha256(start.identity.encode()).hexdigest()},
            "mediaType": "application/json",
            "content": b64encode(start.identity.encode()).decode(),
        },
        {
            "name": "record",
            "mediaType": "application/json",
            "content": b64encode(json.dumps(record, sort_keys=True).encode()).decode(),
            "annotations": record,
        },
    ]
