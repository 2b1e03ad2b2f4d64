"""`orchestrator plan`: from the draft to the release, with exit statuses that say what came of it."""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.cli.appearance import console_on, marks_for
from orchestrator.cli.application import run_application
from orchestrator.cli.choices import ColorChoice
from orchestrator.cli.plans.screens import TableScreen
from orchestrator.cli.plans.studiofile import load_studio_file, made_orchestrator
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.plan.engine import BOUND
from orchestrator.plan.plan import load_plan, read_plan
from orchestrator_events.budget import Charge
from orchestrator_events.plan import StepFaltered
from orchestrator_events.record import Record

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
    assert "next: orchestrator plan amend plan.json --reason TEXT, once plan.json is changed" in out
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


def test_everybody_is_named(place: Path) -> None:
    """'agent attributions': each fact of the trace has somebody, and who locked and amended the plan is told."""
    for words in ("review plan.json --by Ada --approve", "lock plan.json --by Grace", "run plan.json --display quiet"):
        command(*words.split())
    (place / "plan.json").write_text(json.dumps(plan("Launch on Monday.")))
    assert command("amend", "plan.json", "--by", "Joan", "--reason", "Friday is a bad day") == 0
    assert command("abandon", "plan.json", "--by", "Mary", "--reason", "it is too late") == 0
    rows = (place / "studio/RUNS/p/trace.md").read_text().splitlines()[4:]
    told = [[cell.strip().strip("`") for cell in row.split("|")[3:5]] for row in rows]
    named = {fact: who for fact, who in told}  # noqa: C416 -- of lists, dict() says nothing
    assert [fact for fact, who in told if not who] == []
    assert [named[f"plan:{fact}"] for fact in ("reviewed", "locked", "started", "amended", "abandoned")] == [
        "Ada", "Grace", "orchestrator", "Joan", "Mary",
    ]  # fmt: skip


FAILING = """import sys
print("Traceback (most recent call last):", *["  a frame"] * 200, file=sys.stderr, sep="\\n")
sys.exit("OSError: no space left on device")
"""


def test_the_cause_of_an_error_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a long error its last line, which says what went wrong, is shown wherever the error is."""
    (place / "model.py").write_text(FAILING)
    locked()
    capsys.readouterr()
    assert command("run", "plan.json", "--display", "plain") == 8
    shown = capsys.readouterr()
    command("status", "plan.json")
    run_application(["show", "p.draft"])
    told = capsys.readouterr().out.splitlines()
    page = (place / "studio/STATE/STATE.md").read_text().splitlines()
    trace = (place / "studio/RUNS/p/trace.md").read_text().splitlines()
    lines = [*shown.out.splitlines(), *shown.err.splitlines(), *told, *page, *trace]
    failing = [line for line in lines if "ended with status 1" in line]
    assert len(failing) > 20
    assert [line for line in failing if "OSError: no space left on device" not in line] == []


def test_a_longer_note_of_a_block_is_shown(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A note of several lines is told whole where there is room for it."""
    text = (place / "model.py").read_text()
    (place / "model.py").write_text(text.replace("nobody is there on Friday", "red:\\n\\n  nobody is there"))
    locked()
    assert command("run", "plan.json", "--display", "quiet") == 8
    assert "the review blocked it: red: nobody is there" in capsys.readouterr().out


def test_where_a_waiting_plan_is(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 -- the files
    """`runs` and `show` count a plan's steps and a step's executions, and say that the plan waits."""
    locked()
    command("run", "plan.json", "--display", "quiet")
    capsys.readouterr()
    run_application(["runs"])
    told = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    begun = [line for line in told if line.startswith(("p plan", "p.draft step"))]
    assert [" ".join(line.split()[:7]) for line in begun] == [
        "p plan p waiting 1 of 2", "p.draft step p draft completed 1 execution",
    ]  # fmt: skip
    run_application(["show", "p.launch"])
    shown = [line.split("  ")[-1].strip() for line in capsys.readouterr().out.splitlines()]
    assert "Reviewer: blocked; nobody is there on Friday" in shown
    run_application(["show", "p"])
    assert "waiting, executing after 1 of 2 steps" in capsys.readouterr().out.splitlines()[-1]
    run_application(["runs", "--json"])
    data = {each["run"]: each for each in json.loads(capsys.readouterr().out)}
    assert (data["p"]["steps"], data["p"]["completed_steps"], data["p.launch"]["executions"]) == (2, 1, 1)


def test_a_limit_that_is_reached(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What comes next is to raise it: nothing else makes a resume go on."""
    (place / "studio.toml").write_text((place / "studio.toml").read_text() + "\n[budget]\nattempts = 1\n")
    locked()
    assert command("run", "plan.json", "--display", "quiet") == 3
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == "next: raise attempts in [budget] of studio.toml, then orchestrator plan resume plan.json"


def test_a_reviewer_that_is_asked_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An answer that is no review is asked for again; the line says why. A plan's reviews are counted by themselves."""
    text = (place / "model.py").read_text()
    second = 'request["run_id"].endswith("p.draft.review-1")'
    (place / "model.py").write_text(
        text.replace("    print(json.dumps(said))", f"    print('Fine.' if {second} else json.dumps(said))")
    )
    command("review", "plan.json", "--by", "Ada", "--change", "split it")
    assert command("review", "plan.json", "--display", "plain") == 2
    capsys.readouterr()
    assert (command("review", "plan.json"), "review 1: Reviewer as Plan Reviewer" in capsys.readouterr().err) == (
        0,
        True,
    )
    command("lock", "plan.json")
    assert command("run", "plan.json", "--display", "plain") == 8
    asked = [line.partition("draft: ")[2] for line in capsys.readouterr().err.splitlines() if "draft: review" in line]
    assert (asked[0], asked[1].partition(", again: ")[0]) == ("review 1: Reviewer as Reviewer",) * 2
    assert asked[1].endswith("review of step draft: line 1, column 1: Expecting value")


def test_a_report_for_people(place: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 -- the files
    """`export --format md` tells of a plan how it stands; texts of others stand in code spans."""
    locked()
    command("run", "plan.json", "--display", "quiet")
    capsys.readouterr()
    assert run_application(["export", "p", "--format", "md"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("# Plan `p`: executing\n\nThis is a plan result; not a verification for deployment.\n")
    assert [line for line in told.splitlines() if line.startswith("## ")] == [
        "## Steps", "## Open risks", "## Trace", "## Record",
    ]  # fmt: skip
    assert "- `launch`, low risk: `Launch on Friday.`\n  - blocked; 1 executions, 0 failures; by `Codex (GPT)`" in told


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
    with contextlib.suppress(SystemExit):
        command("graph", "--help")
    assert "svg" not in capsys.readouterr().out
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


def test_an_approval_that_nobody_is_there_to_give(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a terminal `plan check` says so, and `plan run` leaves the step to be asked about again."""
    policy = """version: 1
defaults: {primary: Claude, reviewer: Reviewer}
strategies:
  - name: careful
    conditions: {risk_level: low}
    primary_model: Claude
    review_requirements: [manual_approval]
"""
    (place / "policy.yaml").write_text(policy)
    edit(place, "release_manager", 'policy = "policy.yaml"\nrelease_manager')
    locked()
    capsys.readouterr()
    codes = [command("check", "plan.json"), command("run", "plan.json", "--display", "quiet")]
    out, told = capsys.readouterr()
    assert (codes, "nobody is there" in out, "nobody is there to approve" in told) == ([2, 8], True, True)
    assert command("status", "plan.json", "--json") == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert {each["id"]: each["state"] for each in steps} == {"draft": "verifying", "launch": "pending"}


def test_limits_that_are_left_out_are_the_plans_own(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`[budget]` changes what it names alone; one that could never end is refused."""
    text = (place / "studio.toml").read_text()
    found = []
    for budget in ("", "[budget]\ntime = 6\n", '[budget]\nattempts = 7\ntokens = "9k"\n'):
        (place / "studio.toml").write_text(f"{text}\n{budget}")
        made = made_orchestrator(load_studio_file(None), read_plan(plan(), "plan.json"), MemoryJournal())
        found.append(made.budget)
    assert found == [BOUND, attrs.evolve(BOUND, seconds=6), attrs.evolve(BOUND, attempts=7, tokens=9_000)]
    (place / "studio.toml").write_text(f'{text}\n[budget]\nattempts = "unlimited"\n')
    assert (command("check", "plan.json"), "[budget] a budget needs" in capsys.readouterr().err) == (2, True)


JUDGE = """import json, sys
status = "passed" if open("durations.md").read().strip() == "# Done" else "failed"
report = {"protocol": "orchestrator.report/1", "cases": [{"id": "is done", "status": status}]}
open(sys.argv[1], "w").write(json.dumps(report))
"""
SUITE = """
[suites.draft]
command = "{python} judge.py {report}"
report = "json"
report_file = "report.json"
suite = "suite"
candidate_file = "durations.md"
"""


def test_a_conformance_step_from_the_command_line(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`[suites.STEP]` is the eval suite of a step, described as a run's; what it lacks is told by `plan check`."""
    data = plan("Launch on Monday.")
    data["steps"][0]["executor"] = "conformance"
    (place / "plan.json").write_text(json.dumps(data))
    assert (command("check", "plan.json"), "without an eval suite" in capsys.readouterr().out) == (2, True)
    text = (place / "studio.toml").read_text()
    (place / "studio.toml").write_text(text + SUITE)
    assert (command("check", "plan.json"), "[suites.draft] the eval suite" in capsys.readouterr().err) == (2, True)
    (place / "suite").mkdir()
    (place / "suite/judge.py").write_text(JUDGE)
    (place / "studio.toml").write_text(text + SUITE + 'controls = ["a"]\n')
    assert (command("check", "plan.json"), "no pins and no controls" in capsys.readouterr().err) == (2, True)
    (place / "studio.toml").write_text(text + SUITE)
    locked()
    assert command("run", "plan.json", "--display", "quiet") == 0
    export = parse_export((place / "studio/RUNS/p/journal.json").read_text())
    assert audit(export).is_clean
    assert (place / "studio/RUNS/p/step_draft_output.md").read_text() == "# Done\n"


def test_a_step_is_tried_again(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--retry` begins a step anew once what blocked it is mended; what it refuses names the remedy."""
    model = (place / "model.py").read_text()
    (place / "model.py").write_text(model.replace("json.dumps(said)", "'no review'"))
    locked()
    assert command("run", "plan.json", "--display", "quiet") == 8
    (place / "model.py").write_text(model)
    capsys.readouterr()
    assert (command("resume", "plan.json", "--retry", "draft"), "needs a reason" in capsys.readouterr().err) == (
        2,
        True,
    )
    words = (
        "resume",
        "plan.json",
        "--retry",
        "draft",
        "--reason",
        "the reviewer answers JSON",
        "--by",
        "Ada",
        "--json",
    )
    assert command(*words) == 8
    states = {each["id"]: each["state"] for each in json.loads(capsys.readouterr().out)["steps"]}
    assert states == {"draft": "completed", "launch": "blocked"}
    assert (
        command("resume", "plan.json", "--retry", "launch", "--reason", "x"),
        "amend the plan" in capsys.readouterr().err,
    ) == (2, True)


def test_the_table_of_steps(place: Path) -> None:
    """The table that is redrawn in place tells, too, what went wrong last of all."""
    record = Record("p.draft", 9, 0, "step", "executing", "fixing", StepFaltered(
        step="draft", charge=Charge(), error="ended with status 1:\n" + "  a frame\n" * 200 + "OSError: no space",
    ))  # fmt: skip
    screen = TableScreen(
        console_on(sys.stderr, ColorChoice.NEVER), marks_for(sys.stderr), load_plan(place / "plan.json")
    )
    screen.show(record)
    screen.close()
    lines = [screen.line(name).plain.split(maxsplit=2) for name in ("draft", "launch")]
    assert [words[:2] for words in lines] == [["draft", "fixing"], ["launch", "pending"]]
    assert lines[0][2].startswith("no output: ended with status 1: ")
    assert lines[0][2].endswith(" OSError: no space")
