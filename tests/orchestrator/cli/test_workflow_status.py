"""`workflow status`, `decide` and names on the command line: who works on a workflow, whose id it is, its file."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOMAIN = """
domain: loaves
phases:
  - {id: knead, callable: "loaves_phases:knead"}
  - {id: bake, callable: "loaves_phases:bake"}
  - done
"""

PHASES = """
import os
import signal
import subprocess
import sys
from pathlib import Path
from orchestrator.workflow import PhaseOutcome

def knead(state, components):
    return PhaseOutcome("bake", {"workflow_id": state["parameters"]["id"]}, "kneaded")

def bake(state, components):
    if Path("look").exists():
        seen = subprocess.run([sys.executable, "-m", "orchestrator", "workflow", "status"], capture_output=True)
        Path("seen").write_bytes(seen.stdout)
        os.kill(os.getpid(), signal.SIGKILL)
    if not Path("oven").exists():
        raise RuntimeError("there is no oven")
    return PhaseOutcome("done", {}, "baked")
"""


@pytest.fixture(autouse=True)
def loaves(workbench: Any) -> Iterator[Path]:
    """A directory with a domain whose second phase fails as long as there is no oven, and one that waits in it."""
    directory: Path = workbench.directory
    (directory / "domain.yaml").write_text(DOMAIN)
    (directory / "loaves_phases.py").write_text(PHASES)
    path = list(sys.path)
    workbench("workflow", "run", "domain.yaml", "--param", "id=rye", "--display", "quiet")
    yield directory
    sys.path[:] = path
    sys.modules.pop("loaves_phases", None)


def workflow(workbench: Any, *arguments: str) -> Any:
    """A command on workflows."""
    return workbench("workflow", *arguments, "--display", "quiet")


def status(workbench: Any, *arguments: str) -> str:
    """What the status says, without the state."""
    told: str = workbench("workflow", "status", *arguments).out
    return told.partition("\nstate\n")[0]


def test_one_that_is_worked_on(workbench: Any, loaves: Path, environment: dict[str, str]) -> None:
    """A workflow that a process works on is running, and nobody is told to go on with it; killed, it is left open."""
    (loaves / "look").touch()
    command = (sys.executable, "-m", "orchestrator", "workflow", "decide", "rye", "retry")
    killed = subprocess.run(command, cwd=loaves, env=environment, capture_output=True, check=False)
    held, left = (loaves / "seen").read_text(), status(workbench, "rye")
    assert killed.returncode == -signal.SIGKILL
    assert ("running, executing" in held, "go on with it" in held) == (True, False)
    assert ("left open, executing" in left, "go on with it" in left) == (True, True)
    assert json.loads(workbench("workflow", "status", "rye", "--json").out)["standing"] == "cut off"


def test_a_file_that_changed(workbench: Any, loaves: Path) -> None:
    """The status of a paused workflow reads its file, and says that a resume will ask which state holds."""
    file = loaves / "state" / "rye-state.json"
    file.write_text(file.read_text().replace("no oven", "an oven"))
    line = f"  state file: {file} was changed; a resume asks which state holds"
    assert line in status(workbench, "rye").splitlines()
    told = json.loads(workbench("workflow", "status", "rye", "--json").out)
    assert told["state_file"] == {"path": str(file), "problem": "mismatch"}
    workflow(workbench, "decide", "rye", "skip")
    assert line not in status(workbench, "rye").splitlines()


def test_a_second_one_of_that_id(workbench: Any) -> None:
    """The id goes on meaning the one that has it; the other is refused with its run, and found as workflow-new."""
    first = json.loads(workbench("workflow", "status", "rye", "--json").out)["run"]
    refused = workflow(workbench, "run", "domain.yaml", "--param", "id=rye")
    meant = json.loads(workbench("workflow", "status", "rye", "--json").out)["run"]
    other = json.loads(workbench("workflow", "status", "workflow-new", "--json").out)
    assert (refused.code, f"it is run {first}: go on with that one" in refused.err) == (8, True)
    assert (meant, other["run"] != first, other["workflow_id"]) == (first, True, None)


def test_an_id_that_is_free_again(workbench: Any, loaves: Path) -> None:
    """After an abort, also through `workflow-new`, the id can be used again."""
    aborted = workflow(workbench, "decide", "workflow-new", "abort")
    (loaves / "oven").touch()
    again = workflow(workbench, "run", "domain.yaml", "--param", "id=rye")
    assert (aborted.code, again.code) == (1, 0)


def test_a_provided_state(workbench: Any, loaves: Path) -> None:
    """`--state` takes a state of the contract's initial form, without a time and an error field."""
    state = {"phase": "done", "workflow_id": "rye", "metrics": {"workflow_version": "1.0", "start_time": "x"}}
    (loaves / "state.json").write_text(json.dumps(state))
    (loaves / "state" / "rye-state.json").unlink()
    workflow(workbench, "resume", "rye")
    done = workflow(workbench, "decide", "rye", "provide state", "--state", "state.json")
    assert (done.code, json.loads((loaves / "state" / "rye-state.json").read_text())["metrics"]) == (
        0,
        state["metrics"],
    )
