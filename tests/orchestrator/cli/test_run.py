"""`run`: from a spec to a candidate, a result and an exit status."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

PROGRESS = """\
run RUN  colours  spec a62fc3fb  generator python#COMMAND  limits 5 attempts, 3 repeats
isolation  generator HELD · evaluator HELD
not enforced: LIST
#1   generate TIME TOKENS  evaluate TIME   1/3 passed  closest ad1a7563  names_green: found ['red', 'blue']
#2   generate TIME TOKENS  evaluate TIME   2/3 passed  fixed 1, broke 0  closest 6ace3317  names_green: found ['red']
#3   generate TIME TOKENS  as #2           2/3 passed  repeat 1 of 3  same candidate, verdict reused
#4   generate TIME TOKENS  evaluate TIME   3/3 passed, conforms  fixed 1, broke 0
integrity: cooperative - the candidate shares the judge's process
"""


def test_conforming(workbench: Any, normalised: Callable[[str], str]) -> None:
    """A run tells each attempt on standard error and its outcome in one line on standard output."""
    outcome = workbench.run(answers=("red blue", "red", "red", "red green"))
    assert outcome.code == 0
    assert normalised(outcome.out) == ("conforms after 4 attempts  TIME  TOKENS  runs/RUN/candidate/colours.txt\n")
    assert normalised(outcome.err) == PROGRESS


def test_candidate_is_kept_unaltered(workbench: Any) -> None:
    """The conforming candidate is written byte for byte under the name the suite knows it by."""
    workbench.run()
    written = workbench.directory / "runs" / workbench.run_id / "candidate" / "colours.txt"
    assert written.read_bytes() == b"red green\n"


def test_exhausted(workbench: Any, normalised: Callable[[str], str]) -> None:
    """An exhausted run exits 3, names the limit, the closest candidate and what it fails, and writes it."""
    outcome = workbench.run("--attempts", "2", answers=("red", "blue"))
    assert outcome.code == 3
    assert normalised(outcome.out) == (
        "exhausted (attempts) after 2 attempts  closest #1 2/3  TIME  TOKENS  runs/RUN/closest/colours.txt\n"
    )
    assert normalised(outcome.err).splitlines()[-4:] == [
        "limit reached: attempts: 2 of 2 attempts used",
        "  failed    names_green  found ['red']",
        "look at it: orchestrator show RUN --attempt 1",
        "go on with it: orchestrator resume RUN --attempts 5",
    ]
    written = workbench.directory / "runs" / workbench.run_id / "closest" / "colours.txt"
    assert written.read_bytes() == b"red\n"


@pytest.mark.parametrize("display", ["plain", "quiet"])
def test_json(workbench: Any, display: str) -> None:
    """`--json` prints the result alone on standard output, the same as result.json and the exit status."""
    outcome = workbench.run("--json", "--display", display)
    printed = json.loads(outcome.out)
    kept = json.loads((workbench.directory / "runs" / workbench.run_id / "result.json").read_text())
    assert printed == kept
    assert {key: printed[key] for key in ("status", "run", "exit_code", "candidate_path", "journal")} == {
        "status": "passed",
        "run": workbench.run_id,
        "exit_code": 0,
        "candidate_path": f"runs/{workbench.run_id}/candidate/colours.txt",
        "journal": "runs/journal.sqlite",
    }


def test_quiet(workbench: Any, normalised: Callable[[str], str]) -> None:
    """`--display quiet` shows no progress; the outcome is told all the same."""
    outcome = workbench.run("--display", "quiet", "--attempts", "1", answers=("red",))
    assert (outcome.code, outcome.err) == (3, "")
    assert normalised(outcome.out) == (
        "exhausted (attempts) after 1 attempt  closest #1 2/3  TIME  TOKENS  runs/RUN/closest/colours.txt\n"
    )


def test_generator_that_fails(workbench: Any) -> None:
    """A generator that breaks costs the attempt; without any candidate nothing is written but the result."""
    outcome = workbench(*workbench.judged("--generator", "false", "--attempts", "1"))
    assert outcome.code == 3
    assert "no attempt gave a candidate" in outcome.err
    assert f"look at it: orchestrator show {workbench.run_id} --attempt 1\n" in outcome.err
    assert sorted(path.name for path in (workbench.directory / "runs" / workbench.run_id).iterdir()) == [
        "configuration.json",
        "result.json",
    ]


def test_generator_not_found(workbench: Any) -> None:
    """A program that is not there is 4, before a journal is made."""
    outcome = workbench(*workbench.judged("--generator", "no-such-program --really"))
    assert (outcome.code, outcome.out, outcome.err) == (
        4,
        "",
        "error: no program 'no-such-program' on PATH: install it, or name it with its path\n",
    )
    assert not (workbench.directory / "runs").exists()


def test_generator_that_cannot_be_started(workbench: Any) -> None:
    """A program that is not there, or is no program, is 4 as well, before anything is recorded."""
    (workbench.directory / "model.sh").write_text("#!/bin/sh\n")
    missing, inert = (workbench(*workbench.judged("--generator", name)) for name in ("./not-there", "./model.sh"))
    place = workbench.directory / "not-there"
    assert (missing.code, missing.err, inert.code, inert.err) == (
        4,
        f"error: './not-there' cannot be started: there is no file {place}\n",
        4,
        "error: './model.sh' cannot be started: it is not executable: chmod +x ./model.sh\n",
    )
    assert not (workbench.directory / "runs").exists()


def test_generator_that_turns_out_not_to_start(workbench: Any) -> None:
    """What no look could tell is 4 too; the run is left open with its history."""
    (workbench.directory / "model.sh").write_text("#!/no/such/interpreter\n")
    (workbench.directory / "model.sh").chmod(0o755)
    outcome = workbench(*workbench.judged("--generator", "./model.sh", "--sandbox", "containment"))
    assert (outcome.code, "generator is unavailable: './model.sh' cannot be started" in outcome.err) == (4, True)
    assert "left open, generating after 1 attempt" in workbench("show", workbench.run_id).out


def test_a_misspelt_function_makes_no_run(workbench: Any) -> None:
    """It is imported before a run is made, which could not go on under another name: 4, and nothing is recorded."""
    (workbench.directory / "my_model.py").write_text("def generate(request):\n    return 'red green'\n")
    (workbench.directory / "function.toml").write_text('[generator]\nfunction = "my_model:genrate"\n')
    arguments = (*workbench.judged("-c", "function.toml"), "--runs", "kept")
    outcome = workbench(*arguments)
    assert (outcome.code, outcome.err) == (
        4,
        "error: function 'my_model:genrate': my_model has no 'genrate' (did you mean 'generate'?)\n",
    )
    assert workbench("runs", "--runs", "kept").out == ""


def test_evaluator_not_found(workbench: Any) -> None:
    """A runner that is not there is 5, before anything is bought."""
    outcome = workbench.run("--evaluator", "no-such-runner")
    assert (outcome.code, outcome.err) == (
        5,
        "error: no program 'no-such-runner' on PATH to run the eval suite with\n",
    )


def test_no_verdict(workbench: Any) -> None:
    """A report that cannot be read is no verdict: 5, and the closest candidate is not called conforming."""
    (workbench.directory / "suite" / "check.py").write_text("import sys; open(sys.argv[1], 'w').write('{')")
    outcome = workbench.run("--json")
    result = json.loads(outcome.out)
    assert outcome.code == 5
    assert (result["status"], result["state"], result["exit_code"]) == ("open", "evaluating", 5)
    assert result["candidate_path"] is None


def test_dry_run(workbench: Any) -> None:
    """A dry run prints digests, limits and the first prompt; it calls nothing and leaves nothing behind."""
    outcome = workbench(*workbench.judged("--generator", "false", "--dry-run", "--time", "10m", "--tokens", "200k"))
    facts, _, prompt = outcome.out.partition("\n\n")
    assert (outcome.code, outcome.err) == (0, "")
    assert [line.split()[0] for line in facts.splitlines()] == [
        "spec", "cases", "generator", "evaluator", "strategy", "language", "limits", "prompt",
    ]  # fmt: skip
    assert "limits     5 attempts, 10m, 200,000 tokens, 3 repeats" in facts.splitlines()
    assert prompt.startswith("# Task\n")
    assert not (workbench.directory / "runs").exists()


def test_dry_run_as_json(workbench: Any) -> None:
    """The same as JSON, with the limits as numbers."""
    (workbench.directory / "told.toml").write_text('[generator]\ncommand = "false"\noutput = "json"\n')
    outcome = workbench(*workbench.judged("-c", "told.toml", "--dry-run", "--json", "--money", "0.5"))
    shown = json.loads(outcome.out)
    assert shown["budget"] == {
        "attempts": 5, "seconds": None, "tokens": None, "input_tokens": None, "output_tokens": None,
        "money_micro": 500_000, "repeats": 3,
    }  # fmt: skip
    assert shown["prompt"].startswith("# Task\n")


@pytest.mark.parametrize(
    ("generator", "remedy"),
    [
        (("--generator", "cat"), "have the program report it (`output = "),
        (
            ("--model", "small", "--base-url", "http://localhost:9/v1"),
            "name a table of prices, `prices` in [generator]",
        ),
    ],
)
def test_a_limit_of_money_needs_somebody_who_counts_it(workbench: Any, generator: tuple[str, ...], remedy: str) -> None:
    """Where nobody knows what a call costs the first would use it all up: 2, before anything is recorded."""
    outcome = workbench(*workbench.judged(*generator, "--money", "0.5"))
    assert (outcome.code, outcome.out, "nobody knows what a call costs" in outcome.err, remedy in outcome.err) == (
        2, "", True, True,
    )  # fmt: skip
    assert not (workbench.directory / "runs").exists()


def test_a_model_answers_in_one_fenced_block(workbench: Any) -> None:
    """Unless another extraction is named: that is how models answer, and the prompt asks for it."""
    pytest.importorskip("openai", reason="the SDK is not installed")
    model = ("--model", "small", "--base-url", "http://localhost:9/v1")
    outcome = workbench(*workbench.judged(*model, "--dry-run"))
    assert "generator  openai:small@localhost:9+fenced" in outcome.out.splitlines()
    assert "in one fenced code block" in outcome.out


FAULTS = {
    "no generator": (
        ("run", "spec.toml"),
        ("error: no generator: name a program with --generator 'PROGRAM ARGUMENTS', a model with --model, or one of "
        "them in [generator] of a configuration"),
    ),
    "no suite": (
        ("run", "spec.toml", "--generator", "cat"),
        "error: no eval suite: name its directory with --suite, or in [evaluator] of a configuration",
    ),
    "suite is no directory": (
        ("run", "spec.toml", "--generator", "cat", "--suite", "spec.toml"),
        "error: the eval suite 'spec.toml' is not a directory: name the one that holds it",
    ),
    "no candidate file": (
        ("run", "spec.toml", "--generator", "cat", "--suite", "suite"),
        ("error: no candidate file: say under which name the suite finds a candidate, with --candidate-file NAME "
        "or as candidate-file in [evaluator] of a configuration"),
    ),
    "unsafe candidate file": (
        ("run", "spec.toml", "--generator", "cat", "--suite", "suite", "--candidate-file", "../x"),
        "error: the candidate's file '../x' has '..' as a part of its path",
    ),
    "candidate file in the suite": (
        ("run", "spec.toml", "--generator", "cat", "--suite", "suite", "--candidate-file", "check.py"),
        "error: the eval suite holds 'check.py' itself, where candidates are written: take it out of 'suite'",
    ),
    "no spec": (
        ("run", "spce.toml", "--generator", "cat"),
        "error: spce.toml: no such file or directory",
    ),
    "bad limit": (
        ("run", "spec.toml", "--time", "10x"),
        "error: --time: expected a duration such as 90s, 10m, 1h30m, or 'unlimited', found '10x'",
    ),
    "no limit": (
        ("run", "spec.toml", "--attempts", "unlimited", "--generator", "cat", "--suite", "suite",
         "--candidate-file", "colours.txt"),
        (
            "error: a budget needs at least one of attempts, seconds, tokens, input_tokens and output_tokens: "
            "calls that cost nothing, or never repeat, would go on for ever"
        ),
    ),
    "unbalanced quotes": (
        ("run", "spec.toml", "--generator", "cat 'x"),
        "error: --generator: No closing quotation",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
def test_usage(workbench: Any, fault: str) -> None:
    """What is wrong with a request is said in one line that names the remedy: 2, and nothing is spent."""
    arguments, message = FAULTS[fault]
    outcome = workbench(*arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", message + "\n")
    assert not (workbench.directory / "runs").exists()


def test_configuration_file(workbench: Any) -> None:
    """A configuration can say it all; what the command line says wins."""
    (workbench.directory / "loop.toml").write_text(
        """
        journal = "elsewhere.sqlite"
        [generator]
        command = ["sh", "-c", "echo red"]
        name = "echo"
        [evaluator]
        command = ["{python}", "check.py", "{report}"]
        report = "json"
        suite = "suite"
        candidate-file = "colours.txt"
        [budget]
        attempts = 7
        """
    )
    outcome = workbench("run", "spec.toml", "-c", "loop.toml", "--attempts", "1", "--runs", "kept")
    assert outcome.code == 3
    assert "generator echo  limits 1 attempt, 3 repeats" in outcome.err
    (run_id,) = (path.name for path in (workbench.directory / "kept").iterdir())
    journal = workbench.directory / "elsewhere.sqlite"
    assert f"look at it: orchestrator show {run_id} --runs {journal} --attempt 1\n" in outcome.err
    assert workbench("show", run_id, "--runs", str(journal)).code == 0


def test_configuration_faults(workbench: Any) -> None:
    """Every fault of a configuration is told at once, each with its place and what was probably meant."""
    (workbench.directory / "loop.toml").write_text(
        '[generator]\ncomand = "cat"\n[budget]\nattempts = true\ntime = "soon"\n[strategy]\nkind = "naive"\n'
    )
    outcome = workbench("run", "spec.toml", "-c", "loop.toml")
    assert (outcome.code, outcome.err) == (
        2,
        (
            "error: loop.toml: $.generator.comand: unknown key (did you mean 'command'?)\n"
            "loop.toml: $.budget.attempts: expected a string or an integer, found a boolean True\n"
            "loop.toml: $.budget.time: expected a duration such as 90s, 10m, 1h30m, or 'unlimited', found 'soon'\n"
            "loop.toml: $.strategy.kind: expected one of 'failure-feedback', 'naive-retry', 'parameter-variation', "
            "'seed-mixing', found a string 'naive' (did you mean 'naive-retry'?)\n"
        ),
    )


def test_hostile_text_is_inert(workbench: Any) -> None:
    """Nothing that a candidate, a suite or a spec says reaches the terminal as a control or as markup."""
    (workbench.directory / "suite" / "check.py").write_text(
        "import json, sys\n"
        "case = {'id': 'names_red\\x1b[2J', 'status': 'failed', 'message': '\\x1b]0;own\\x07[red]\\u202ekcatta'}\n"
        "json.dump({'protocol': 'orchestrator.report/1', 'cases': [case]}, open(sys.argv[1], 'w'))\n"
    )
    outcome = workbench.run("--attempts", "1", answers=("\x1b[31mred",))
    shown = workbench("show", "last", "--attempt", "1")
    for text in (outcome.out, outcome.err, shown.out):
        assert not set(text) & {"\x1b", "\x07", "\u202e"}
    assert "[red]kcatta" in shown.out


def test_errors_have_no_traceback(workbench: Any) -> None:
    """A directory that cannot be written is one line, which names the option, and 2; `-v` adds where it happened."""
    (workbench.directory / "runs").write_text("in the way")
    outcome = workbench.run()
    loud = workbench.run("-v")
    assert (outcome.code, loud.code) == (2, 2)
    assert outcome.err == "error: runs: not a directory: name a directory that can be written with --runs\n"
    assert loud.err.startswith("Traceback (most recent call last):")
    assert loud.err.endswith(outcome.err)
