"""`conform`: one run per configured generator, their outcomes in a lockfile."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.conform import read_lockfile

Configure = Callable[[str, str], str]


@pytest.fixture
def configure(workbench: Any) -> Configure:
    """Writes a configuration whose generator always gives one answer; its file name."""

    def written(name: str, answer: str) -> str:
        program = [sys.executable, "-S", str(workbench.directory / "generate.py"), answer]
        text = f"""
            [generator]
            name = "{name}"
            command = {json.dumps(program)}
            [evaluator]
            command = ["{{python}}", "-S", "check.py", "{{report}}"]
            suite = "suite"
            candidate-file = "colours.txt"
            report = "json"
            [budget]
            attempts = 2
        """
        (workbench.directory / f"{name}.toml").write_text(text)
        return f"{name}.toml"

    return written


def test_every_generator_conforms(
    workbench: Any, configure: Configure, normalised: Callable[[str], str], tmp_path: Path
) -> None:
    """All conform: status 0, a line each, and a lockfile that tells the same."""
    ended = workbench("conform", "spec.toml", "-c", configure("one", "red green"), "-c", configure("two", "green red"))
    lockfile = read_lockfile(tmp_path / "conformance.lock.json")
    shown = (
        "one  passed       1 attempt    run RUN\n"
        "two  passed       1 attempt    run RUN\n"
        "2 of 2 generators conform  conformance.lock.json\n"
    )
    assert (ended.code, normalised(ended.out)) == (0, shown)
    integrity = "integrity: cooperative - the candidate shares the judge's process"
    assert [line for line in ended.err.splitlines() if "integrity" in line] == [
        f"one: {integrity}",
        f"two: {integrity}",
    ]
    assert [(each.generator, each.outcome) for each in lockfile.generators] == [("one", "passed"), ("two", "passed")]


def test_one_does_not(workbench: Any, configure: Configure) -> None:
    """One generator that exhausts its budget is status 3, and both runs are in the journal."""
    configs = ("-c", configure("one", "red green"), "-c", configure("two", "blue"))
    ended = workbench("conform", "spec.toml", *configs, "--lockfile", "lock.json", "--json")
    told = json.loads(ended.out)
    assert (ended.code, told["is_conforming"]) == (3, False)
    assert [each["outcome"] for each in told["generators"]] == ["passed", "exhausted"]
    assert "not a verification" in told["kind"]
    assert sorted(run["run"] for run in json.loads(workbench("runs", "--json").out)) == sorted(
        each["run"] for each in told["generators"]
    )


def test_one_generator_twice_is_refused(workbench: Any, configure: Configure) -> None:
    """The lockfile could not tell them apart; nothing is run."""
    config = configure("one", "red green")
    ended = workbench("conform", "spec.toml", "-c", config, "-c", config)
    assert (ended.code, ended.out, list(workbench.directory.glob("*.lock.json"))) == (2, "", [])
    assert "two configurations name one generator: one, one" in ended.err
