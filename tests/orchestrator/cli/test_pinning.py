"""`pin`: what a trusted candidate or run passes is written down, and later runs are held to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.pins import digest_of_suite, load_pins
from orchestrator.spec import load_spec

CONFIG = """
[generator]
command = "{generator}"

[evaluator]
command = "{{python}} -S check.py {{report}}"
suite = "suite"
candidate-file = "colours.txt"
report = "json"
"""
OPEN = 'name = "colours"\nintent = "Name the colours."\n'


@pytest.fixture
def bench(workbench: Any) -> Any:
    """A workbench whose spec names no case, with a configuration and a trusted candidate."""
    command = workbench.command()
    generator = command[command.index("--generator") + 1].replace("\\", "\\\\").replace('"', '\\"')
    (workbench.directory / "spec.toml").write_text(OPEN)
    (workbench.directory / "config.toml").write_text(CONFIG.format(generator=generator))
    (workbench.directory / "good.txt").write_text("red green")
    return workbench


def pinned(bench: Any) -> Any:
    """Pin the trusted candidate."""
    return bench("pin", "spec.toml", "--candidate", "good.txt", "-c", "config.toml")


def test_pin_a_candidate(bench: Any) -> None:
    """The file holds the passed ids, and the digests of spec and suite."""
    outcome = pinned(bench)
    pins = load_pins("pins.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith("pinned 3 cases in pins.json, from good.txt\nspec   sha256:")
    assert (pins.cases, pins.spec_digest, pins.suite_digest, pins.made_from) == (
        ("names_red", "names_green", "names_no_other"),
        load_spec("spec.toml").digest,
        digest_of_suite(bench.directory / "suite"),
        "good.txt",
    )


UNPINNED = "unpinned: nobody named the cases beforehand, they are taken from the report itself; `orchestrator pin` does"


def test_an_unpinned_verdict_says_so_wherever_it_is_told(bench: Any) -> None:
    """Progress, result, `show` and the report for people: such a verdict is not told like a pinned one."""
    command = ("run", "spec.toml", "-c", "config.toml")
    loose = bench(*command, "--json")
    shown, report = bench("show", "last").out, bench("export", "last", "--format", "md").out
    pinned(bench)
    with (bench.directory / "config.toml").open("a") as config:
        config.write('pins = "pins.json"\n')
    held = bench(*command, "--json")
    again, its_report = bench("show", "last").out, bench("export", "last", "--format", "md").out
    told = [
        ("conforms (unpinned)" in out, UNPINNED in out.splitlines(), is_pinned, "passed every reported case" in md)
        for out, is_pinned, md in (
            (loose.err, json.loads(loose.out)["is_pinned"], report),
            (shown, False, report),
            (held.err, json.loads(held.out)["is_pinned"], its_report),
            (again, True, its_report),
        )
    ]
    assert told == [(True, True, False, True)] * 2 + [(False, False, True, False)] * 2
    assert ("Unpinned: nobody" in report, "Unpinned" in its_report) == (True, False)


def test_candidate_that_fails_is_not_pinned(bench: Any) -> None:
    """A failing case is named, and no file is written."""
    (bench.directory / "good.txt").write_text("red")
    outcome = pinned(bench)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err == ("error: the candidate fails 1 case, nothing is pinned:\n  names_green  found ['red']\n")
    assert not (bench.directory / "pins.json").exists()


def test_less_isolation_than_is_required_pins_nothing(bench: Any) -> None:
    """What the configuration requires of a run, it requires of the suite here too."""
    config = bench.directory / "config.toml"
    config.write_text(f'require-isolation = "strong"\n{config.read_text()}\n[sandbox]\nbackend = "containment"\n')
    outcome = pinned(bench)
    assert (outcome.code, outcome.out, outcome.err[:36]) == (9, "", "error: isolation strong is required,")
    assert not (bench.directory / "pins.json").exists()


def test_control_that_does_not_fail_is_refused(bench: Any) -> None:
    """A trusted candidate proves the controls too: one that passes, or is misspelt, controls nothing."""
    config = bench.directory / "config.toml"
    config.write_text(config.read_text() + 'controls = ["names_red", "nmaes_blue"]\n')
    outcome = pinned(bench)
    assert (outcome.code, outcome.err) == (
        2, "error: controls must be reported failed, and these are not: names_red, nmaes_blue\n",
    )  # fmt: skip


def test_runs_are_held_to_the_pins(bench: Any) -> None:
    """A run with the pins passes; with a changed suite it is refused before anything is spent."""
    assert pinned(bench).code == 0
    config = bench.directory / "config.toml"
    config.write_text(config.read_text() + 'pins = "pins.json"\n')
    assert bench("run", "spec.toml", "-c", "config.toml").code == 0
    export = json.loads(bench("export", "last").out)
    bodies = [record["body"] for record in export["records"]]
    recorded = [body["event"] for body in bodies if body["name"] == "cases:pinned"]
    assert [event["cases"] for event in recorded] == [["names_red", "names_green", "names_no_other"]]
    assert bench("audit", "last").code == 0
    before = digest_of_suite(bench.directory / "suite")
    suite = bench.directory / "suite" / "check.py"
    suite.write_text(suite.read_text() + "# changed\n")
    outcome = bench("run", "spec.toml", "-c", "config.toml")
    now = digest_of_suite(bench.directory / "suite")
    assert (outcome.code, outcome.err) == (
        2, f"error: the suite was changed: it was {before}, it is {now}; pin its cases again\n",
    )  # fmt: skip


def test_pin_a_run(bench: Any) -> None:
    """What a run passed can be pinned; a run that did not pass cannot."""
    assert bench("run", "spec.toml", "-c", "config.toml").code == 0
    outcome = bench("pin", "--run", "last")
    pins = load_pins("pins.json")
    assert (outcome.code, outcome.err) == (0, "")
    assert (pins.cases, pins.made_from.startswith(f"run {bench.run_id}, candidate ")) == (
        ("names_red", "names_green", "names_no_other"), True,
    )  # fmt: skip


def test_run_that_failed_is_not_pinned(workbench: Any) -> None:
    """A run without a pass has nothing to pin."""
    assert workbench.run("--attempts", "1", answers=("red",)).code == 3
    outcome = workbench("pin", "--run", "last")
    assert (outcome.code, outcome.err) == (
        2, f"error: run {workbench.run_id} did not pass: only what passed can be pinned\n",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a spec and a trusted --candidate, or a --run that passed"),
        (("spec.toml", "--run", "x"), "--run pins what a run passed: name no spec and no candidate beside it"),
    ],
)
def test_what_to_pin_has_to_be_said(workbench: Any, arguments: tuple[str, ...], message: str) -> None:
    """Nothing, or two things at once, is a usage error."""
    outcome = workbench("pin", *arguments)
    assert (outcome.code, outcome.out, outcome.err) == (2, "", f"error: {message}\n")
