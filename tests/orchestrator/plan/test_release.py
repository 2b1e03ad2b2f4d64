"""Releases: three documents, and no rollout without a way back."""

from __future__ import annotations

import attrs

from orchestrator.plan.gates import Gate, GateResult
from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.release import StepOutcome, prepare_release
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.vocabulary import Risk, TaskType

PLAN = Plan(
    plan_id="p",
    goal="Users can sign in.",
    steps=(
        Step(id="design", role="Architect", task="Design it.", acceptance_criteria=("c",), risk_level=Risk.LOW,
             task_type=TaskType.PLANNING),
        Step(id="table", role="Implementer", task="Make the table.", acceptance_criteria=("It is there.",),
             risk_level=Risk.LOW, depends_on=("design",), rollback_plan="Drop the table."),
        Step(id="page", role="Implementer", task="Make the page.", acceptance_criteria=("It loads.",),
             risk_level=Risk.MEDIUM, depends_on=("table",), test_plan=("pytest tests/page",),
             rollback_plan="Switch the flag off."),
    ),
)  # fmt: skip
CHECKED = Checklist(correctness=True, security=True, tests_passed=True)
APPROVED = Review(status=ReviewStatus.APPROVED, checklist=CHECKED)
OPEN = GateResult(gate=Gate(ReviewKind.QA, "the step has a test plan"), is_open=True, reason="captured: pytest")
OUTCOMES = (
    StepOutcome(step_id="design", is_completed=True, model="Claude", review=APPROVED),
    StepOutcome(
        step_id="table", is_completed=True, model="GLM", review=APPROVED, output_path="RUNS/r/step_table_output.md"
    ),
    StepOutcome(
        step_id="page",
        is_completed=True,
        model="GLM",
        attempts=2,
        review=Review(
            status=ReviewStatus.APPROVED_WITH_CONDITIONS,
            checklist=CHECKED,
            conditions=("Measure it. <img src=x>",),
            diff_risk_notes=("Slow on phones.",),
        ),
        gates=(OPEN,),
        met_by="page-followup",
    ),
)
NOTES = f"""# Release notes: `Users can sign in.`

Plan p, {PLAN.digest}.

## Changes

- design: `Design it.`, by `Claude`, attempt 1, approved
- table: `Make the table.`, by `GLM`, attempt 1, approved
- page: `Make the page.`, by `GLM`, attempt 2, approved, with conditions

## Conditions of approval that were met

- page, by page-followup: `Measure it. <img src=x>`

## Conditions of approval, to be followed up

None.

## Risks that reviewers noted

- page: `Slow on phones.`

## Evidence

- page: qa open, `captured: pytest`
"""
ROLLOUT = """# Rollout plan

Roll out in this order; do not begin a group before the one above it is confirmed.

## Group 1

- table (low risk): `Make the table.`, `RUNS/r/step_table_output.md`
  - confirm: `It is there.`

## Group 2

- page (medium risk): `Make the page.`
  - confirm: `pytest tests/page`
  - confirm: `It loads.`
"""
ROLLBACK = """# Rollback plan

## When

- Roll back at once: data is damaged or exposed, or the service is down.
- Roll back within the hour: error rate above 5 %, or 95th percentile of response times above 2 s.
- Decide: any other fault that reaches users; write down who decided.

## How, in this order

1. page: `Switch the flag off.`
2. table: `Drop the table.`
"""


def test_golden() -> None:
    """The documents of a plan that is done, the rollback in the contrary order."""
    release = prepare_release(PLAN, OUTCOMES)
    assert (release.is_ready, release.missing) == (True, ())
    assert (release.notes, release.rollout, release.rollback) == (NOTES, ROLLOUT, ROLLBACK)


def test_no_rollout_without_rollback() -> None:
    """A step without a rollback plan holds the whole rollout, and both documents say so."""
    bare = attrs.evolve(PLAN, steps=(*PLAN.steps[:2], attrs.evolve(PLAN.steps[2], rollback_plan=" ")))
    release = prepare_release(bare, OUTCOMES)
    assert release.missing == ("step page has no rollback plan",)
    assert release.rollout == (
        "# Rollout plan\n\n**Not ready: do not roll out.** Missing:\n\n- `step page has no rollback plan`\n"
    )
    assert "1. page: **missing: write one before anything is rolled out**" in release.rollback


def test_all_that_is_missing() -> None:
    """Steps that are not done, reviewed or looked at are missing as well."""
    refused = Review(status=ReviewStatus.CHANGES_REQUESTED, checklist=CHECKED, required_fixes=("Fix.",))
    outcomes = (attrs.evolve(OUTCOMES[1], review=refused), attrs.evolve(OUTCOMES[2], gates=()))
    assert prepare_release(PLAN, outcomes).missing == (
        "step design is not completed",
        "step table has no approving review",
        "step page: the qa gate was never looked at, and the step has a test plan",
    )
    closed = attrs.evolve(OPEN, is_open=False, reason="pytest ended with exit status 1")
    assert prepare_release(PLAN, (*OUTCOMES[:2], attrs.evolve(OUTCOMES[2], gates=(closed,)))).missing == (
        "step page: the qa gate is closed, pytest ended with exit status 1",
    )


def test_a_condition_that_nobody_met_holds_the_rollout() -> None:
    """What a follow-up step has not met is to be followed up, and nothing is rolled out before."""
    release = prepare_release(PLAN, (*OUTCOMES[:2], attrs.evolve(OUTCOMES[2], met_by="")))
    assert release.missing == ("step page was approved on a condition that is not met: Measure it. <img src=x>",)
    told = release.notes.partition("## Conditions of approval that were met\n\n")[2].partition("\n\n## Risks")[0]
    assert told == "None.\n\n## Conditions of approval, to be followed up\n\n- page: `Measure it. <img src=x>`"
