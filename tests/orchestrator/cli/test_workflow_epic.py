"""The shipped domain: an epic whose stories are planned, implemented, tested, reviewed and completed, offline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from orchestrator.workflow.examples.software_epic.epics import SHIPPED

WAY = [
    "00-init",
    *("01-story", "02-plan", "03-implement", "04-test", "05-review", "06-complete"),
    *("01-story", "02-plan", "03-implement", "04-test", "05-review"),
    *("03-implement", "04-test", "05-review", "06-complete", "done"),
]


def exported(workbench: Any) -> list[dict[str, Any]]:
    """The records of the last run."""
    return [record["body"] for record in json.loads(workbench("export", "last").out)["records"]]


def test_the_epic_comes_to_its_end(workbench: Any) -> None:
    """Both stories are completed: one after a failed attempt, one sent back by its review; the audit is clean."""
    outcome = workbench("workflow", "run", "software-epic")
    assert (outcome.code, outcome.out.split("  ")[:3]) == (0, ["Workflow complete!", "small-tools", "16 executions"])
    records = exported(workbench)
    assert [record["target"] for record in records if record["lifecycle"] == "software-epic"] == WAY
    assert workbench("audit", "last").code == 0
    state = json.loads(Path("runs/state/small-tools-state.json").read_text())
    assert (state["phase"], state["stories"], state["review_notes"]) == (
        "done",
        [{"story": "slugs", "outcome": "completed"}, {"story": "shares", "outcome": "completed"}],
        ["Every module and every function has a docstring."],
    )
    for line in (
        "    slugs.py conforms after 2 attempts.",
        "    All 7 cases pass.",
        "    shares must be fixed: Every module and every function has a docstring.",
        "    shares: completed. 2 of 2 stories are completed.",
    ):
        assert line in outcome.err.splitlines()


def test_the_implementing_phase_is_a_conformance_run(workbench: Any) -> None:
    """Each round of a story is a run inside the workflow's, of its spec with its suite; one audit covers them all."""
    workbench("workflow", "run", "software-epic", "--display", "quiet")
    document = json.loads(workbench("export", "last").out)
    run_id = document["run"]
    assert [(child["run"], child["records"][-1]["body"]["target"]) for child in document["children"]] == [
        (f"{run_id}.03-implement.slugs.1", "passed"),
        (f"{run_id}.03-implement.shares.1", "passed"),
        (f"{run_id}.03-implement.shares.2", "passed"),
    ]
    assert workbench("audit", "last").code == 0
    assert workbench("show", f"{run_id}.03-implement.slugs.1").code == 0


def test_a_story_that_breaks_another_fails(workbench: Any) -> None:
    """The suites of all stories run on all modules: what breaks an earlier story is found, retried and escalated."""
    shutil.copytree(SHIPPED, "epic")
    suite = Path("epic/suites/test_shares.py.txt")
    # The second story's suite also looks at the first one's module, which it finds only when both are there.
    suite.write_text(
        suite.read_text()
        + "\n\ndef test_neighbours() -> None:\n"
        + '    """The other story is untouched."""\n'
        + "    import importlib.util\n"
        + '    assert importlib.util.find_spec("slugs") is None\n'
    )
    spec = Path("epic/stories/shares.toml")
    spec.write_text(spec.read_text() + '\n[[evals.cases]]\nname = "test_shares::test_neighbours"\n')
    outcome = workbench("workflow", "run", "software-epic", "--param", "epic=epic")
    assert outcome.code == 0
    state = json.loads(Path("runs/state/small-tools-state.json").read_text())
    assert [each["outcome"] for each in state["stories"]] == ["completed", "failed"]
    names = [record["event"].get("operation") for record in exported(workbench) if record["name"] == "retry:exhausted"]
    assert names == ["test"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("stories: [slugs, shares]", "stories: []"), "is empty: name a story"),
        (("stories: [slugs, shares]", "stories: [slugs, nothing]"), "nothing.toml is not there"),
        (("id: small-tools", "ident: small-tools"), "ident"),
    ],
)
def test_an_epic_that_is_not_whole(workbench: Any, change: tuple[str, str], said: str) -> None:
    """An epic with faults is an error of the first phase, which names them: the workflow pauses there, status 8."""
    shutil.copytree(SHIPPED, "epic")
    file = Path("epic/epic.yaml")
    file.write_text(file.read_text().replace(*change))
    outcome = workbench("workflow", "run", "software-epic", "--param", "epic=epic")
    assert (outcome.code, outcome.out.split("  ")[:2]) == (8, ["paused in 00-init", "phase error"])
    assert said in outcome.err


def test_every_transition_can_be_taken(workbench: Any) -> None:
    """`workflow check` takes all transitions of the shipped domain."""
    outcome = workbench("workflow", "check", "software-epic", "--json")
    told = json.loads(outcome.out)
    assert (outcome.code, told["transitions"], told["faults"], told["warnings"]) == (0, 12, [], [])
