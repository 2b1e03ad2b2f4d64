"""`audit` and `replay`: 0 when everything follows, 6 on a difference, 2 for what is no export."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

CHECKS = (
    "chain, head, records, digests, table, spec, moves, markers, isolation, attempts, prompts, consents, budget, "
    "verdicts, results"
)

CONFIG = """
[generator]
command = "true"

[evaluator]
command = "{python} -S check.py {report}"
suite = "suite"
candidate-file = "colours.txt"
report = "json"
"""


@pytest.fixture
def recorded(workbench: Any) -> Any:
    """A workbench with one run that conforms in its second attempt."""
    assert workbench.run(answers=("red", "red green")).code == 0
    return workbench


def exported(bench: Any, form: str = "json") -> str:
    """The run as a file."""
    name = f"run.{form}"
    (bench.directory / name).write_text(bench("export", "last", "--format", form).out)
    return name


@pytest.mark.parametrize("form", ["json", "jsonl", "run"])
def test_clean(recorded: Any, form: str) -> None:
    """A run is audited in either form of its export, or from the journal."""
    document = json.loads(recorded("export", "last").out)
    head = document["head"]
    outcome = recorded("audit", "last" if form == "run" else exported(recorded, form))
    lines = outcome.out.splitlines()
    assert (outcome.code, outcome.err, lines[2:]) == (0, "", [f"checked: {CHECKS}", "clean"])
    assert lines[0] == f"run {recorded.run_id} passed {head['count']} records head {head['digest']}"


def test_published_head(recorded: Any) -> None:
    """The head and count of the result are held against the records."""
    kept = json.loads((recorded.directory / "runs" / recorded.run_id / "result.json").read_text())["journal_head"]
    held = ("--head", kept["digest"], "--count", str(kept["count"]))
    assert recorded("audit", "last", *held).code == 0
    outcome = recorded("audit", "last", "--count", "7", "--json")
    report = json.loads(outcome.out)
    assert (outcome.code, outcome.err, report["is_clean"], report["findings"]) == (
        6, "", False,
        [{"check": "head", "sequence": 0, "message": f"the published count is 7; there are {kept['count']} records"}],
    )  # fmt: skip


def test_difference(recorded: Any) -> None:
    """A changed record is 6, with what was found on standard output."""
    name = exported(recorded)
    path = recorded.directory / name
    path.write_text(path.read_text().replace('"turn_count": 2', '"turn_count": 1'))
    outcome = recorded("audit", name)
    assert (outcome.code, outcome.err) == (6, "")
    assert "its digest is not that of its bytes" in outcome.out
    assert outcome.out.endswith("differences\n")


@pytest.mark.parametrize("command", ["audit", "replay"])
def test_what_is_no_export(recorded: Any, command: str) -> None:
    """A missing file, a file of another form and an unknown run are 2."""
    (recorded.directory / "x.json").write_text("{")
    answers = [recorded(command, name) for name in ("none.json", "x.json", "nope")]
    assert [(answer.code, answer.out) for answer in answers] == [(2, "")] * 3
    assert [answer.err for answer in answers] == [
        "error: none.json: no such file\n",
        "error: x.json: line 1, column 2: Expecting property name enclosed in double quotes\n",
        "error: no run 'nope' in runs/journal.sqlite: `orchestrator runs` lists those there are\n",
    ]


@pytest.mark.parametrize("command", ["audit", "replay"])
def test_damaged_journal(recorded: Any, command: str) -> None:
    """A journal whose chain breaks is a difference too."""
    with closing(sqlite3.connect(recorded.directory / "runs" / "journal.sqlite")) as journal:
        changed = "replace(CAST(bodies AS TEXT), 'failure-feedback', 'failure-feedbacl')"
        journal.execute(f"UPDATE batch SET bodies = CAST({changed} AS BLOB)")
        journal.commit()
    outcome = recorded(command, recorded.run_id)
    assert (outcome.code, outcome.out) == (6, "")
    assert outcome.err.startswith("difference: ")


REPLAYED = [
    "   1  ready > prompting        execution:start        invocation 1, limits: attempts 5, repeats 3",
    "   2  prompting                isolation:established  generator HELD, evaluator HELD",
    "   3  prompting > generating   prompt:ready           attempt 1 by failure-feedback, parameters {}",
]


def test_replay(recorded: Any, normalised: Callable[[str], str]) -> None:
    """Each record is one line: its way through the table, and the decision."""
    outcome = recorded("replay", exported(recorded))
    lines = [line[:4] + line[14:] for line in normalised(outcome.out).splitlines()]
    assert (outcome.code, outcome.err, lines[:3]) == (0, "", REPLAYED)
    assert [line.split("  ")[-1].strip() for line in lines[-3:]] == [
        "all 3 cases passed",
        "success after 2 answers",
        "completed",
    ]


def test_replay_json(recorded: Any) -> None:
    """The steps as JSON."""
    shown = json.loads(recorded("replay", "last", "--json").out)
    assert [step["sequence"] for step in shown["steps"]] == list(range(1, len(shown["steps"]) + 1))
    assert (shown["rejudged"], shown["difference"]) == ([], "")


def test_replay_difference(recorded: Any) -> None:
    """An altered export is not walked through: 6, with what the audit finds in its chain."""
    name = exported(recorded)
    path = recorded.directory / name
    path.write_text(path.read_text().replace('"all 3', '"all 4').replace('"target": "refining"', '"target": "passed"'))
    outcome, told = recorded("replay", name), json.loads(recorded("replay", name, "--json").out)
    finding = "chain: record 6: its digest is not that of its bytes: it was changed after it was recorded"
    assert (outcome.code, outcome.out, outcome.err[: len(finding) + 12]) == (6, "", f"difference: {finding}")
    assert (told["steps"], told["difference"][: len(finding)]) == ([], finding)


def test_replay_with_the_suite(recorded: Any) -> None:
    """The suite judges every recorded candidate again: 0 where it says the same, 6 where it does not."""
    (recorded.directory / "config.toml").write_text(CONFIG)
    name = exported(recorded)
    same = recorded("replay", name, "--evaluate", "-c", "config.toml")
    assert (same.code, same.err, same.out.splitlines()[-2:]) == (
        0, "", ["attempt 1: the same verdict, 2 passed", "attempt 2: the same verdict, 3 passed"],
    )  # fmt: skip
    check = recorded.directory / "suite" / "check.py"
    check.write_text(check.read_text().replace('"green" in words', "True"))
    other = recorded("replay", name, "--evaluate", "-c", "config.toml")
    assert (other.code, other.out.splitlines()[-2:]) == (
        6, ["attempt 1: another verdict on names_green", "attempt 2: the same verdict, 3 passed"],
    )  # fmt: skip


def test_replay_with_less_isolation_than_is_required(recorded: Any) -> None:
    """Recorded candidates are as hostile as new ones: what a run is refused, judging them again is refused."""
    required = f'require-isolation = "strong"\n{CONFIG}\n[sandbox]\nbackend = "containment"\n'
    (recorded.directory / "config.toml").write_text(required)
    outcome = recorded("replay", "last", "--evaluate", "-c", "config.toml")
    assert (outcome.code, outcome.out, outcome.err[:36]) == (9, "", "error: isolation strong is required,")


def test_replay_without_a_suite(recorded: Any) -> None:
    """Judging again needs to know the suite."""
    outcome = recorded("replay", "last", "--evaluate")
    assert (outcome.code, outcome.err) == (
        2, "error: --evaluate needs the eval suite: name a configuration with --config\n",
    )  # fmt: skip
