"""`show`, `runs` and `export`: the journal, told to people and to programs."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from orchestrator.journal.sqlite import SqliteJournal

SHOWN = """\
run RUN  colours  spec a62fc3fb  generator python#COMMAND  limits 3 attempts, 3 repeats
isolation  generator HELD · evaluator HELD
not enforced: LIST
#1   generate TIME TOKENS  evaluate TIME   1/3 passed  names_green: found ['red', 'blue']
#2   generate TIME TOKENS  evaluate TIME   2/3 passed  fixed 1, broke 0  closest 6ace3317  names_green: found ['red']
#3   generate TIME TOKENS  evaluate TIME   1/3 passed  fixed 1, broke 2  names_red: found ['blue', 'green']
exhausted (attempts) after 3 attempts  3 of 3 attempts used
integrity: cooperative - the candidate shares the judge's process
"""

ATTEMPT = """\
run RUN  colours  spec a62fc3fb  generator python#COMMAND  limits 3 attempts, 3 repeats
isolation  generator HELD · evaluator HELD
not enforced: LIST
#2   generate TIME TOKENS  evaluate TIME   2/3 passed  fixed 1, broke 0  closest 6ace3317  names_green: found ['red']
  prompt      sha256:DIGEST
  candidate   sha256:DIGEST
  generator   HELD
  evaluator   HELD
  integrity   cooperative
  failed    names_green
      found ['red']
"""


@pytest.fixture
def recorded(workbench: Any) -> Any:
    """A workbench with one run of three attempts, none of which conforms."""
    assert workbench.run("--attempts", "3", answers=("red blue", "red", "blue green")).code == 3
    return workbench


@pytest.mark.parametrize("how", ["whole", "beginning", "last"])
def test_show(recorded: Any, normalised: Callable[[str], str], how: str) -> None:
    """A run is shown as it happened, one line an attempt, whether named whole, by its beginning or as last."""
    name = {"whole": recorded.run_id, "beginning": recorded.run_id[:6], "last": "last"}[how]
    outcome = recorded("show", name)
    assert (outcome.code, outcome.err, normalised(outcome.out)) == (0, "", SHOWN)


def test_show_attempt(recorded: Any, normalised: Callable[[str], str]) -> None:
    """One attempt is shown with its digests and every failing case with its whole message."""
    outcome = recorded("show", "last", "--attempt", "2")
    digest = "sha256:" + "[0-9a-f]{64}"
    assert re.sub(digest, "sha256:DIGEST", normalised(outcome.out)) == ATTEMPT


def test_show_prompt(recorded: Any) -> None:
    """The prompt comes out as it was sent: the last one, or that of an attempt."""
    last, first = recorded("show", "last", "--prompt"), recorded("show", "last", "--prompt", "--attempt", "1")
    assert first.out.startswith("# Task\n")
    assert "# Attempt" not in first.out
    assert last.out.startswith(first.out)
    assert "# Attempt 3" in last.out


def test_show_candidate(recorded: Any) -> None:
    """The candidate comes out byte for byte: the closest one, or that of an attempt."""
    closest, third = recorded("show", "last", "--candidate"), recorded("show", "last", "--candidate", "--attempt", "3")
    assert (closest.out, third.out) == ("red\n", "blue green\n")


def test_show_json(recorded: Any) -> None:
    """The run as JSON says what the run's own result said."""
    kept = json.loads((recorded.directory / "runs" / recorded.run_id / "result.json").read_text())
    shown = json.loads(recorded("show", "last", "--json").out)
    for name in ("exit_code", "candidate_path", "journal"):
        kept.pop(name)
    times = kept["usage"].pop("active_us"), shown["usage"].pop("active_us")
    assert all(time > 0 for time in times)
    assert shown == kept
    assert json.loads(recorded("show", "last", "--json", "--attempt", "2").out) == kept["history"][1]


def test_runs(recorded: Any, normalised: Callable[[str], str]) -> None:
    """The runs of a journal are listed, the newest last, as many as asked for."""
    recorded.run()
    lines = normalised(recorded("runs").out).splitlines()
    assert [line.split("  ")[:3] for line in lines] == [
        ["RUN", "colours", "exhausted"],
        ["RUN", "colours", "passed"],
    ]
    newest = normalised(recorded("runs", "--newest", "1").out).splitlines()
    assert newest == [lines[1], "1 older: --newest 2 shows all"]


@pytest.fixture
def left_open(workbench: Any) -> Any:
    """A workbench with one run whose second attempt found the generator gone."""
    (workbench.directory / "model.sh").write_text("#!/bin/sh\necho red\nchmod -x model.sh\n")
    (workbench.directory / "model.sh").chmod(0o755)
    outcome = workbench(*workbench.judged("--generator", "./model.sh", "--sandbox", "containment"))
    assert outcome.code == 4
    return workbench


def test_an_open_run_says_how_it_stands(left_open: Any, normalised: Callable[[str], str]) -> None:
    """Interrupted in order, held by a process, or cut off by a kill; the attempt that nobody judged is listed."""
    journal = left_open.directory / "runs" / "journal.sqlite"

    def standing() -> tuple[str, str, list[str]]:
        (line,), (told,) = left_open("runs").out.splitlines(), json.loads(left_open("runs", "--json").out)
        shown = normalised(left_open("show", "last").out).splitlines()
        return (
            line.split("  ")[2].strip(),
            told["standing"],
            [shown[4].split("  ")[-1].strip(), shown[5].partition("  ")[0]],
        )

    reason = "abandoned: GeneratorUnavailableError: './model.sh' cannot be started: it is not executable: "
    interrupted = standing()
    with SqliteJournal(journal) as writer, writer.hold(left_open.run_id):
        running = standing()
    with closing(sqlite3.connect(journal)) as database:
        last = "(SELECT max(first) FROM batch)"
        database.execute(f"DELETE FROM batch WHERE first = {last}")  # a kill took what was about to be recorded
        database.commit()
    cut_off = standing()
    assert [interrupted, running, cut_off] == [
        ("interrupted", "interrupted", [f"{reason}chmod +x ./model.sh", "left open, generating after 2 attempts"]),
        ("running", "running", ["waiting for its candidate", "running, generating after 2 attempts"]),
        ("cut off", "cut off", ["cut off waiting for its candidate", "cut off, generating after 2 attempts"]),
    ]


def test_runs_json(recorded: Any) -> None:
    """The list as JSON has the same runs."""
    (run,) = json.loads(recorded("runs", "--json").out)
    assert {name: run[name] for name in ("run", "state", "attempts", "best_passed")} == {
        "run": recorded.run_id,
        "state": "exhausted",
        "attempts": 3,
        "best_passed": 2,
    }


def test_export(recorded: Any) -> None:
    """Both forms of an export hold the same records, links and texts."""
    document = json.loads(recorded("export", "last").out)
    lines = [json.loads(line) for line in recorded("export", "last", "--format", "jsonl").out.splitlines()]
    texts: dict[str, str] = {}
    for line in lines:
        texts |= line.pop("blobs")
    opening = {name: lines[0].pop(name) for name in ("format", "run", "table")}
    head = {"digest": lines[-1]["digest"], "count": len(lines)}
    assert document == {**opening, "head": head, "records": lines, "blobs": texts}


MISSING = {
    "unknown run": (
        ("show", "nope"),
        "error: no run 'nope' in runs/journal.sqlite: `orchestrator runs` lists those there are\n",
    ),
    "unknown run to export": (
        ("export", "nope"),
        "error: no run 'nope' in runs/journal.sqlite: `orchestrator runs` lists those there are\n",
    ),
    "unknown attempt": (("show", "last", "--attempt", "9"), "error: run RUN has no attempt 9; there are: 1, 2, 3\n"),
    "no journal": (
        ("runs", "--runs", "elsewhere"),
        "error: no journal at elsewhere/journal.sqlite: run a spec first, or name the directory with --runs\n",
    ),
}


@pytest.mark.parametrize("what", MISSING)
def test_missing(recorded: Any, normalised: Callable[[str], str], what: str) -> None:
    """What is not there is 2, with a word on where to look."""
    arguments, message = MISSING[what]
    outcome = recorded(*arguments)
    assert (outcome.code, outcome.out, normalised(outcome.err)) == (2, "", message)


def test_near_miss(recorded: Any) -> None:
    """A mistyped id is answered with the one that was probably meant."""
    mistyped = recorded.run_id[:-1] + "x"
    outcome = recorded("show", mistyped)
    assert (outcome.code, outcome.err) == (
        2,
        f"error: no run {mistyped!r} in runs/journal.sqlite: did you mean {recorded.run_id!r}?\n",
    )


def test_damaged_journal(recorded: Any) -> None:
    """A journal that is no journal is an error in one line."""
    (recorded.directory / "runs" / "journal.sqlite").write_bytes(b"not a database" * 1000)
    outcome = recorded("show", "last")
    assert outcome.code == 1
    assert outcome.err.startswith("error: runs/journal.sqlite")
    assert outcome.err.count("\n") == 1
