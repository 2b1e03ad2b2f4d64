"""`workflow`: phased workflows from the command line, their decisions, and what is kept of them."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOMAIN = """
domain: colours
title: Colours

phases:
  - {id: mix, purpose: Mix it., callable: "colours_phases:mix", next: [paint]}
  - {id: paint, purpose: Paint it., callable: "colours_phases:paint", next: [mix, done]}
  - done

item: colour
parameters:
  colour: {type: string, description: The colour to mix.}
  coats: {type: integer, default: 1}
state:
  type: object
  properties: {title: {type: string}, colour: {type: string}, coats: {type: integer}}
  additionalProperties: false
"""

PHASES = """
from pathlib import Path
from orchestrator.workflow import PhaseOutcome

def mix(state, components):
    colour, coats = state["parameters"]["colour"], state["parameters"]["coats"]
    updates = {"workflow_id": f"{colour}-1", "title": f"All {colour}", "colour": colour, "coats": coats}
    return PhaseOutcome("paint", updates, f"{coats} of {colour}")

def paint(state, components):
    if Path("no-brush").exists():
        raise RuntimeError("there is no \\x1b[31mbrush")
    return PhaseOutcome("done", {"coats": 0}, "it is painted")
"""

PAUSED = """\
Workflow: workflow-new - Colours
· mix
  finished in TIME, then paint
    1 of red
Workflow: red-1 - All red
· paint
  ✗ failed, 1 in a row
    recorded lr-DAY-001
    Error encountered: RuntimeError: there is no brush
  Error: RuntimeError: there is no brush
  retry, skip, or abort?
decide it: orchestrator workflow decide RUN retry
go on with it: orchestrator workflow resume RUN
"""


@pytest.fixture(autouse=True)
def colours(workbench: Any) -> Iterator[Path]:
    """The domain in a directory of its own; its module is forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    directory: Path = workbench.directory / "colours"
    directory.mkdir()
    (directory / "domain.yaml").write_text(DOMAIN)
    (directory / "colours_phases.py").write_text(PHASES)
    yield directory
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.endswith("_phases"):
            del sys.modules[name]


def run_red(workbench: Any, *arguments: str) -> Any:
    """A workflow of the domain."""
    return workbench("workflow", "run", "colours", "--param", "colour=red", *arguments)


def test_a_workflow_is_run_to_its_end(workbench: Any, normalised: Any) -> None:
    """Progress goes to standard error, the outcome in one line to standard output, the state to its file: status 0."""
    outcome = run_red(workbench, "--param", "coats=2")
    assert (outcome.code, normalised(outcome.out)) == (
        0,
        "Workflow complete!  red-1  2 executions  TIME  0 tokens\n",
    )
    assert normalised(outcome.err).splitlines() == [
        "Workflow: workflow-new - Colours",
        "· mix",
        "  finished in TIME, then paint",
        "    2 of red",
        "Workflow: red-1 - All red",
        "· paint",
        "  finished in TIME, then done",
        "    it is painted",
        "  Workflow complete!",
    ]
    state = json.loads((workbench.directory / "colours" / "state" / "red-1-state.json").read_text())
    assert (state["phase"], state["parameters"], state["coats"]) == ("done", {"colour": "red", "coats": 2}, 0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((), "--param colour: required parameter is missing: The colour to mix."),
        (("colour=red", "coat=1"), "--param coat: unknown parameter"),
        (("colour=red", "coats=many"), "--param coats: expected integer, found string"),
        (("colour",), "--param 'colour' is not KEY=VALUE"),
        (("colour=red", "colour=blue"), "--param colour is given twice"),
    ],
)
def test_parameters_are_checked(workbench: Any, given: tuple[str, ...], said: str) -> None:
    """A parameter that the domain does not declare so is refused before anything is written: status 2."""
    options = [word for text in given for word in ("--param", text)]
    outcome = workbench("workflow", "run", "colours", *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"error: {said}")
    assert not (workbench.directory / "runs").exists()


def test_parameters_are_in_the_journal(workbench: Any) -> None:
    """What a workflow was started with is its first record's prompt."""
    run_red(workbench)
    exported = json.loads(workbench("export", "last").out)
    digest = exported["records"][0]["body"]["event"]["prompt"]["sha256"]
    assert json.loads(exported["blobs"][digest]) == {"colour": "red", "coats": 1}


def test_without_a_terminal_it_pauses(workbench: Any, normalised: Any) -> None:
    """A phase that fails with nobody to ask and no policy pauses the workflow: status 8, and the resume line."""
    Path("no-brush").touch()
    outcome = run_red(workbench)
    assert (outcome.code, normalised(outcome.out)) == (
        8,
        "paused in paint  phase error  red-1  2 executions  TIME  0 tokens\n",
    )
    assert re.sub(r"\d{4}-\d\d-\d\d", "DAY", normalised(outcome.err)) == PAUSED


def test_a_policy_decides(workbench: Any) -> None:
    """What the domain's policy chooses is not asked; skipping goes on with what is declared next."""
    with Path("colours/domain.yaml").open("a") as file:
        file.write("policy: {phase_error: abort}\n")
    Path("no-brush").touch()
    outcome = run_red(workbench)
    assert (outcome.code, outcome.out.split("  ")[:2]) == (1, ["aborted", "policy chose to abort"])


def test_it_is_decided_and_goes_on(workbench: Any) -> None:
    """`decide` shows what can be chosen, refuses what cannot with nothing written, and goes on with a choice."""
    Path("no-brush").touch()
    run_red(workbench)
    shown = workbench("workflow", "decide", "red-1")
    assert (shown.code, shown.out.splitlines()[:2]) == (
        8,
        ["phase error in phase paint: Error: RuntimeError: there is no brush", "options: retry, skip, abort"],
    )
    records = len(json.loads(workbench("export", "last").out)["records"])
    refused = workbench("workflow", "decide", "red-1", "forget")
    assert (refused.code, refused.err) == (
        2,
        "error: 'forget' cannot be chosen: it is not one of the options; choose one of retry, skip, abort\n",
    )
    assert len(json.loads(workbench("export", "last").out)["records"]) == records
    Path("no-brush").unlink()
    decided = workbench("workflow", "decide", "red-1", "retry")
    assert (decided.code, decided.err.splitlines()[:2]) == (
        0,
        ["  Resuming from phase: paint", "  decided by person: retry, on with paint"],
    )
    assert workbench("workflow", "decide", "red-1").out == "workflow red-1 waits for no decision: it is done\n"


def test_resume_of_what_waits_tells_it_again(workbench: Any, normalised: Any) -> None:
    """Without a terminal `resume` can only say what has to be decided, with status 8 once more."""
    Path("no-brush").touch()
    run_red(workbench)
    outcome = workbench("workflow", "resume", "red-1", "--display", "quiet")
    assert (outcome.code, normalised(outcome.err).splitlines()) == (
        8,
        [
            "Error: RuntimeError: there is no brush",
            "options: retry, skip, abort",
            "decide it: orchestrator workflow decide RUN retry",
            "go on with it: orchestrator workflow resume RUN",
        ],
    )


def test_a_state_is_provided(workbench: Any) -> None:
    """A state file that was lost is provided again with `--state`, and the workflow goes on with it."""
    Path("no-brush").touch()
    run_red(workbench)
    file = Path("colours/state/red-1-state.json")
    kept = file.rename("kept.json")
    lost = workbench("workflow", "decide", "red-1", "retry")
    assert (lost.code, "State file not found. Cannot resume." in lost.err) == (8, True)
    Path("no-brush").unlink()
    assert workbench("workflow", "decide", "red-1", "provide state", "--state", str(kept)).code == 0
    assert json.loads(file.read_text())["phase"] == "done"


def test_what_is_done_is_not_resumed(workbench: Any) -> None:
    """A workflow that came to its end cannot be resumed: status 7."""
    run_red(workbench)
    assert workbench("workflow", "resume", "red-1").code == 7


def test_status(workbench: Any, normalised: Any) -> None:
    """The checklist with each phase's status, how it stands, what it waits for, and the state."""
    Path("no-brush").touch()
    run_red(workbench)
    outcome = workbench("workflow", "status")
    told, _, state = normalised(outcome.out).partition("state\n")
    assert told.splitlines() == [
        "Workflow: red-1 - All red",
        "  ✔ Phase: mix        completed",
        "  ▸ Phase: paint      in_progress",
        "    ▸ Item: red       in_progress",
        "  ○ Phase: done       pending",
        "paused until somebody decides  phase paint  2 executions  TIME",
        "  Error: RuntimeError: there is no brush",
        "  options: retry, skip, abort",
        "decide it: orchestrator workflow decide RUN retry",
        "1 learning record, 0 resolved: orchestrator workflow learnings RUN",
    ]
    assert json.loads(state)["error"] == "RuntimeError: there is no brush"
    told = json.loads(workbench("workflow", "status", "red-1", "--json").out)
    assert (told["status"], told["decision"]["options"], told["executions"]) == (
        "paused",
        ["retry", "skip", "abort"],
        {"mix": 1, "paint": 1},
    )


def test_status_of_what_is_done(workbench: Any) -> None:
    """At the end every phase is completed."""
    run_red(workbench)
    listed = json.loads(workbench("workflow", "status", "--json").out)["todos"]
    assert listed == [{"content": f"Phase: {phase}", "status": "completed"} for phase in ("mix", "paint", "done")]


def test_json(workbench: Any) -> None:
    """`--json` prints the result alone on standard output, the same as result.json and the exit status."""
    Path("no-brush").touch()
    outcome = run_red(workbench, "--json", "--display", "quiet")
    printed = json.loads(outcome.out)
    kept = json.loads((workbench.directory / "runs" / printed["run"] / "result.json").read_text())
    assert printed == kept
    assert (printed["status"], printed["workflow"], printed["exit_code"], printed["decision"]["about"]) == (
        "paused",
        "red-1",
        8,
        "phase error",
    )


def test_graph(workbench: Any) -> None:
    """A domain's phases are drawn in every form; for a workflow with visits."""
    run_red(workbench)
    assert "phase:entered [phase=paint]" in workbench("workflow", "graph", "colours").out
    assert re.search("paint +\N{MULTIPLICATION SIGN}1", workbench("workflow", "graph", "red-1").out)
    for form in ("mermaid", "dot", "svg"):
        assert "paint" in workbench("workflow", "graph", "red-1", "--format", form).out
    table = json.loads(workbench("workflow", "graph", "colours", "--format", "json").out)
    assert table["states"] == ["begun", "mix", "paint", "done"]


def test_an_audit_of_a_workflow_is_clean(workbench: Any) -> None:
    """The export of a workflow is audited like that of any run."""
    Path("no-brush").touch()
    run_red(workbench)
    workbench("workflow", "decide", "red-1", "skip")
    assert workbench("audit", "last").code == 0


def test_check(workbench: Any) -> None:
    """Every transition is taken with scripted phases: the walks are told, and nothing is left behind."""
    outcome = workbench("workflow", "check", "colours")
    assert (outcome.code, outcome.out.splitlines()) == (
        0,
        ["mix > paint > mix > paint > done", "colours: 3 phases, 3 transitions, all taken in 1 walk"],
    )
    assert not Path("runs").exists()
    assert not Path("colours/state").exists()


def test_check_finds_what_nothing_executes(workbench: Any, colours: Path) -> None:
    """A callable that is not there and a phase file that is not there are faults, all told at once: status 2."""
    text = (
        DOMAIN.replace(":paint", ":pain").replace("[mix, done]", "[mix, dry]").replace("  - done", "  - dry\n  - done")
    )
    (colours / "domain.yaml").write_text(text)
    outcome = workbench("workflow", "check", "colours")
    faults = [line for line in outcome.out.splitlines() if line.startswith("fault: ")]
    missing = colours / "phases" / "dry.md"
    assert (outcome.code, len(faults), faults[0]) == (
        2,
        2,
        f"fault: phase dry: there is no {missing}: write it, or name a callable",
    )
    assert "colours_phases:pain cannot be imported" in faults[1]


def test_check_of_a_broken_file(workbench: Any, colours: Path) -> None:
    """A domain file with faults is refused with all of them at once: status 2."""
    (colours / "domain.yaml").write_text(DOMAIN.replace("paint]", "pint]").replace("item: colour", "itme: colour"))
    outcome = workbench("workflow", "check", "colours")
    assert outcome.code == 2
    assert "itme" in outcome.err


@pytest.mark.parametrize("command", ["check", "run"])
def test_a_broken_file_with_phases_that_nothing_executes(workbench: Any, colours: Path, command: str) -> None:
    """What is wrong with a domain file, its phase files and its callables comes in one answer: status 2."""
    text = DOMAIN.replace(":paint", ":pain").replace("[mix, done]", "[mix, dry]")
    text = text.replace("  - done", "  - {id: dry, file: dry.md, next: [air]}\n  - air\n  - done")
    (colours / "domain.yaml").write_text(text.replace("item: colour", "itme: colour"))
    (colours / "colours_phases.py").write_text("print('imported')\n" + PHASES)
    outcome = workbench("workflow", command, "colours")
    assert (outcome.code, outcome.out) == (2, "")
    assert re.findall(r"\$[^:]*:", outcome.err) == [
        "$.itme:",
        "$.phases[2].file:",
        "$.phases[3]:",
        "$.phases[1].callable:",
    ]


def test_a_graph_imports_nothing(workbench: Any, colours: Path) -> None:
    """Who draws a broken domain is told of its faults; its callables are left alone."""
    (colours / "domain.yaml").write_text(DOMAIN.replace("item: colour", "itme: colour"))
    (colours / "colours_phases.py").write_text("raise SystemExit(7)\n")
    outcome = workbench("workflow", "graph", "colours")
    assert (outcome.code, outcome.err.count("$")) == (2, 1)


def test_two_domains_in_a_directory(workbench: Any, colours: Path) -> None:
    """Of two domain files in one directory none is taken silently: status 2."""
    (colours / "domain.toml").write_text('domain = "other"\n')
    outcome = workbench("workflow", "check", "colours")
    assert (outcome.code, outcome.err) == (
        2,
        "error: colours holds domain.yaml and domain.toml: name the one that is meant\n",
    )
    assert workbench("workflow", "check", "colours/domain.yaml").code == 0


@pytest.mark.parametrize("name", ["nowhere", "runs", "software-epik"])
def test_no_domain(workbench: Any, name: str) -> None:
    """A name that is no domain says what could be named: status 2."""
    Path("runs").mkdir()
    outcome = workbench("workflow", "run", name)
    assert (outcome.code, outcome.out) == (2, "")
    assert "software-epic" in outcome.err or "domain.yaml" in outcome.err


def test_no_workflow(workbench: Any) -> None:
    """A name that is no workflow is refused: status 2."""
    run_red(workbench)
    outcome = workbench("workflow", "status", "blue-1")
    assert (outcome.code, outcome.err.startswith("error: no workflow 'blue-1'")) == (2, True)


def test_new(workbench: Any) -> None:
    """The skeleton works as it is: its transitions can be taken and its workflow comes to the end."""
    made = workbench("workflow", "new", "release-notes")
    assert (made.code, made.out.splitlines()) == (
        0,
        [
            "release-notes/domain.yaml",
            "release-notes/release_notes_phases.py",
            "release-notes/test_release_notes.py",
            "release-notes/phases/02-work.md",
            "",
            "run it:   orchestrator workflow run release-notes",
            "check it: orchestrator workflow check release-notes",
        ],
    )
    assert workbench("workflow", "check", "release-notes").out.splitlines()[-1] == (
        "release-notes: 4 phases, 4 transitions, all taken in 1 walk"
    )
    outcome = workbench("workflow", "run", "release-notes", "--param", 'items=["red"]', "--param", "id=two")
    assert (outcome.code, outcome.out.split("  ")[:3]) == (0, ["Workflow complete!", "two", "4 executions"])


def test_new_overwrites_nothing(workbench: Any) -> None:
    """What is there already stays, and a name that cannot be one is refused: status 2."""
    workbench("workflow", "new", "release-notes")
    before = Path("release-notes/domain.yaml").read_bytes()
    assert workbench("workflow", "new", "release-notes").code == 2
    assert Path("release-notes/domain.yaml").read_bytes() == before
    for name in ("Release", "../x", "run", ""):
        assert workbench("workflow", "new", name).code == 2


def test_a_phase_file_needs_a_generator(workbench: Any, colours: Path) -> None:
    """A phase that is a file is executed by the generator that is named; without one nothing begins: status 2."""
    text = DOMAIN.replace(', callable: "colours_phases:paint"', "")
    (colours / "domain.yaml").write_text(text)
    (colours / "phases").mkdir()
    (colours / "phases" / "paint.md").write_text("# Paint it\n")
    assert run_red(workbench).code == 2
    answer = json.dumps({"next_phase": "done", "state_updates": {"coats": 0}, "output": "brushed"})
    (workbench.directory / "model.py").write_text(f"import sys\nsys.stdin.read()\nprint({answer!r})\n")
    outcome = run_red(workbench, "--generator", f"{sys.executable} -S {workbench.directory / 'model.py'}")
    assert (outcome.code, "    brushed" in outcome.err.splitlines()) == (0, True)


def test_a_limit_is_raised(workbench: Any, normalised: Any) -> None:
    """A workflow that reached a limit pauses, with status 8 and the option to raise; with it, it goes on."""
    paused = run_red(workbench, "--attempts", "1")
    assert (paused.code, normalised(paused.err).splitlines()[-2:]) == (
        8,
        [
            "  The budget's limit 'attempts' is reached: 1 of 1 attempts used",
            "go on with it: orchestrator workflow resume RUN --attempts MORE",
        ],
    )
    resumed = workbench("workflow", "resume", "red-1", "--attempts", "5")
    assert (resumed.code, resumed.err.splitlines()[:2]) == (
        0,
        ["  Resuming from phase: paint", "  decided by person: go on, on with paint"],
    )


def test_a_domain_in_markdown(workbench: Any, colours: Path) -> None:
    """A domain in the form of a Markdown file is found in its directory and checked like any other."""
    (colours / "domain.yaml").unlink()
    (colours / "orchestrator.md").write_text(
        "# Painting\n\nextends: sage/core/components/orchestrator-base.md\n\n## Domain: painting\n\n## Phases\n\n"
        "| Phase | File | Purpose |\n|---|---|---|\n| mix | colours_phases:mix | Mix |\n"
        "| paint | colours_phases:paint | Paint |\n| done | - | Workflow complete |\n"
    )
    outcome = workbench("workflow", "check", "colours")
    assert (outcome.code, outcome.out.splitlines()[-1]) == (
        0,
        "painting: 3 phases, 6 transitions, all taken in 2 walks",
    )


def test_a_long_phase_file_warns(workbench: Any, colours: Path) -> None:
    """A phase file beyond a hundred lines warns on standard error before a run and before it goes on."""
    (colours / "phases").mkdir()
    (colours / "phases" / "paint.md").write_text("line\n" * 101)
    (colours / "domain.yaml").write_text(DOMAIN.replace(', callable: "colours_phases:paint"', ""))
    told = "phases/paint.md: 101 lines; a phase performs bounded work in about 100: split the phase"
    outcome = run_red(workbench, "--generator", f"{sys.executable} -S -c pass")
    again = workbench("workflow", "resume", "red-1")
    assert (outcome.code, again.code) == (8, 8)
    assert [each.err.splitlines()[0].endswith(told) for each in (outcome, again)] == [True, True]
    assert [each.err.startswith("warning: ") for each in (outcome, again)] == [True, True]


def test_a_state_that_cannot_be_written_is_put_out(workbench: Any, colours: Path) -> None:
    """A write that fails puts the full state out on standard error, line by line, and pauses: status 8."""
    (colours / "state").mkdir()
    (colours / "state" / "red-1-state.json").write_text("theirs")
    outcome = run_red(workbench)
    lines = outcome.err.splitlines()
    begin = lines.index("  Failed to persist state") + 2
    put_out = json.loads("\n".join(lines[begin : lines.index("  }", begin) + 1]))
    expected = {"phase": "paint", "workflow_id": "red-1", "colour": "red", "coats": 1}
    assert (outcome.code, {name: put_out[name] for name in expected}) == (8, expected)
    assert json.loads(workbench("workflow", "status", "--json").out)["state"] == put_out


def test_a_corrupt_state_is_put_out_raw(workbench: Any, colours: Path) -> None:
    """A state file that cannot be read is shown on standard error as it is, made inert, and left alone: status 8."""
    Path("no-brush").touch()
    run_red(workbench)
    file = colours / "state" / "red-1-state.json"
    file.write_text('{"phase": "paint",\n  mine: \x1b[31m7\n')
    outcome = workbench("workflow", "decide", "red-1", "retry")
    lines = outcome.err.splitlines()
    begin = lines.index("  State corrupted. Outputting raw for recovery.") + 2
    shown = lines[begin : begin + 2]
    assert (outcome.code, shown[0], shown[1].startswith("      mine: ")) == (8, '    {"phase": "paint",', True)
    assert ("\x1b" in outcome.err, "start fresh" in outcome.err) == (False, True)
    assert file.read_text() == '{"phase": "paint",\n  mine: \x1b[31m7\n'
