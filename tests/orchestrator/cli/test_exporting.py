"""`export`, `schema` and `graph` on the command line."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from orchestrator.schemas import KINDS, schema

TOTALS = re.compile(r"(<1ms|\d+ms|\d+\.\d+s)")

DRAWN = """\
run RUN   passed
lifecycle run   \N{BLACK CIRCLE} starts here   \N{BULLSEYE} may rest here

state         been  time  event                                taken  next state
RULE
\N{BLACK CIRCLE} ready       \N{MULTIPLICATION SIGN}1          execution:start                      \
\N{MULTIPLICATION SIGN}1     \N{RIGHTWARDS ARROW}   prompting
  prompting   \N{MULTIPLICATION SIGN}2    TIME  prompt:ready                         \
\N{MULTIPLICATION SIGN}2     \N{RIGHTWARDS ARROW}   generating
"""


@pytest.fixture
def recorded(workbench: Any) -> Any:
    """A workbench with one run of two attempts, the second of which conforms."""
    assert workbench.run(answers=("red", "red green")).code == 0
    return workbench


def test_every_form(recorded: Any) -> None:
    """Every form goes to standard output, and each is of its own kind."""
    forms = ("json", "jsonl", "junit", "ctrf", "in-toto", "md")
    outcomes = {form: recorded("export", "last", "--format", form) for form in forms}
    assert {(outcome.code, outcome.err) for outcome in outcomes.values()} == {(0, "")}
    texts = {form: outcome.out for form, outcome in outcomes.items()}
    assert texts["json"] == recorded("export", recorded.run_id).out
    assert [suite.get("name") for suite in ET.fromstring(texts["junit"])] == ["attempt 1", "attempt 2"]
    assert json.loads(texts["ctrf"])["results"]["summary"]["passed"] == 3
    assert json.loads(texts["in-toto"])["predicate"]["result"] == "PASSED"
    assert texts["md"].startswith(f"# Run `{recorded.run_id}`: passed\n")
    assert texts["jsonl"].count("\n") == json.loads(texts["json"])["head"]["count"]


def test_nothing_to_attest(workbench: Any) -> None:
    """A run without a candidate has no statement: 2, with what to do instead."""
    workbench("run", "spec.toml", "--suite", "suite", "--candidate-file", "c.txt", "--generator", "false",
              "--evaluator", "{python} check.py {report}", "--report", "json", "--attempts", "1")  # fmt: skip
    outcome = workbench("export", "last", "--format", "in-toto")
    assert (outcome.code, outcome.out, outcome.err) == (
        2,
        "",
        f"error: run {workbench.run_id} has no judged candidate to attest: export it as json to have its history\n",
    )


def test_schemas_are_listed(workbench: Any) -> None:
    """Without a kind the kinds are listed with what they are of."""
    outcome = workbench("schema")
    listed = [tuple(line.split(maxsplit=1)) for line in outcome.out.splitlines()]
    assert (outcome.code, listed, outcome.err) == (0, list(KINDS.items()), "")


@pytest.mark.parametrize("kind", KINDS)
def test_schema(workbench: Any, kind: str) -> None:
    """The schema of a kind is printed as it is."""
    outcome = workbench("schema", kind)
    assert (outcome.code, json.loads(outcome.out), outcome.err) == (0, schema(kind), "")


def test_unknown_schema(workbench: Any) -> None:
    """A kind that is not there is 2, with the near one."""
    outcome = workbench("schema", "confg")
    assert (outcome.code, outcome.out, outcome.err) == (
        2,
        "",
        "error: no schema is called 'confg': did you mean 'config'?\n",
    )


def test_written_results_are_valid(recorded: Any) -> None:
    """What `run` keeps and what `show --json` prints have the shape that the schema says."""
    kept = json.loads((recorded.directory / "runs" / recorded.run_id / "result.json").read_text())
    shown = json.loads(recorded("show", "last", "--json").out)
    validator = Draft202012Validator(schema("result"))
    assert [error.message for each in (kept, shown) for error in validator.iter_errors(each)] == []


def test_drawn_as_text(recorded: Any) -> None:
    """The table of a run has columns for visits, times and moves taken."""
    out = recorded("graph", "last").out.replace(recorded.run_id, "RUN")
    lines = [
        re.sub(r" +", " ", TOTALS.sub("TIME", re.sub("\N{BOX DRAWINGS LIGHT HORIZONTAL}+", "RULE", line)))
        for line in out.splitlines()
    ]
    assert lines[:7] == [re.sub(r" +", " ", line) for line in DRAWN.splitlines()]


def test_drawn_as_json(recorded: Any) -> None:
    """The way of a run as data: visits and times by state, moves with their number, and the table."""
    told = json.loads(recorded("graph", "last", "--format", "json").out)
    visits = {state: each["visits"] for state, each in told["states"].items()}
    assert visits == {"ready": 1, "prompting": 2, "generating": 2, "evaluating": 2, "refining": 1, "passed": 1}
    assert told["states"]["generating"]["time_us"] > 0
    assert {"source": "prompting", "event": "prompt:ready", "target": "generating", "taken": 2} in told["moves"]
    assert (told["run"], told["state"]) == (recorded.run_id, "passed")
    assert told["table"] == json.loads(recorded("graph", "run", "--format", "json").out)


def test_drawn_as_dot(recorded: Any) -> None:
    """What the run saw and took is thick, with its numbers."""
    out = recorded("graph", "last", "--format", "dot").out
    assert 'prompt:ready \N{MULTIPLICATION SIGN}2", penwidth=2.5]' in out
    assert re.search(
        r'evaluating \[label="evaluating\\n\N{MULTIPLICATION SIGN}2 [^"]+", peripheries=1, penwidth=3', out
    )


def test_a_lifecycle_wins_over_a_run(recorded: Any) -> None:
    """A name that is a lifecycle's draws the lifecycle, whatever runs there are."""
    assert "been" not in recorded("graph", "run").out
