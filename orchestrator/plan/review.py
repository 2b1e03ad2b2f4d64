"""Reviews: what a reviewer decided about a step, read from its answer without trusting a word of it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final

import attrs

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.fences import fenced_blocks
from orchestrator.plan.dumping import as_json
from orchestrator.plan.errors import ReviewError
from orchestrator.plan.vocabulary import Risk
from orchestrator.structuring import structure

__all__ = [
    "LONGEST_REVIEW",
    "Checklist",
    "Review",
    "ReviewError",
    "ReviewStatus",
    "SecurityChecklist",
    "read_review",
    "review_faults",
]

LONGEST_REVIEW: Final = 200_000
"""Longest answer that is read, characters."""
MOST_ENTRIES: Final = 100
LONGEST_ENTRY: Final = 4_000
FENCES: Final = 2
"""Lines of a fenced block beside its text."""


class ReviewStatus(StrEnum):
    """What a reviewer decided."""

    APPROVED = "approved"
    APPROVED_WITH_CONDITIONS = "approved_with_conditions"
    CHANGES_REQUESTED = "changes_requested"
    BLOCKED = "blocked"

    @property
    def is_approval(self) -> bool:
        """Whether the step is completed by it."""
        return self in (ReviewStatus.APPROVED, ReviewStatus.APPROVED_WITH_CONDITIONS)


@attrs.frozen(kw_only=True)
class Checklist:
    """What a reviewer looked at; null means that it does not apply."""

    correctness: bool
    security: bool
    tests_passed: bool
    performance: bool | None = None
    api_compatibility: bool | None = None
    observability: bool | None = None
    migration_safety: bool | None = None
    ux_consistency: bool | None = None


REQUIRED: Final = ("correctness", "security", "tests_passed")


@attrs.frozen(kw_only=True)
class SecurityChecklist:
    """What a reviewer must have looked at on high and critical risk (contract 5)."""

    inputs_validated: bool
    access_controlled: bool
    injection_prevented: bool
    secrets_protected: bool
    data_protected: bool
    dependencies_checked: bool


def short_texts(_instance: object, attribute: attrs.Attribute[Any], values: tuple[str, ...]) -> None:
    """Refuse lists that are endless, or have empty or endless entries."""
    if len(values) > MOST_ENTRIES:
        raise ValueError(f"{attribute.name} has {len(values)} entries: at most {MOST_ENTRIES} are taken")
    if any(not value.strip() or len(value) > LONGEST_ENTRY for value in values):
        raise ValueError(f"each of {attribute.name} must say something in at most {LONGEST_ENTRY} characters")


def texts() -> Any:
    """A field of short texts."""
    return attrs.field(default=(), validator=short_texts)


def word(_instance: object, attribute: attrs.Attribute[Any], value: str) -> None:
    """Refuse an id that is no word."""
    if len(value) > MOST_ENTRIES or not value.isprintable():
        raise ValueError(f"{attribute.name} is no id: at most {MOST_ENTRIES} printable characters")


@attrs.frozen(kw_only=True)
class Review:
    """A reviewer's decision; making one raises ReviewError where it contradicts itself.

    Nothing is approved while an item of the checklist is false, except with conditions an item that is not
    required; conditions and changes must be named, and a blocked step must say why.
    """

    status: ReviewStatus
    checklist: Checklist
    security_checklist: SecurityChecklist | None = None
    required_fixes: tuple[str, ...] = texts()
    conditions: tuple[str, ...] = texts()
    diff_risk_notes: tuple[str, ...] = texts()
    review_id: str = attrs.field(default="", validator=word)
    step_id: str = attrs.field(default="", validator=word)
    run_id: str = attrs.field(default="", validator=word)

    def __attrs_post_init__(self) -> None:
        faults = tuple(contradictions(self))
        if faults:
            raise ReviewError("review", faults)

    def as_json(self) -> dict[str, Any]:
        """The review as JSON data, which reads as an equal one."""
        return as_json(self)


def read_review(text: str, *, step_id: str, risk: Risk, run_id: str = "") -> Review:
    """The review in a reviewer's answer: one JSON object, alone or in one fenced block with nothing around it.

    Raises ReviewError with every fault: unknown keys, values of another type, contradictions, another step's or
    run's id, no security checklist on high or critical risk.
    """
    source = f"review of step {step_id}"
    if len(text) > LONGEST_REVIEW:
        raise ReviewError(source, (Fault("", f"longer than {LONGEST_REVIEW} characters: answer with the JSON alone"),))
    try:
        review = structure(parse_document(bare(text), ".json", source), Review, source)
    except DocumentError as error:
        raise ReviewError(source, error.faults[:MOST_ENTRIES]) from None
    faults = tuple(review_faults(review, step_id=step_id, risk=risk, run_id=run_id))
    if faults:
        raise ReviewError(source, faults)
    return review


def review_faults(review: Review, *, step_id: str, risk: Risk, run_id: str = "") -> Iterator[Fault]:
    """Why a review is none of this step; empty when it is."""
    for name, expected in (("step_id", step_id), ("run_id", run_id)):
        found = getattr(review, name)
        if found and expected and found != expected:
            yield Fault(f"$.{name}", f"is of {found!a:.120} and not of {expected!a}: review what was sent")
    if risk.needs_security and review.security_checklist is None:
        yield Fault("$.security_checklist", f"required key is missing: the step has {risk} risk")


def contradictions(review: Review) -> Iterator[Fault]:
    """In what a review contradicts itself."""
    status = review.status
    if status.is_approval:
        for path, name in false_items(review):
            is_optional = path == "$.checklist" and name not in REQUIRED
            if status is ReviewStatus.APPROVED or not is_optional:
                yield Fault(step(path, name), f"is false, so the step cannot be {status}: request changes")
    needed = {
        ReviewStatus.APPROVED_WITH_CONDITIONS: ("conditions", review.conditions),
        ReviewStatus.CHANGES_REQUESTED: ("required_fixes", review.required_fixes),
        ReviewStatus.BLOCKED: ("diff_risk_notes", review.diff_risk_notes or review.required_fixes),
    }
    name, given = needed.get(status, ("", ("none needed",)))
    if not given:
        yield Fault(f"$.{name}", f"is empty, but the status is {status}: name at least one")
    if status.is_approval and review.required_fixes:
        yield Fault("$.required_fixes", f"names fixes, but the status is {status}: request changes")
    if status is ReviewStatus.APPROVED and review.conditions:
        yield Fault("$.conditions", "names conditions, but the status is approved: use approved_with_conditions")


def false_items(review: Review) -> Iterator[tuple[str, str]]:
    """The items that are false, with the path of their table."""
    for path, table in (("$.checklist", review.checklist), ("$.security_checklist", review.security_checklist)):
        if table is not None:
            yield from (
                (path, field.name) for field in attrs.fields(type(table)) if getattr(table, field.name) is False
            )


def bare(text: str) -> str:
    """The JSON in an answer: what stands in its only fenced block when nothing is around it, else the answer."""
    stripped = text.strip()
    blocks = fenced_blocks(stripped)
    if len(blocks) != 1 or not blocks[0].is_closed or not stripped.startswith(("```", "~~~")):
        return stripped
    is_all = len(stripped.splitlines()) == len(blocks[0].text.splitlines()) + FENCES
    return blocks[0].text if is_all and blocks[0].info.lower() in ("", "json") else stripped
