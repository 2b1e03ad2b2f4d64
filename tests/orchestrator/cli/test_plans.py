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


def locked() -> None:
    """Have the plan reviewed and locked."""
    assert [command("review", "plan.json", "--by", "Ada", "--approve"), command("lock", "plan.json")] == [0, 0]


def test_a_studio_with_every_path_changed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`[paths]` puts everything elsewhere; what is wrong with it is told at once, each with its place."""
    paths = {
        "state": "board/now.json", "page": "NOW.md", "policy": "rules.yaml", "decisions": "decided",
        "contracts": "interfaces", "runs": "out", "reviews": "said", "reports": "tests", "workspaces": "desks",
    }  # fmt: skip
    table = "\n".join(f'{key} = "{path}"' for key, path in paths.items())
    text = (place / "studio.toml").read_text()
    (place / "studio.toml").write_text(f"{text}\n[paths]\n{table}\n")
    locked()
    assert command("run", "plan.json", "--display", "quiet") == 8
    found = {path.relative_to(place / "studio").parts[0] for path in (place / "studio").rglob("*")}
    assert found == {"NOW.md", "board", "out", "said"}
    wrong = table.replace("NOW.md", "../NOW.md").replace("decided", "out").replace("desks", "out/desks")
    (place / "studio.toml").write_text(f"{text}\n[paths]\n{wrong}\nrun = 'x'\n")
    capsys.readouterr()
    assert command("check", "plan.json") == 2
    told = capsys.readouterr().err.splitlines()
    assert [line.partition("$.")[2].partition(":")[0] for line in told] == [
        "paths.run", "paths.page", "paths.runs", "paths.workspaces",
    ]  # fmt: skip
    assert "did you mean 'runs'?" in told[0]


def test_secrets_of_the_configuration(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`secrets` names variables: one that is not set is told, and no value stands in what is shown or kept."""
    model = place / "model.py"
    model.write_text(model.read_text().replace("nobody is there on Friday", "nobody has sk-0123456789"))
    (place / "studio.toml").write_text('secrets = ["MY_KEY"]\n' + (place / "studio.toml").read_text())
    monkeypatch.delenv("MY_KEY", raising=False)
    assert (command("check", "plan.json"), "MY_KEY, which is not set" in capsys.readouterr().err) == (2, True)
    monkeypatch.setenv("MY_KEY", "sk-0123456789")
    locked()
    assert command("run", "plan.json", "--display", "plain") == 8
    command("status", "plan.json", "--json")
    told = capsys.readouterr()
    files = [path.read_bytes() for folder in ("studio", "runs") for path in (place / folder).rglob("*.*")]
    assert ("sk-01234" in told.out + told.err, any(b"sk-01234" in data for data in files)) == (False, False)
    assert "nobody has [redacted MY_KEY]" in told.err
    monkeypatch.setenv("MY_KEY", "Launch on Friday.")
    assert (command("resume", "plan.json"), "holds the secret 'MY_KEY'" in capsys.readouterr().err) == (2, True)


def edit(place: Path, old: str, new: str) -> None:
    """Change the studio's configuration."""
    text = (place / "studio.toml").read_text()
    assert old in text
    (place / "studio.toml").write_text(text.replace(old, new))


def a_file_for_the_studio(place: Path) -> None:
    """The studio is a file."""
    (place / "file").write_text("")
    edit(place, "release_manager", 'studio = "file"\nrelease_manager')


def a_check_that_is_not_there(place: Path) -> None:
    """The step is tested by a program that nobody has."""
    edit(place, "{python} -c print(1)", "/nowhere/program")


def a_damaged_state(place: Path) -> None:
    """Somebody wrote into state.json."""
    (place / "studio/STATE").mkdir(parents=True)
    (place / "studio/STATE/state.json").write_text("{")


def more_isolation(place: Path) -> None:
    """More is required than containment gives."""
    edit(place, "release_manager", 'require_isolation = "strong"\nrelease_manager')


def a_model_that_is_not_there(place: Path) -> None:
    """A model's program is gone."""
    edit(place, "Claude]\ncommand = [", 'Claude]\ncommand = ["/nowhere/program", ')


@pytest.mark.parametrize(
    ("prepare", "words", "code", "told"),
    [
        (lambda _: None, "status plan.json", 2, "begin with orchestrator plan review plan.json"),
        (lambda _: None, "check nothing.json", 2, "nothing.json: no such file"),
        (lambda _: None, "run plan.json --config nothing.toml", 2, "nothing.toml: no such file"),
        (lambda _: None, "review plan.json --approve", 2, "--by NAME"),
        (lambda _: None, "amend plan.json --reason x", 7, "`plan review` comes next"),
        (lambda place: (place / "runs").write_text(""), "lock plan.json", 2, "name a directory that can be written"),
        (a_file_for_the_studio, "review plan.json --by Ada --approve", 2, "file/POLICIES/routing_policy.yaml: cannot"),
        (a_damaged_state, "review plan.json --by Ada --approve", 2, "remove it: it is written anew"),
    ],
)
def test_refusals_name_the_place_and_the_remedy(
    place: Path, capsys: pytest.CaptureFixture[str], prepare: Any, words: str, code: int, told: str
) -> None:
    """Each has its status, nothing of the plan is recorded, and the message says where and what to do."""
    prepare(place)
    assert (command(*words.split()), told in capsys.readouterr().err) == (code, True)
    assert (place / "studio/RUNS").exists() is False


@pytest.mark.parametrize(
    ("prepare", "code", "told"),
    [
        (a_check_that_is_not_there, 5, "qa check of step draft cannot be run"),
        (more_isolation, 9, "isolation strong is required"),
        (a_model_that_is_not_there, 4, "/nowhere/program"),
    ],
)
def test_what_keeps_a_plan_from_being_executed(
    place: Path, capsys: pytest.CaptureFixture[str], prepare: Any, code: int, told: str
) -> None:
    """A check, a sandbox and a model that are not there have statuses of their own; then the plan goes on."""
    data = plan()
    data["steps"][0]["test_plan"] = ["test it"]
    (place / "plan.json").write_text(json.dumps(data))
    checks = '\n[[checks]]\nkind = "qa"\ncommand = "{python} -c print(1)"\n'
    original = (place / "studio.toml").read_text() + checks
    (place / "studio.toml").write_text(original)
    locked()
    prepare(place)
    assert (command("run", "plan.json", "--display", "quiet"), told in capsys.readouterr().err) == (code, True)
    (place / "studio.toml").write_text(original)
    assert command("run", "plan.json", "--display", "quiet") == 8


def test_a_review_that_asks_for_changes_and_another_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What the review asks for is shown, and that the file is another plan than the recorded one."""
    command("review", "plan.json", "--by", "Ada", "--change", "split the launch")
    assert capsys.readouterr().out.splitlines()[1:3] == ["Ada: changes requested", "  split the launch"]
    locked()
    (place / "plan.json").write_text(json.dumps(plan("Launch now.")))
    assert (command("status", "plan.json"), "plan.json has another plan" in capsys.readouterr().err) == (0, True)
