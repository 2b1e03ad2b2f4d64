"""Which forms have a schema, and how to get it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from orchestrator.faults import closest_name
from orchestrator_events.errors import OrchestratorError

__all__ = ["KINDS", "UnknownKindError", "schema", "schema_text"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

KINDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "spec": "a merged spec, as a file",
        "config": "the configuration of a run, as a file",
        "export": "an exported run as one document (orchestrator.export/1)",
        "line": "one line of an exported run as JSON lines (orchestrator.export/1)",
        "record": "one record of a run, with every event by its name",
        "result": "how a run ended: result.json and --json",
        "lockfile": "the outcomes of several generators (orchestrator.lock/1)",
        "report": "what an eval runner may write (orchestrator.report/1)",
        "request": "what a generating program reads (orchestrator.request/1)",
        "answer": "what a generating program may answer as JSON",
        "plan": "a plan of steps, as a file",
        "review": "what a reviewer of a plan's step answers",
    }
)
"""Every kind of schema, and what it is of."""

FILES = "orchestrator.schemas.files"
RECORDS = "orchestrator.schemas.records"
PLANS = "orchestrator.plan.schema"
PLACES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "spec": f"{FILES}:spec_schema",
        "config": f"{FILES}:config_schema",
        "lockfile": f"{FILES}:lockfile_schema",
        "report": f"{FILES}:report_schema",
        "request": f"{FILES}:request_schema",
        "answer": f"{FILES}:answer_schema",
        "plan": f"{PLANS}:plan_schema",
        "review": f"{PLANS}:review_schema",
        "export": f"{RECORDS}:export_schema",
        "line": f"{RECORDS}:line_schema",
        "record": f"{RECORDS}:record_schema",
        "result": "orchestrator.schemas.results:result_schema",
    }
)


class UnknownKindError(OrchestratorError):
    """There is no schema of this kind; `near` is the one that was probably meant, or empty."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.near = closest_name(kind, KINDS)
        remedy = f"did you mean {self.near!r}?" if self.near else f"there are: {', '.join(KINDS)}"
        super().__init__(f"no schema is called {kind!r}: {remedy}")


def schema(kind: str) -> dict[str, Any]:
    """The schema of a kind as plain data; raises UnknownKindError.

    A schema says what shape a document has. Rules that join several values (sums, digests, names that must
    differ) are for the reader of the form, so a document of this shape may still be refused.
    """
    if kind not in KINDS:
        raise UnknownKindError(kind)
    module, _, function = PLACES[kind].partition(":")
    make: Callable[[], dict[str, Any]] = getattr(import_module(module), function)
    return {"$schema": DIALECT, "$id": f"urn:orchestrator:schema:{kind}", "title": KINDS[kind], **make()}


def schema_text(kind: str) -> str:
    """The schema as indented JSON with a final newline; raises as `schema` does."""
    return json.dumps(schema(kind), indent=2) + "\n"
