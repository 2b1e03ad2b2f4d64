"""A bench for faults in the real command: programs that stop inside an effect until they are let go or killed."""

from __future__ import annotations

import asyncio
import json
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.record import Entry

PATIENCE_S = 30

SPEC = """
name = "colours"
intent = "Name the colours."

[[evals.cases]]
name = "names_red"

[[evals.cases]]
name = "names_green"
"""

PAUSE = """
import json, os, re, subprocess, sys

def pause(place):
    try:
        os.unlink(f"{sys.argv[1]}/pause-{place}")
    except FileNotFoundError:
        return
    other = subprocess.Popen(["sleep", "300"])
    with open(f"{sys.argv[1]}/inside", "w") as inside:
        inside.write(f"{os.getpid()} {other.pid}")
    with open(f"{sys.argv[1]}/go") as go:
        go.read()
    other.kill()
"""

GENERATOR = f"""{PAUSE}
found = re.search("# Attempt ([0-9]+)", sys.stdin.read())
attempt = int(found[1]) if found else 1
with open(f"{{sys.argv[1]}}/calls", "a") as calls:
    calls.write(f"{{attempt}}\\n")
pause(f"generating-{{attempt}}")
print("red green" if attempt > 1 else "red")
"""

SUITE = f"""{PAUSE}
words = open("colours.txt").read().split()
pause(f"evaluating-{{len(words)}}")
found = {{"names_red": "red" in words, "names_green": "green" in words}}
cases = [{{"id": name, "status": "passed" if ok else "failed"}} for name, ok in found.items()]
json.dump({{"protocol": "orchestrator.report/1", "cases": cases}}, open(sys.argv[2], "w"))
"""


@attrs.frozen
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str


@attrs.define(eq=False)
class Bench:
    """A directory with a spec whose second candidate passes; every command is a process of its own."""

    directory: Path
    environment: dict[str, str]
    processes: list[subprocess.Popen[str]] = attrs.Factory(list[subprocess.Popen[str]])
    pausing: list[int] = attrs.Factory(list[int])

    @property
    def run_arguments(self) -> tuple[str, ...]:
        """The arguments of the run."""
        program = shlex.join([sys.executable, "-S", str(self.directory / "generate.py"), str(self.directory)])
        judge = f"{{python}} -S check.py {shlex.quote(str(self.directory))} {{report}}"
        return (
            "run", "spec.toml", "--generator", program, "--suite", "suite", "--candidate-file", "colours.txt",
            "--evaluator", judge, "--report", "json", "--runs", "runs", "--attempts", "2",
            "--sandbox", "containment",  # what runs here tells the test where it is by files of the host
        )  # fmt: skip

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start a command."""
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator", *arguments],
            cwd=self.directory, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.processes.append(process)
        return process

    def end(self, process: subprocess.Popen[str]) -> Ended:
        """Wait for a command; none may ever show a traceback."""
        out, err = process.communicate(timeout=PATIENCE_S)
        assert "Traceback" not in err
        assert "internal error" not in err
        return Ended(process.returncode, out, err)

    def __call__(self, *arguments: str) -> Ended:
        """Run a command to its end."""
        return self.end(self.start(*arguments))

    def pause_at(self, place: str) -> None:
        """Have the program at `generating-ATTEMPT` or `evaluating-WORDS` stop there once."""
        (self.directory / f"pause-{place}").touch()

    def inside(self) -> list[int]:
        """Wait until a program has stopped; its id, and that of the program it started."""
        found = [int(word) for word in (self.directory / "inside").read_text().split()]
        self.pausing += found
        return found

    def let_go(self) -> None:
        """Have the program that stopped go on."""
        (self.directory / "go").write_text("")

    @property
    def run_id(self) -> str:
        """The id of the only run."""
        (found,) = (path.name for path in (self.directory / "runs").iterdir() if path.is_dir())
        return found

    @property
    def calls(self) -> list[int]:
        """The attempts that the generator was called for, in order."""
        return [int(line) for line in (self.directory / "calls").read_text().split()]

    def entries(self) -> list[Entry]:
        """All that is recorded of it; reading checks chain, sequence and blobs."""

        async def read() -> list[Entry]:
            with SqliteJournal(self.directory / "runs" / "journal.sqlite", read_only=True) as journal:
                return [entry async for entry in journal.read(self.run_id)]

        return asyncio.run(read())

    def names(self) -> list[str]:
        """The names of its events, in order."""
        return [entry.record.event.name for entry in self.entries()]

    def result(self) -> dict[str, Any]:
        """What `result.json` says of the only run."""
        found: dict[str, Any] = json.loads((self.directory / "runs" / self.run_id / "result.json").read_text())
        return found

    def end_programs(self) -> None:
        """End the programs that a killed command has left."""
        for each in self.pausing:
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        self.pausing.clear()

    def clear(self) -> None:
        """Forget the runs."""
        shutil.rmtree(self.directory / "runs")
        (self.directory / "calls").unlink()

    def close(self) -> None:
        """End what is left of the processes."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.end_programs()


def is_alive(process: int, seconds: float = 5.0) -> bool:
    """Whether a process still runs (a zombie does not); one that was told to end gets this long to be gone."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return False
    try:
        return not select.select([descriptor], [], [], seconds)[0]
    finally:
        os.close(descriptor)


@pytest.fixture
def alive() -> Any:
    """Tells which of some processes still run although they were told to end."""
    return lambda processes: [process for process in processes if is_alive(process)]


@pytest.fixture
def environment() -> dict[str, str]:
    """The environment of a process of its own; it finds the package as this process does."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}


@pytest.fixture
def bench(tmp_path: Path, environment: dict[str, str]) -> Iterator[Bench]:
    """A fresh bench."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "spec.toml").write_text(SPEC)
    (tmp_path / "generate.py").write_text(GENERATOR)
    (tmp_path / "suite" / "check.py").write_text(SUITE)
    for fifo in ("inside", "go"):
        os.mkfifo(tmp_path / fifo)
    made = Bench(tmp_path, environment)
    yield made
    made.close()


@pytest.fixture(scope="session")
def is_long() -> bool:
    """Whether the full numbers are asked for: ORCHESTRATOR_FAULTS=long."""
    return os.environ.get("ORCHESTRATOR_FAULTS") == "long"
