"""JSON Schemas of plans and reviews."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from orchestrator.plan.plan import Plan
from orchestrator.plan.review import Review
from orchestrator.plan.vocabulary import ARTIFACT_PATTERN, IDENTIFIER_PATTERN, LONGEST_ARTIFACT
from orchestrator.schemas.files import written

__all__ = ["plan_schema", "review_schema"]

WORDS: Final = {"pattern": r"\S"}
"""A text that says something."""
ID: Final = {"pattern": IDENTIFIER_PATTERN}
ARTIFACT: Final = {"pattern": ARTIFACT_PATTERN, "maxLength": LONGEST_ARTIFACT}
RULES: Final[Mapping[str, dict[str, Any]]] = {
    "plan_id": ID,
    "id": ID,
    "goal": WORDS,
    "role": WORDS,
    "task": WORDS,
    "steps": {"minItems": 1},
    "acceptance_criteria": {"minItems": 1, "items": WORDS},
    "depends_on": {"uniqueItems": True, "items": ID},
    "outputs": {"items": ARTIFACT},
    "context_requirements": {"items": ARTIFACT},
}
"""What each key asks for beside its type."""


def plan_schema() -> dict[str, Any]:
    """A plan; the rules between its steps are for the reader."""
    found = written(Plan)
    for table in (found, found["$defs"]["Step"]):
        for key, schema in table["properties"].items():
            table["properties"][key] = ruled(schema, RULES.get(key.replace("-", "_"), {}))
    return found


def ruled(schema: dict[str, Any], rules: dict[str, Any]) -> dict[str, Any]:
    """A schema with what else is asked for, of its items too."""
    items = {"items": {**schema["items"], **rules["items"]}} if "items" in rules else {}
    return {**schema, **rules, **items}


def review_schema() -> dict[str, Any]:
    """A review; what contradicts itself is for the reader to refuse."""
    return written(Review)
