"""`orchestrator plan`: from the draft to the release, with exit statuses that say what came of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.cli.application import run_application
from orchestrator.importing import parse_export

MODEL = """import json, sys
request = json.load(sys.stdin)
if ".review-" in request["run_id"] or request["run_id"].endswith("plan-review-1"):
    said = {"status": "approved", "checklist": {"correctness": True, "security": True, "tests_passed": True}}
    if ".launch." in request["run_id"] and "Launch on Friday" in request["prompt"]:
        said |= {"status": "blocked", "diff_risk_notes": ["nobody is there on Friday"]}
    print(json.dumps(said))
else:
    print("# Done")
"""
STUDIO = """plan_reviewer = "Reviewer"
release_manager = false
sandbox = {{ backend = "containment" }}

[models."Codex (GPT)"]
command = ["{python}", "model.py"]
input = "json"

[models.Claude]
command = ["{python}", "model.py"]
input = "json"

[models.StrongReasoningModel]
command = ["{python}", "model.py"]
input = "json"

[models.Reviewer]
command = ["{python}", "model.py"]
input = "json"
"""


def plan(task: str = "Launch on Friday.") -> dict[str, Any]:
    """A plan of two steps."""
    base = {"role": "Planner", "task_type": "planning", "risk_level": "low", "acceptance_criteria": ["it is done"]}
    steps = [{"id": "draft", "task": "Draft.", **base}, {"id": "launch", "task": task, "depends_on": ["draft"], **base}]
    return {"plan_id": "p", "goal": "Launch.", "steps": steps}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with a plan and a studio's configuration."""
    import sys

    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(MODEL)
    (tmp_path / "studio.toml").write_text(STUDIO.format(python=sys.executable))
    (tmp_path / "plan.json").write_text(json.dumps(plan()))
    return tmp_path


def command(*words: str) -> int:
    """The status of `orchestrator plan` with these arguments."""
    return run_application(["plan", *words])


def test_from_draft_to_release(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each command leads to the next; a blocked review makes the plan wait for an amendment."""
    codes = [command(*words.split()) for words in ("check plan.json", "review plan.json", "lock plan.json")]
    codes.append(command("run", "plan.json", "--display", "plain"))
    out, progress = capsys.readouterr()
    assert codes == [0, 0, 0, 8]
    assert "next: orchestrator plan amend" in out
    assert "launch: blocked: the review blocked it: nobody is there on Friday" in progress
    (place / "plan.json").write_text(json.dumps(plan("Launch on Monday.")))
    codes = [
        command("amend", "plan.json", "--reason", "Friday is a bad day"),
        command("review", "plan.json", "--by", "Ada", "--approve"),
        command("lock", "plan.json"),
        command("resume", "plan.json", "--display", "quiet", "--json"),
    ]
    told = capsys.readouterr().out
    report = json.loads(told[told.rindex('{\n  "kind"') :])
    assert codes == [0, 0, 0, 0]
    assert (report["status"], {each["id"]: each["state"] for each in report["steps"]}) == (
        "completed",
        {"draft": "completed", "launch": "completed"},
    )
    export = parse_export((place / "studio/RUNS/p/journal.json").read_text())
    assert audit(export, head=report["journal_head"]["digest"]).is_clean


def test_commands_out_of_order(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`plan run` takes locked plans only; the refusal names the next command, and a locked plan cannot be changed."""
    assert (command("run", "plan.json"), "`plan review` comes next" in capsys.readouterr().err) == (7, True)
    assert command("review", "plan.json", "--by", "Ada", "--change", "split the launch") == 8
    assert command("review", "plan.json", "--by", "Ada", "--approve") == 0
    assert (command("run", "plan.json"), "`plan lock` comes next" in capsys.readouterr().err) == (7, True)
    assert command("lock", "plan.json") == 0
    (place / "plan.json").write_text(json.dumps(plan("Launch now.")))
    assert (command("run", "plan.json"), "plan amend" in capsys.readouterr().err) == (7, True)


def test_check_tells_everything_at_once(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Models that are not mapped and artifacts that are not there, and faults of the plan itself with their places."""
    (place / "studio.toml").write_text("")
    (place / "plan.json").write_text(json.dumps({**plan(), "context_requirements": ["CONTEXT/a.md"]}))
    assert command("check", "plan.json", "--json") == 2
    faults = json.loads(capsys.readouterr().out)["faults"]
    assert [fault.split(",")[0] for fault in faults] == [
        "the model 'Codex (GPT)'", "the model 'Reviewer'", "the model 'StrongReasoningModel'",
        "the artifact CONTEXT/a.md is missing: no such file",
    ]  # fmt: skip
    (place / "plan.json").write_text('{"plan_id": "p", "goal": "g", "steps": [{"id": "a", "depends_on": ["b"]}]}')
    assert (command("check", "plan.json"), "$.steps[0].task" in capsys.readouterr().err) == (2, True)


def test_status_and_graph(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 -- the files
    """What comes next, and what depends on what, in words and for drawing programs."""
    command("review", "plan.json")
    capsys.readouterr()
    assert (command("status", "plan.json"), "plan p: reviewed" in capsys.readouterr().out) == (0, True)
    assert command("graph", "plan.json", "--format", "mermaid") == 0
    assert capsys.readouterr().out.splitlines() == [
        "flowchart TD", '    s0["draft<br/>pending"]', '    s1["launch<br/>pending"]', "    s0 --> s1",
    ]  # fmt: skip
    command("graph", "plan.json")
    assert capsys.readouterr().out.splitlines()[-1] == "   launch  low risk  pending  after draft"
