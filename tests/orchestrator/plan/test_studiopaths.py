"""The studio's paths: each can be another, none leads out or into another, and a plan means the same with any."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.importing import parse_export
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.plan import read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.studiopaths import STUDIO_PATHS, StudioPathsError, path_faults
from orchestrator.ports import Request
from orchestrator.process import CONTAINMENT

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
APPROVED = json.dumps({"status": "approved", "checklist": CHECKLIST})
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
SCHEMA = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object"}'
POLICY = "defaults: {primary: writer, reviewer: reviewer}\nstrategies: []\n"
STEPS = ("api", "code", "release-manager")
ELSEWHERE = {
    "state_path": "board/now.json",
    "page_path": "board/NOW.md",
    "policy_path": "rules/route.yml",
    "decisions_path": "docs/decisions",
    "contracts_path": "interfaces",
    "runs_path": "out/runs",
    "reviews_path": "out/reviews",
    "reports_path": "out/reports",
    "workspaces_path": "desk",
}


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step of low risk."""
    base = {"id": step_id, "role": "Writer", "task": f"write {step_id}", "risk_level": "low"}
    return {**base, "acceptance_criteria": ["it is written"], "depends_on": list(after), **fields}


def plan() -> dict[str, Any]:
    """A plan that makes a contract, tests something, reads the contract, and needs one that was there before."""
    return {
        "plan_id": "p",
        "goal": "write",
        "context_requirements": ["CONTRACTS/old.json"],
        "steps": [
            step("api", outputs=["CONTRACTS/new.json"], inputs=["CONTRACTS/old.json"]),
            step("code", "api", task_type="implementation", inputs=["CONTRACTS/new.json"], ambiguity=True),
        ],
    }


def test_a_plan_with_every_path_changed(tmp_path: Path) -> None:
    """State, page, policy, decisions, contracts, runs, reviews and reports lie where they are put, and nowhere else."""
    prompts: dict[str, str] = {}

    def writer(request: Request) -> str:
        prompts[request.run_id] = request.prompt
        return SCHEMA if ".api." in request.run_id else "code"

    studio = ContextBus(root=tmp_path / "studio", **ELSEWHERE)
    studio.files.write("interfaces/old.json", b'{"title": "the old one"}')
    studio.files.write("rules/route.yml", POLICY.encode())
    orchestrator = PlanOrchestrator(
        read_plan(plan(), "plan.json"),
        models={"writer": writer, "StrongReasoningModel": writer, "reviewer": lambda _: APPROVED},
        studio=studio,
        checks=[CommandCheck("qa", ("{python}", "-c", "print('1 passed')"), launcher=CONTAINMENT)],
    )
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    result = orchestrator.run()
    orchestrator_again = PlanOrchestrator(orchestrator.plan, studio=studio, journal=orchestrator.journal)
    found = {path.relative_to(studio.root).as_posix() for path in studio.root.rglob("*") if path.is_file()}
    assert (result.status, orchestrator_again.status().state) == ("completed", "completed")
    assert "the old one" in prompts["p.api.primary-1"]
    assert found == {
        "board/now.json", "board/now.previous.json", "board/NOW.md", "rules/route.yml", "interfaces/old.json",
        "interfaces/new.json", "out/runs/p/journal.json", "out/runs/p/trace.md", "out/runs/p/release_notes.md",
        "out/runs/p/rollout_plan.md", "out/runs/p/rollback_plan.md",
        "out/runs/p/step_api_artifacts/1/CONTRACTS/new.json", "out/reports/p/step_api_integration.1.1.json",
        "out/reports/p/step_api_integration.1.1.log", "out/reports/p/step_code_qa.1.1.json",
        "out/reports/p/step_code_qa.1.1.log",
        *(f"out/runs/p/step_{name}_output{end}" for name in STEPS for end in (".md", ".1.md")),
        *(f"out/reviews/p/step_{name}_review{end}" for name in STEPS for end in (".json", ".1.json")),
    }  # fmt: skip
    assert audit(parse_export((studio.root / "out/runs/p/journal.json").read_text())).is_clean
    assert studio.check_contracts().keys() == {"CONTRACTS/new.json", "CONTRACTS/old.json"}


def test_decisions_lie_where_they_are_put(tmp_path: Path) -> None:
    """An amendment's decision record is in the configured directory, and the state names it there."""
    studio = ContextBus(root=tmp_path, **ELSEWHERE)
    orchestrator = PlanOrchestrator(
        read_plan({**plan(), "context_requirements": ["CONTRACTS/old.json"]}, "plan.json"), studio=studio
    )
    orchestrator.review(YES, "Ada")
    orchestrator.amend(read_plan({**plan(), "goal": "write more"}, "plan.json"), "more is needed")
    paths = [entry.path for entry in studio.read_state().decisions]
    assert (paths, (tmp_path / paths[0]).is_file()) == (["docs/decisions/ADR-0001-amendment-1-of-plan-p.md"], True)


def test_agents_work_where_they_are_told(tmp_path: Path) -> None:
    """Their directories lie below the configured one; a place given to the orchestrator goes before it."""
    studio = ContextBus(root=tmp_path, workspaces_path="desk")
    orchestrator = PlanOrchestrator(read_plan(plan(), "plan.json"), studio=studio)
    other = PlanOrchestrator(read_plan(plan(), "plan.json"), studio=studio, workspaces=tmp_path / "x")
    assert (orchestrator.parts.room.workspaces, other.parts.room.workspaces) == (tmp_path / "desk", tmp_path / "x")


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"page": "STATE.md"}, {}),
        ({"reviews": "REVIEWS", "reports": "TESTS"}, {}),
        ({"state": "../state.json"}, {"state": "no path below the root"}),
        ({"runs": "/tmp/runs"}, {"runs": "no path below the root"}),
        ({"contracts": ""}, {"contracts": "no path below the root"}),
        ({"state": "STATE/state.txt"}, {"state": "name it with .json"}),
        ({"page": "STATE/STATE.html", "policy": "rules.txt"}, {"page": ".md", "policy": ".yaml or .yml"}),
        ({"decisions": "adr", "contracts": "ADR"}, {"contracts": "where decisions is"}),
        ({"workspaces": "RUNS"}, {"workspaces": "where runs is"}),
        ({"workspaces": "RUNS/work"}, {"workspaces": "above or below runs"}),
        ({"reviews": "RUNS/reviews"}, {"reviews": "above or below runs"}),
        ({"runs": "STATE"}, {"runs": "above or below state"}),
        ({"page": "ADR/STATE.md"}, {"page": "above or below decisions"}),
        ({"policy": "STATE/state.previous.json"}, {"policy": "where the state before is"}),
        ({"state": "a/../b.json", "page": "x", "runs": "~"}, {"state": "no path", "page": ".md", "runs": "no path"}),
    ],
)
def test_bounds(changes: dict[str, str], faults: dict[str, str]) -> None:
    """Every path stays below the root, has the form of its kind, and is in no other's way; all faults at once."""
    found = dict(path_faults({**STUDIO_PATHS, **changes}))
    assert {key: words in found[key] for key, words in faults.items()} == dict.fromkeys(found, True)
    if faults:
        with pytest.raises(StudioPathsError) as error:
            ContextBus(**{f"{key}_path": path for key, path in changes.items()})
        assert error.value.faults.keys() == {f"{key}_path" for key in faults}
