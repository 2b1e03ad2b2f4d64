"""Workflows in the commands that every run has, and what their phases printed, counted and learned."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("bread")


def run(workbench: Any, *arguments: str) -> Any:
    """A workflow of the domain."""
    return workbench("workflow", "run", "bread", *arguments)


def test_a_workflow_is_found_by_its_id(workbench: Any) -> None:
    """`show`, `export`, `audit`, `replay` and `graph` take a workflow's id as they take a run's."""
    run(workbench)
    run(workbench, "--param", "id=roll")
    for command in ("show", "export", "audit", "replay", "graph"):
        by_id = workbench(command, "loaf")
        assert by_id.code == 0
        assert by_id.out != workbench(command, "roll").out
    assert workbench("export", "roll").out == workbench("export", "last").out
    assert workbench("export", "bun").code == 2


def test_an_id_that_begins_like_a_run(workbench: Any) -> None:
    """A workflow's whole id comes before the beginning of another run's, and after a run's whole one."""
    first = json.loads(run(workbench, "--json").out)["run"]
    run(workbench, "--param", f"id={first[0]}")
    run(workbench, "--param", f"id={first}")
    named, whole = (
        json.loads(workbench("export", name).out)["records"][0]["body"]["run"] for name in (first[0], first)
    )
    assert (named == first, whole == first) == (False, True)


def test_runs_tell_workflows_apart(workbench: Any) -> None:
    """The list of runs names a workflow's id and its domain, in words and as data."""
    run(workbench)
    run(workbench, "--param", "id=roll")
    listed = [line.split()[1:4] for line in workbench("runs").out.splitlines()]
    assert listed == [["loaf", "bread", "done"], ["roll", "bread", "done"]]
    data = json.loads(workbench("runs", "--json").out)
    assert [(each["workflow"], each["domain"]) for each in data] == [("loaf", "bread"), ("roll", "bread")]


def test_resume_names_the_command_for_a_workflow(workbench: Any) -> None:
    """`resume` of what is no conformance run says which command goes on with it: status 2."""
    Path("error").write_text("no fire")
    run_id = json.loads(run(workbench, "--json").out)["run"]
    outcome = workbench("resume", "last")
    assert (outcome.code, outcome.err) == (
        2,
        f"error: run {run_id} is no conformance run; it is a workflow: orchestrator workflow resume {run_id}\n",
    )


def test_show_and_replay_say_what_was_decided(workbench: Any) -> None:
    """Each record of a phase, a state or a decision says which, and why."""
    Path("error").write_text("no fire")
    run(workbench)
    workbench("workflow", "decide", "loaf", "skip")
    lines = workbench("show", "loaf").out.splitlines()[1:-1]
    told = {line[19:41].strip(): line[43:] for line in lines}
    assert not [line for line in lines if not line[43:].strip()]
    assert {name: told[name] for name in ("phase:failed", "decision:needed", "decision:taken", "state:read")} == {
        "phase:failed": "bake failed, 1 in a row: RuntimeError: no fire",
        "decision:needed": "phase error: Error: RuntimeError: no fire (retry, skip, abort)",
        "decision:taken": "person chose skip; on with done; with another state",
        "state:read": "in done; from: decided",
    }
    replayed = workbench("replay", "loaf").out
    assert all(text in replayed for text in told.values())


def test_what_phases_print_is_not_in_the_result(workbench: Any, environment: dict[str, str]) -> None:
    """`--json` leaves standard output to the result, whatever modules, phases and their programs print."""
    command = [sys.executable, "-m", "orchestrator", "workflow", "run", "bread", "--json"]
    ended = subprocess.run(
        command, cwd=workbench.directory, env=environment, capture_output=True, text=True, check=False
    )
    assert json.loads(ended.stdout)["status"] == "done"
    printed = {"imported", "printed by a phase", "printed by a program"}
    assert printed <= set(ended.stderr.splitlines())
    assert json.loads(run(workbench, "--json").out)["status"] == "done"
    assert json.loads(workbench("workflow", "check", "bread", "--json").out)["faults"] == []


def test_what_was_counted_and_learned(workbench: Any) -> None:
    """Counts and learning records of the phases are in the status, and in every result as data."""
    Path("error").write_text("no fire")
    result = json.loads(run(workbench, "--json").out)
    status = json.loads(workbench("workflow", "status", "--json").out)
    assert (result["metrics"], result["learnings"]) == (status["metrics"], status["learnings"])
    assert result["metrics"]["counts"] == {"files_modified": 3}
    (record,) = result["learnings"]
    assert record["failure"]["context"] | {"stack_trace": ""} == record["failure"]["context"]
    assert (record["failure"]["context"]["phase"], record["failure"]["context"]["error"]) == (
        "bake",
        "RuntimeError: no fire",
    )
    assert "counts: files_modified 3" in workbench("workflow", "status").out.splitlines()


def test_learnings_go_to_another_workflow(workbench: Any) -> None:
    """What one workflow learned is exported, and taken in by another once, whose diagnosis then knows of it."""
    Path("error").write_text("no fire")
    run(workbench)
    Path("learned.json").write_text(workbench("workflow", "learnings", "loaf").out)
    other = run(workbench, "--param", "id=roll", "--learnings", "learned.json", "--json")
    learned = json.loads(other.out)["learnings"]
    assert [record["failure"]["context"]["error"] for record in learned] == ["RuntimeError: no fire"] * 2
    assert learned[0] == json.loads(Path("learned.json").read_text())["records"][0]
    again = workbench("workflow", "resume", "roll", "--learnings", "learned.json", "--json")
    assert json.loads(again.out)["learnings"] == learned
    assert workbench("audit", "roll").code == 0
    Path("learned.json").write_text("{}")
    assert run(workbench, "--learnings", "learned.json").code == 2


def test_isolation_is_chosen_on_the_command_line(workbench: Any, bread: Path) -> None:
    """`run` takes a sandbox and a least isolation without a file; `resume` and `decide` the latter: status 9."""
    (bread / "phases").mkdir()
    (bread / "phases" / "bake.md").write_text("# Bake\n")
    text = (bread / "domain.yaml").read_text()
    (bread / "domain.yaml").write_text(text.replace(', callable: "bread_phases:bake"', ""))
    generator = ("--generator", f"{sys.executable} -S -c pass", "--sandbox", "containment")
    refused = run(workbench, *generator, "--require-isolation", "strong")
    assert (refused.code, "--require-isolation" in refused.err, Path("runs/journal.sqlite").exists()) == (9, True, True)
    assert run(workbench, *generator).code == 8
    for command in (("resume", "loaf"), ("decide", "loaf", "retry")):
        assert workbench("workflow", *command, "--require-isolation", "strong").code == 9


def test_an_unavailable_generator_leaves_the_workflow_open(workbench: Any, bread: Path) -> None:
    """A generator that has gone is nothing wrong with the phase: status 4, no failure, and it goes on afterwards."""
    (bread / "phases").mkdir()
    (bread / "phases" / "bake.md").write_text("# Bake\n")
    text = (bread / "domain.yaml").read_text()
    (bread / "domain.yaml").write_text(text.replace(', callable: "bread_phases:bake"', ""))
    answer = json.dumps({"next_phase": "done", "state_updates": {}, "output": "baked"})
    program = workbench.directory / "oven"
    source = f"#!{sys.executable}\nimport sys\nsys.stdin.read()\nprint({answer!r})\n"
    program.write_text(source)
    program.chmod(0o700)
    with (bread / "bread_phases.py").open("a") as file:
        file.write(
            f"\nkneaded = knead\ndef knead(state, components):\n"
            f"    Path({str(program)!r}).unlink(missing_ok=True)\n    return kneaded(state, components)\n"
        )
    outcome = run(workbench, "--generator", str(program), "--json")
    result = json.loads(outcome.out)
    assert (outcome.code, result["phase"], result["state"]["error"], result["exit_code"]) == (4, "bake", None, 4)
    assert "go on with it, when that is mended: orchestrator workflow resume" in outcome.err
    program.write_text(source)
    program.chmod(0o700)
    assert workbench("workflow", "resume", "loaf").code == 0
    assert workbench("audit", "loaf").code == 0
