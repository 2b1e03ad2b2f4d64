"""The commands take every run: those of agents, those inside others, and those that cannot be read."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Budget, EvalCase, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.agent import Agent, Reply, ToolCall, TurnRequest
from orchestrator.cli import main
from orchestrator.generators.agent import AgentGenerator
from orchestrator.history import (
    ForeignLifecycleError,
    RecordedExecution,
    find_run,
    load_execution,
    load_run,
)
from orchestrator.journal.memory import MemoryJournal
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.testing.agents import ScriptedProvider, ScriptedTool
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget as Limits
from orchestrator_events.execution import ExecutionStart
from orchestrator_events.journal import Batch
from orchestrator_events.record import Record
from orchestrator_states.workflow import WORKFLOW

SPEC = MergedSpec(name="colours", intent="Name the colours.", evals=(EvalCase(name="red"),))
Command = Callable[..., tuple[int, str, str]]


def judged(submission: Submission) -> Verdict:
    """The colour is in a file."""
    return Verdict.of({"red": "red" in "".join(submission.candidate.files.values())})


def writes(request: TurnRequest) -> Reply:
    """A call that writes the colour."""
    arguments = {"path": "x", "content": f"red {request.turn}"}
    return Reply(calls=(ToolCall(id="w", tool="write_file", arguments=arguments),))


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs commands in a directory with a journal: a conformance run with an agent inside, and an agent's run."""
    (tmp_path / "runs").mkdir()
    journal = SqliteJournal(tmp_path / "runs" / "journal.sqlite")
    generator = AgentGenerator(ScriptedProvider([writes, "Written."]), workspaces=tmp_path / "work")
    engine = Orchestrator(generator=generator, evaluator=judged, journal=journal, budget=Budget(attempts=2))
    assert engine.run(SPEC, run_id="nested").status == "passed"
    tool = ScriptedTool("look", ["nothing"])
    provider = ScriptedProvider([ToolCall(id="l", tool="look", arguments={}), "I looked."])
    Agent(providers={"scripted": provider}, tools=[tool], journal=journal).run("Look around.", run_id="alone")
    journal.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(arguments)
        told = capsys.readouterr()
        return code, told.out, told.err

    return run


def test_runs_of_every_lifecycle_are_listed(command: Command) -> None:
    """A line each, with the run that another one is inside of."""
    code, out, _ = command("runs")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert (code, list(lines)) == (0, ["nested", "nested.1", "alone"])
    assert ("inside nested" in lines["nested.1"], "Look around." in lines["alone"]) == (True, True)
    assert ("completed" in lines["alone"], "2 turns" in lines["alone"]) == (True, True)
    listed = json.loads(command("runs", "--json")[1])
    assert [each.get("lifecycle", "run") for each in listed] == ["run", "agent", "agent"]


def test_one_damaged_run_hides_no_other(command: Command, tmp_path: Path) -> None:
    """A run that cannot be read is a line that says so, between the others."""
    connection = sqlite3.connect(tmp_path / "runs" / "journal.sqlite")
    damage = "CAST(replace(CAST(bodies AS TEXT), 'prompting', 'pumpkings') AS BLOB)"
    connection.execute(f"UPDATE batch SET bodies = {damage} WHERE run = (SELECT number FROM run WHERE id = 'nested.1')")
    connection.commit()
    connection.close()
    code, out, _ = command("runs")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert (code, list(lines), "cannot be read" in lines["nested.1"]) == (0, ["nested", "nested.1", "alone"], True)
    assert [("error" in each) for each in json.loads(command("runs", "--json")[1])] == [False, True, False]


def test_an_agent_s_run_is_shown(command: Command) -> None:
    """What was asked, run and answered, record by record; as JSON, its report."""
    code, out, _ = command("show", "alone")
    assert (code, "look done: nothing" in out, "completed after 2 turns" in out) == (0, True, True)
    shown = json.loads(command("show", "alone", "--json")[1])
    assert (shown["status"], shown["answer"], shown["turns"]) == ("completed", "I looked.", 2)
    code, _, told = command("show", "alone", "--attempt", "1")
    assert (code, "which has no attempts" in told) == (2, True)


def test_last_is_the_newest_run_that_nothing_started(command: Command) -> None:
    """A run inside another is never what `last` means."""
    assert json.loads(command("show", "last", "--json")[1])["run"] == "alone"


def test_an_agent_s_run_is_audited_replayed_and_drawn(command: Command) -> None:
    """`audit`, `replay` and `graph` take it as they take any run."""
    assert [command(name, "alone")[0] for name in ("audit", "replay", "graph")] == [0, 0, 0]
    code, out, _ = command("audit", "nested", "--json")
    assert (code, json.loads(out)["children"], json.loads(out)["is_clean"]) == (0, ["nested.1"], True)
    assert "write_file" in command("replay", "nested.1")[1]


def test_an_agent_s_run_cannot_be_judged_again(command: Command, tmp_path: Path) -> None:
    """Where judging again makes no sense, a sentence says so."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite" / "check.py").write_text("")
    (tmp_path / "config.toml").write_text(
        '[generator]\ncommand = "true"\n'
        '[evaluator]\ncommand = "{python} check.py {report}"\nsuite = "suite"\ncandidate-file = "x"\n'
    )
    _, _, told = command("replay", "alone", "--evaluate", "--config", "config.toml")
    assert "an agent run has no candidates to judge again" in told


@pytest.mark.parametrize("form", ["junit", "ctrf", "in-toto", "md"])
def test_reports_on_verdicts_say_whose_they_are(command: Command, form: str) -> None:
    """A form that tells of attempts refuses an agent's run, and names those that take it."""
    code, _, told = command("export", "alone", "--format", form)
    assert (code, "use json or jsonl" in told) == (2, True)


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_an_export_holds_the_tree(command: Command, tmp_path: Path, form: str) -> None:
    """The exported file alone is audited with all runs inside it."""
    path = tmp_path / f"run.{form}"
    path.write_text(command("export", "nested", "--format", form)[1])
    code, out, _ = command("audit", str(path), "--json")
    assert (code, json.loads(out)["children"]) == (0, ["nested.1"])


def test_runs_of_lifecycles_without_a_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of any other lifecycle what all share is folded, and a second table's records do not move it."""

    async def loaded() -> Any:
        journal = MemoryJournal()
        start = ExecutionStart(
            table_digest=WORKFLOW.digest, prompt=Blob("{}"), identity="{}", budget=Limits(attempts=3)
        )
        records = (
            Record("w", 1, 1, "workflow", "ready", "reading", start),
            Record("w", 2, 2, "domain", "begun", "init", start),
        )
        await journal.append(Batch("w", records))
        with pytest.raises(ForeignLifecycleError):
            await load_run(journal, "w")
        return await load_execution(journal, await find_run(journal, "last"))

    monkeypatch.setattr("orchestrator.folding.FOLDS", {})
    run = asyncio.run(loaded())
    assert (type(run), run.state, run.sequence) == (RecordedExecution, "reading", 2)
