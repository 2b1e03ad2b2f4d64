"""A workbench: a spec, a suite that reports JSON, and a generator whose answers depend on the attempt."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from orchestrator.cli import main

ROOT = Path(__file__).parents[3]

SPEC = """
name = "colours"
intent = "Name the colours."

[[evals.cases]]
name = "names_red"

[[evals.cases]]
name = "names_green"

[[evals.adversarial]]
name = "names_no_other"
severity = "critical"
"""

SUITE = """
import json, sys
words = open("colours.txt").read().split()
found = {
    "names_red": "red" in words,
    "names_green": "green" in words,
    "names_no_other": set(words) <= {"red", "green"},
}
cases = [
    {"id": name, "status": "passed" if ok else "failed", "message": "" if ok else f"found {words}"}
    for name, ok in found.items()
]
json.dump({"protocol": "orchestrator.report/1", "cases": cases}, open(sys.argv[1], "w"))
"""

GENERATOR = """
import re, sys
found = re.search("# Attempt ([0-9]+)", sys.stdin.read())
attempt = int(found[1]) if found else 1
answers = sys.argv[1:]
print(answers[min(attempt, len(answers)) - 1])
"""


@attrs.frozen
class Outcome:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@attrs.frozen
class Workbench:
    """A directory with everything a run needs; commands are run in it."""

    directory: Path
    capture: pytest.CaptureFixture[str]

    def __call__(self, *arguments: str) -> Outcome:
        """Run a command in this process."""
        self.capture.readouterr()
        code = main(arguments)
        written = self.capture.readouterr()
        return Outcome(code, written.out, written.err)

    def run(self, *arguments: str, answers: tuple[str, ...] = ("red green",)) -> Outcome:
        """Run the spec, with a generator that gives these answers."""
        return self(*self.command(*arguments, answers=answers))

    def command(self, *arguments: str, answers: tuple[str, ...] = ("red green",)) -> tuple[str, ...]:
        """The arguments of such a run."""
        generator = " ".join([sys.executable, "-S", str(self.directory / "generate.py"), *map(repr, answers)])
        return (*self.judged("--generator", generator), *arguments)

    def judged(self, *arguments: str) -> tuple[str, ...]:
        """The arguments of a run of the spec with its suite."""
        return (
            "run", "spec.toml", "--suite", "suite", "--candidate-file", "colours.txt",
            "--evaluator", "{python} -S check.py {report}", "--report", "json", *arguments,
        )  # fmt: skip

    @property
    def run_id(self) -> str:
        """The id of the only run."""
        (found,) = (path.name for path in (self.directory / "runs").iterdir() if path.is_dir())
        return found


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Workbench:
    """A fresh workbench, which is the current directory; no setting of the user's terminal reaches it."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "suite" / "check.py").write_text(SUITE)
    (tmp_path / "generate.py").write_text(GENERATOR)
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CI", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Workbench(tmp_path, capsys)


@pytest.fixture
def normalised() -> Callable[[str], str]:
    """Replaces what differs from run to run and from machine to machine.

    That is ids, times, what the machine has to hold programs in and what was tried of that, and the tokens of a
    prompt that may be reworded.
    """

    def normalise(text: str) -> str:
        text = re.sub(r"\b[0-9a-f]{12}\b", "RUN", text)
        text = re.sub(r"#[0-9a-f]{8}\b", "#COMMAND", text)
        text = re.sub(r"\d+\.\d+s\b", "TIME", text)
        text = re.sub(r"(?:basic|strong) \([^()]*\)", "HELD", text)
        text = re.sub(r"not enforced: .*", "not enforced: LIST", text)
        text = re.sub(r"probed: .*\n", "", text)
        return re.sub(r"~[\d,]+ tokens *", "TOKENS  ", text)

    return normalise


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a command in a process of its own; it finds the package as this process does."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path), "TERM": "xterm"}


BREAD = """
domain: bread
phases:
  - {id: knead, callable: "bread_phases:knead"}
  - {id: bake, callable: "bread_phases:bake"}
  - done
parameters:
  id: {type: string, default: loaf}
"""

BREAD_PHASES = r"""
import os
from pathlib import Path

print("imported")

def knead(state, components):
    print("printed by a phase")
    os.system("echo printed by a program")
    components.wait(components.metrics.count("files_modified", 3))
    return {"next_phase": "bake", "state_updates": {"workflow_id": state["parameters"]["id"]}, "output": "kneaded"}

def bake(state, components):
    if Path("error").exists():
        raise RuntimeError(Path("error").read_text())
    return {"next_phase": "done", "state_updates": {}, "output": "baked"}
"""


@pytest.fixture
def bread(workbench: Workbench) -> Iterator[Path]:
    """A domain whose second phase fails with what the file `error` says, as long as there is one."""
    path = list(sys.path)
    directory = workbench.directory / "bread"
    directory.mkdir()
    (directory / "domain.yaml").write_text(BREAD)
    (directory / "bread_phases.py").write_text(BREAD_PHASES)
    yield directory
    sys.path[:] = path
    sys.modules.pop("bread_phases", None)
