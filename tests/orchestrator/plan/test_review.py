"""Reviews: nothing is approved that contradicts itself, and no answer of a reviewer is believed as it stands."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from jsonschema import Draft202012Validator

from orchestrator.plan.review import Review, ReviewError, ReviewStatus, read_review
from orchestrator.plan.vocabulary import Risk
from orchestrator.schemas import schema

GOOD = {"correctness": True, "security": True, "tests_passed": True}
SECURE = {
    "inputs_validated": True, "access_controlled": True, "injection_prevented": True,
    "secrets_protected": True, "data_protected": True, "dependencies_checked": True,
}  # fmt: skip
APPROVED: dict[str, Any] = {"status": "approved", "checklist": GOOD}


def read(data: object, risk: Risk = Risk.LOW) -> Review:
    """The review that a reviewer's data is."""
    return read_review(json.dumps(data), step_id="build", risk=risk, run_id="r1")


def faults(data: object, risk: Risk = Risk.LOW) -> list[str]:
    """Why a reviewer's data is no review."""
    with pytest.raises(ReviewError) as caught:
        read(data, risk)
    return [str(fault) for fault in caught.value.faults]


def test_approval() -> None:
    """A review with everything in order is read, alone or as one fenced block, and written as it was."""
    text = json.dumps({**APPROVED, "step_id": "build", "checklist": {**GOOD, "performance": None}})
    plain = read_review(text, step_id="build", risk=Risk.LOW)
    fenced = read_review(f"```json\n{text}\n```\n", step_id="build", risk=Risk.LOW)
    assert plain == fenced == read(plain.as_json())
    assert plain.status is ReviewStatus.APPROVED
    assert Draft202012Validator(schema("review")).is_valid(plain.as_json())


@pytest.mark.parametrize("item", GOOD)
@pytest.mark.parametrize("status", ["approved", "approved_with_conditions"])
def test_no_approval_while_a_required_item_is_false(item: str, status: str) -> None:
    """An approval with correctness, security or tests_passed false is no review at all."""
    data = {"status": status, "checklist": {**GOOD, item: False}, "conditions": ["c"] * (status != "approved")}
    assert faults(data) == [f"$.checklist.{item}: is false, so the step cannot be {status}: request changes"]


def test_optional_items() -> None:
    """An item that is not required may be false under conditions, and not without."""
    checklist = {**GOOD, "performance": False}
    read({"status": "approved_with_conditions", "checklist": checklist, "conditions": ["Measure it."]})
    assert faults({"status": "approved", "checklist": checklist}) == [
        "$.checklist.performance: is false, so the step cannot be approved: request changes"
    ]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"status": "changes_requested"}, "$.required_fixes: is empty, but the status is changes_requested"),
        ({"status": "approved_with_conditions"}, "$.conditions: is empty, but the status is approved_with_conditions"),
        ({"status": "blocked"}, "$.diff_risk_notes: is empty, but the status is blocked"),
        ({"required_fixes": ["x"]}, "$.required_fixes: names fixes, but the status is approved"),
        ({"conditions": ["x"]}, "$.conditions: names conditions, but the status is approved"),
        ({"step_id": "other"}, "$.step_id: is of 'other' and not of 'build': review what was sent"),
        ({"run_id": "other"}, "$.run_id: is of 'other' and not of 'r1'"),
        ({"status": "aproved"}, "$.status: expected one of"),
        ({"decision": "go"}, "$.decision: unknown key"),
        ({"checklist": {"correctness": True}}, "$.checklist.security: required key is missing"),
        ({"checklist": {**GOOD, "security": "true"}}, "$.checklist.security: expected a boolean, found a string"),
        ({"required_fixes": [" "]}, "$.required_fixes: each of required_fixes must say something"),
        ({"diff_risk_notes": ["x"] * 101}, "$.diff_risk_notes: diff_risk_notes has 101 entries"),
        ({"review_id": "a\nb"}, "$.review_id: review_id is no id"),
    ],
)
def test_faults(data: dict[str, Any], said: str) -> None:
    """Each fault has one reason, at its place."""
    assert faults({**APPROVED, **data})[0].startswith(said)


@pytest.mark.parametrize("risk", [Risk.HIGH, Risk.CRITICAL])
def test_security_checklist(risk: Risk) -> None:
    """High and critical risk need the security checklist, all of it true for an approval."""
    assert faults(APPROVED, risk) == [f"$.security_checklist: required key is missing: the step has {risk} risk"]
    read({**APPROVED, "security_checklist": SECURE}, risk)
    assert faults({**APPROVED, "security_checklist": {**SECURE, "data_protected": False}}, risk) == [
        "$.security_checklist.data_protected: is false, so the step cannot be approved: request changes"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "", "approved", "[]", "null", '{"status": "approved", "status": "blocked"}', "x" * 300_000, "[" * 5_000,
        "Looks good!\n```json\n" + json.dumps(APPROVED) + "\n```",
        "```json\n" + json.dumps(APPROVED) + "\n```\n```json\n{}\n```", "```json\n" + json.dumps(APPROVED),
    ],
)  # fmt: skip
def test_no_review(text: str) -> None:
    """What is no single JSON object approves nothing."""
    with pytest.raises(ReviewError):
        read_review(text, step_id="build", risk=Risk.LOW)


@settings(deadline=None)
@given(
    some.fixed_dictionaries(
        {
            "status": some.sampled_from(ReviewStatus).map(str),
            "checklist": some.fixed_dictionaries(dict.fromkeys((*GOOD, "performance"), some.booleans())),
            "security_checklist": some.none() | some.fixed_dictionaries(dict.fromkeys(SECURE, some.booleans())),
            "required_fixes": some.lists(some.just("fix"), max_size=2),
            "conditions": some.lists(some.just("condition"), max_size=2),
        }
    ),
    some.sampled_from(Risk),
)
def test_an_approval_is_never_against_the_checklist(data: dict[str, Any], risk: Risk) -> None:
    """Whatever a reviewer answers, what is read as an approval has all that is required, and no open fixes."""
    try:
        review = read(data, risk)
    except ReviewError:
        return
    if review.status.is_approval:
        checklist = review.checklist
        assert checklist.correctness
        assert checklist.security
        assert checklist.tests_passed
        assert not review.required_fixes
        assert not risk.needs_security or data["security_checklist"] == SECURE
