"""What the command line says of isolation and integrity, and what it refuses for them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.cli.appearance import ASCII
from orchestrator.cli.isolationlines import integrity_line, isolation_lines, unheld_line
from orchestrator_events.execution import IsolationEstablished
from orchestrator_events.isolation import IN_PROCESS, Isolation, Probe

HELD = Isolation(level="strong", backend="bubblewrap", version="0.8.0", not_enforced=("memory in all",))


def test_the_header_names_both_levels_and_what_is_missing() -> None:
    """What nothing holds back is told once where it is the same for both, else for each."""
    same = IsolationEstablished(required="strong", generator=HELD, evaluator=HELD)
    whole = attrs.evolve(HELD, not_enforced=())
    told = [
        [str(line) for line in isolation_lines(attrs.evolve(same, generator=first, evaluator=second), ASCII)]
        for first, second in ((HELD, HELD), (HELD, whole), (whole, whole))
    ]
    levels = "isolation  generator strong (bubblewrap 0.8.0) - evaluator strong (bubblewrap 0.8.0)"
    assert told == [
        [levels, "not enforced: memory in all"],
        [levels, "not enforced: generator: memory in all"],
        [levels],
    ]


def test_the_header_names_what_was_tried() -> None:
    """Every probe with its outcome, told once where it is the same for both, else for each."""
    tried = (Probe("network: tcp", "denied"), Probe("forks", "bounded"), Probe("outside write", "denied"))
    both = attrs.evolve(HELD, probes=tried, not_enforced=())
    one = attrs.evolve(both, probes=(Probe("network: tcp", "allowed"),))
    told = [
        [str(line) for line in isolation_lines(IsolationEstablished(required="none", generator=a, evaluator=b), ASCII)]
        for a, b in ((both, both), (one, both))
    ]
    words = "denied network: tcp, outside write - bounded forks"
    assert [lines[1:] for lines in told] == [
        [f"probed: {words}"],
        [f"probed: generator: allowed network: tcp; evaluator: {words}"],
    ]


def test_hostile_words_of_an_adapter_are_inert() -> None:
    """An adapter of the host's own may say anything; nothing of it reaches the terminal as a control."""
    wild = Isolation(level="none", backend="\x1b[2Jown\nline", not_enforced=("\x1b]0;own\x07", "\u202ered"))
    lines = [
        str(line)
        for line in isolation_lines(IsolationEstablished(required="none", generator=wild, evaluator=HELD), ASCII)
    ]
    assert lines == [
        "isolation  generator none (own - evaluator strong (bubblewrap 0.8.0)",
        "not enforced: generator: , red; evaluator: memory in all",
    ]


def test_nothing_that_holds_is_always_told() -> None:
    """The line says which of the two runs with all rights."""
    established = IsolationEstablished(required="none", generator=IN_PROCESS, evaluator=HELD)
    assert (
        unheld_line(established),
        unheld_line(attrs.evolve(established, evaluator=IN_PROCESS)),
        unheld_line(attrs.evolve(established, generator=HELD)),
        unheld_line(None),
    ) == (
        "no isolation: the generator runs with all rights of this process",
        "no isolation: the generator and the evaluator run with all rights of this process",
        "",
        "",
    )


def test_integrity_in_words() -> None:
    """Who held the judge is told with what it means; nothing without a verdict."""
    assert [integrity_line(each) for each in ("separate", "cooperative", "host", "")] == [
        "integrity: separate - the judge runs in a process that the candidate is not in",
        "integrity: cooperative - the candidate shares the judge's process",
        "integrity: host - the evaluator does not say who holds the judge",
        "",
    ]


def test_a_separate_judge_that_nothing_protects_is_told() -> None:
    """Two processes of one user are apart in name only, unless a sandbox holds the candidate's."""
    strong = IsolationEstablished(required="none", generator=HELD, evaluator=HELD)
    basic = attrs.evolve(strong, evaluator=attrs.evolve(HELD, level="basic"))
    assert integrity_line("separate", strong) == integrity_line("separate")
    assert integrity_line("cooperative", basic) == integrity_line("cooperative")
    assert integrity_line("separate", basic) == (
        "integrity: separate - the judge runs in a process that the candidate is not in, "
        "but nothing keeps the two apart at isolation basic"
    )


def test_too_little_isolation_is_refused(workbench: Any) -> None:
    """Less than is required is 9 with the remedy, and leaves nothing that could be taken for a run."""
    outcome = workbench.run("--require-isolation", "strong", "--sandbox", "containment")
    assert (outcome.code, outcome.out) == (9, "")
    assert outcome.err == (
        "error: isolation strong is required, and only basic (containment) can be had: containment was chosen: "
        "choose auto or bubblewrap; or lower --require-isolation\n"
    )
    (workbench.directory / "strict.toml").write_text('require-isolation = "strong"\n')
    of_file = workbench.run("--sandbox", "containment", "-c", "strict.toml")
    assert (of_file.code, of_file.err.endswith("or lower require-isolation in strict.toml\n")) == (9, True)
    assert [path for path in (workbench.directory / "runs").iterdir() if path.is_dir()] == []


def test_a_resume_may_require_more(workbench: Any) -> None:
    """What a resume requires is held against what holds the programs then; the run is left as it was."""
    assert workbench.run("--attempts", "1", "--sandbox", "containment", answers=("red",)).code == 3
    outcome = workbench("resume", "last", "--attempts", "3", "--require-isolation", "strong")
    assert (outcome.code, "isolation strong is required" in outcome.err) == (9, True)
    assert workbench("resume", "last", "--attempts", "2", "--require-isolation", "basic").code == 3


def test_results_hold_the_whole_isolation(workbench: Any) -> None:
    """Result and `show` as JSON have level, probes, limits and what is missing once, and words for each attempt."""
    outcome = workbench.run("--sandbox", "containment", "--json")
    result = json.loads(outcome.out)
    held = result["isolation"]["evaluator"]
    (attempt,) = result["history"]
    assert (result["isolation"]["required"], held["level"], held["backend"]) == ("none", "basic", "containment")
    assert "files of the user" in held["not_enforced"]
    assert {name: attempt[name] for name in ("generator_isolation", "evaluator_isolation")} == {
        "generator_isolation": "basic (containment)",
        "evaluator_isolation": "basic (containment)",
    }
    assert attempt["integrity"] == result["integrity"]
    assert json.loads(workbench("show", "last", "--json").out)["isolation"] == result["isolation"]


def test_what_the_machine_offers(workbench: Any) -> None:
    """Every rung of the ladder is told with whether it works, then what holds a generator and a suite."""
    outcome = workbench("isolation")
    rungs = [line.split()[:2] for line in outcome.out.splitlines()[:4]]
    assert (outcome.code, outcome.err, rungs) == (
        0, "",
        [["strong", "bubblewrap"], ["strong", "container"], ["basic", "containment"], ["none", "in-process"]],
    )  # fmt: skip
    assert re.findall(r"^(generator|evaluator)  (?:basic|strong) \(", outcome.out, re.MULTILINE) == [
        "generator", "evaluator",
    ]  # fmt: skip


def test_what_the_machine_offers_as_json(workbench: Any) -> None:
    """The same for programs."""
    told = json.loads(workbench("isolation", "--json").out)
    assert [(rung["level"], rung["backend"]) for rung in told["levels"]] == [
        ("strong", "bubblewrap"), ("strong", "container"), ("basic", "containment"), ("none", "in-process"),
    ]  # fmt: skip
    assert {*told["generator"]} == {"level", "backend", "version", "probes", "limits", "not_enforced"}


def test_without_bubblewrap_the_remedy_is_told(workbench: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where nothing strong works, every rung that does not says what to install, and basic is what holds."""
    monkeypatch.setenv("PATH", str(tmp_path))
    told = json.loads(workbench("isolation", "--json").out)
    first, second, third, _ = told["levels"]
    assert ("apt install bubblewrap" in first["remedy"], "install podman or docker" in second["remedy"]) == (True, True)
    assert [rung["works"] for rung in (first, second, third)] == [False, False, True]
    assert (told["generator"]["level"], told["evaluator"]["level"]) == ("basic", "basic")


KINDS = {
    "two generators": (
        ("--generator", "cat", "--model", "small"),
        "error: --generator and --model name two generators: keep one of them\n",
    ),
    "a server without a model": (
        ("--generator", "cat", "--base-url", "http://localhost/v1"),
        "error: $.base_url: a generator named by command does not take it: remove it\n",
    ),
    "a network for a server": (
        ("--model", "small", "--network", "none"),
        "error: $.network: a generator named by model does not take it: remove it\n",
    ),
}


@pytest.mark.parametrize("fault", KINDS)
def test_kinds_that_do_not_fit_together(workbench: Any, fault: str) -> None:
    """Options that belong to different kinds of generators are 2, and nothing is run."""
    arguments, message = KINDS[fault]
    outcome = workbench(*workbench.judged(*arguments))
    assert (outcome.code, outcome.out, outcome.err) == (2, "", message)


def test_another_generator_drops_what_only_the_old_one_takes(workbench: Any) -> None:
    """A program on the command line replaces a configured function; what both take stays."""
    (workbench.directory / "loop.toml").write_text(
        '[generator]\nfunction = "a:b"\npath = ["x"]\nnetwork = "none"\nparameters = { n = 1 }\n'
    )
    outcome = workbench(*workbench.judged("-c", "loop.toml", "--generator", "echo red green"))
    assert outcome.code == 0
    kept = json.loads((workbench.directory / "runs" / workbench.run_id / "configuration.json").read_text())
    assert {name: kept["generator"].get(name) for name in ("command", "function", "path", "network", "parameters")} == {
        "command": ["echo", "red", "green"], "function": None, "path": None, "network": "none",
        "parameters": {"n": 1},
    }  # fmt: skip


def test_a_program_without_network(workbench: Any) -> None:
    """`--network none` reaches the sandbox: what a program cannot do then is not listed as unenforced."""
    result = json.loads(workbench.run("--network", "none", "--json").out)
    held = result["isolation"]["generator"]
    if held["level"] != "strong":
        pytest.skip("only a sandbox takes the network away, and none works here")
    assert "network" not in held["not_enforced"]
