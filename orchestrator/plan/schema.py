"""JSON Schemas of plans and reviews."""

from __future__ import annotations

from typing import Any, Final

from orchestrator.plan.plan import Plan
from orchestrator.plan.review import Review
from orchestrator.schemas.files import written

__all__ = ["plan_schema", "review_schema"]

COUNTS: Final = {"steps": 1, "acceptance_criteria": 1, "acceptance-criteria": 1}


def plan_schema() -> dict[str, Any]:
    """A plan; the rules between its steps are for the reader."""
    found = written(Plan)
    for table in (found, found["$defs"]["Step"]):
        for name, count in COUNTS.items():
            if name in table["properties"]:
                table["properties"][name] = {**table["properties"][name], "minItems": count}
    return found


def review_schema() -> dict[str, Any]:
    """A review; what contradicts itself is for the reader to refuse."""
    return written(Review)
