"""`resume`: a run goes on where it was left, under the configuration it was started with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.configuration import configuration_json, load_configuration
from orchestrator.journal.sqlite import SqliteJournal

CONFIGURATION = """
language = "python"
[generator]
command = "./generate --fast"
parameters = { temperature = 0.5 }
environment = ["KEY"]
[evaluator]
suite = "suite"
candidate-file = "x.py"
[budget]
attempts = 4
time = "10m"
[[strategy]]
kind = "parameter-variation"
values = { temperature = [0.1, 0.9] }
[[strategy]]
kind = "failure-feedback"
[augmentations]
style = ["style.md"]
"""


def test_after_a_limit_with_the_limit_raised(workbench: Any) -> None:
    """The run goes on with the next attempt, knows its configuration, and keeps counting."""
    workbench.run("--attempts", "1", answers=("red", "red green"))
    ended = workbench("resume", workbench.run_id, "--attempts", "3", "--json")
    result = json.loads(ended.out)
    assert (ended.code, result["status"], result["attempts"], result["generator_invocations"]) == (0, "passed", 2, 2)
    assert (workbench.directory / result["candidate_path"]).read_text() == "red green\n"


def test_a_limit_that_is_still_reached_is_refused(workbench: Any) -> None:
    """Status 7 and the limit's name; nothing is written."""
    workbench.run("--attempts", "1", answers=("red",))
    before = workbench("export", "last", "--format", "jsonl").out
    ended = workbench("resume", "last")
    assert (ended.code, ended.out) == (7, "")
    assert "the limit 'attempts' is still reached (1 of 1 attempts used): raise it" in ended.err
    assert workbench("export", "last", "--format", "jsonl").out == before


def test_another_configuration_is_refused_field_by_field(workbench: Any, tmp_path: Path) -> None:
    """What made the run has to go on with it: each field that differs is named with both values."""
    workbench.run("--attempts", "1", answers=("red",))
    (tmp_path / "other.toml").write_text(
        'language = "go"\n[generator]\nname = "other"\ncommand = "cat"\n[evaluator]\nsuite = "suite"\n'
        'candidate-file = "colours.txt"\n'
    )
    ended = workbench("resume", "last", "--config", "other.toml", "--attempts", "9")
    lines = ended.err.splitlines()
    assert ended.code == 7
    assert '  language: recorded "python", now "go"' in lines
    assert any(line.startswith("  generator: recorded ") and line.endswith(', now "other"') for line in lines)


def test_a_run_that_passed_has_nothing_left_to_do(workbench: Any) -> None:
    """Passing is final."""
    workbench.run()
    ended = workbench("resume", "last", "--attempts", "9")
    assert (ended.code, ended.out) == (7, "")
    assert "it passed: there is nothing left to do" in ended.err


def test_a_run_in_use_is_refused(workbench: Any, tmp_path: Path) -> None:
    """Somebody else works on it: status 7, nothing written."""
    workbench.run("--attempts", "1", answers=("red",))
    run_id = workbench.run_id
    with SqliteJournal(tmp_path / "runs" / "journal.sqlite") as journal, journal.hold(run_id):
        ended = workbench("resume", run_id, "--attempts", "3")
    assert (ended.code, ended.out) == (7, "")
    assert f"run {run_id} is held by another process" in ended.err


def test_an_unknown_run_and_a_run_without_configuration(workbench: Any) -> None:
    """Both are usage errors that name the remedy."""
    workbench.run("--attempts", "1", answers=("red",))
    run_id = workbench.run_id
    assert workbench("resume", "nonsense").code == 2
    (workbench.directory / "runs" / run_id / "configuration.json").unlink()
    ended = workbench("resume", run_id)
    assert (ended.code, ended.out) == (2, "")
    assert "name the configuration of run" in ended.err


def test_a_kept_configuration_is_read_back_equal(tmp_path: Path) -> None:
    """What is written beside a run says the same as the file it was started with."""
    (tmp_path / "config.toml").write_text(CONFIGURATION)
    configuration = load_configuration(tmp_path / "config.toml")
    (tmp_path / "kept.json").write_text(json.dumps(configuration_json(configuration)))
    assert load_configuration(tmp_path / "kept.json") == configuration
