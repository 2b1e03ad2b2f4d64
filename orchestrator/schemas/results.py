"""The schema of how a run ended: what `RunReport.as_json` gives, and the command line writes."""

from __future__ import annotations

from typing import Any, Final

from orchestrator.outcome import DISCLAIMER
from orchestrator.recordedresult import UsageTotals
from orchestrator.schemas.records import SHA256
from orchestrator.schemas.shapes import Shapes, closed
from orchestrator_events.budget import Charge
from orchestrator_events.isolation import LEVELS, Isolation
from orchestrator_events.verdict import CaseStatus
from orchestrator_states.run import RunState

__all__ = ["result_schema"]

TEXT: Final = {"type": "string"}
COUNT: Final = {"type": "integer", "minimum": 0}
SPEC_DIGEST: Final = {"type": "string", "pattern": "^sha256:[0-9a-f]{64}$"}
INTEGRITIES: Final = ("separate", "cooperative", "host")
ATTEMPT: Final = {"$ref": "#/$defs/Attempt"}
WRITTEN: Final = {
    "exit_code": {"type": "integer"},
    "candidate_path": {"type": ["string", "null"]},
    "journal": TEXT,
    "reason": TEXT,
}
"""What the command line adds."""


def result_schema() -> dict[str, Any]:
    """A result; one that passed has its candidate, one that is exhausted also the limit."""
    shapes = Shapes()
    ended = {"candidate": maybe({"$ref": "#/$defs/Candidate"}), "limit": TEXT, "detail": TEXT}
    fields = {**report_fields(shapes), **ended, **WRITTEN}
    definitions = {**shapes.definitions, "Attempt": attempt(shapes), "Candidate": candidate()}
    return {
        **closed(fields, optional=(*ended, *WRITTEN)),
        "allOf": [
            {
                "if": {"properties": {"status": {"const": "passed"}}},
                "then": {"required": ["candidate"], "properties": {"candidate": {"type": "object"}}},
            },
            {
                "if": {"properties": {"status": {"const": "exhausted"}}},
                "then": {"required": ["candidate", "limit", "detail"]},
            },
        ],
        "$defs": dict(sorted({**definitions, **shapes.definitions}.items())),
    }


def report_fields(shapes: Shapes) -> dict[str, Any]:
    """What every ending has."""
    return {
        "kind": {"const": DISCLAIMER},
        "status": {"enum": ["passed", "exhausted", "open"]},
        "run": TEXT,
        "state": {"enum": [state.value for state in RunState]},
        "spec": closed({"name": TEXT, "digest": SPEC_DIGEST}),
        "language": TEXT,
        "generator": TEXT,
        "evaluator": TEXT,
        "strategy": TEXT,
        "isolation": maybe(isolation(shapes)),
        "integrity": {"enum": ["", *INTEGRITIES]},
        "is_pinned": {"type": "boolean"},
        "attempts": COUNT,
        "generator_invocations": COUNT,
        "usage": shapes.of(UsageTotals),
        "closest": maybe(ATTEMPT),
        "history": {"type": "array", "items": ATTEMPT},
        "errors": {"type": "array", "items": TEXT},
        "journal_head": closed({"digest": SHA256, "count": COUNT}),
    }


def isolation(shapes: Shapes) -> dict[str, Any]:
    """What held generator and evaluation in, as it was found."""
    level = {"enum": list(LEVELS)}
    return closed({"required": level, "generator": shapes.of(Isolation), "evaluator": shapes.of(Isolation)})


def attempt(shapes: Shapes) -> dict[str, Any]:
    """One attempt, texts by digest."""
    status = {"enum": [each.value for each in CaseStatus]}
    case: dict[str, Any] = {"id": TEXT, "status": status, "message": TEXT, "severity": TEXT}
    return closed(
        {
            "attempt": {"type": "integer", "minimum": 1},
            "parameters": {"type": "object"},
            "seed": TEXT,
            "prompt": SHA256,
            "candidate": maybe(SHA256),
            "passed": {"type": "array", "items": TEXT},
            "failing": {"type": "array", "items": closed(case)},
            "error": TEXT,
            "remedy": TEXT,
            "answer": maybe(SHA256),
            "extraction": TEXT,
            "generator_isolation": TEXT,
            "evaluator_isolation": TEXT,
            "integrity": {"enum": ["", *INTEGRITIES]},
            "reused_from": COUNT,
            "charge": maybe(shapes.of(Charge)),
        }
    )


def candidate() -> dict[str, Any]:
    """One text, or files."""
    files = {"type": "object", "minProperties": 1, "additionalProperties": TEXT}
    return {"oneOf": [closed({"sha256": SHA256, "text": TEXT}), closed({"sha256": SHA256, "files": files})]}


def maybe(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema, or null."""
    return {"anyOf": [schema, {"type": "null"}]}
