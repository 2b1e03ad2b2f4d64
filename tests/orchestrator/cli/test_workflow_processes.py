"""`workflow` as a process of its own: a real terminal, decisions typed at it, signals."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-m", "orchestrator", "workflow")
PATIENCE_S = 30

DOMAIN = """
domain: walls
phases:
  - {id: mix, callable: "walls_phases:mix"}
  - {id: paint, callable: "walls_phases:paint"}
  - done
"""

PHASES = """
import os
from pathlib import Path
from orchestrator.workflow import PhaseOutcome

def mix(state, components):
    return PhaseOutcome("paint", {"workflow_id": "walls-1"}, "mixed")

def paint(state, components):
    if Path("here").exists():
        life = os.open("here", os.O_WRONLY)
        os.write(life, b"painting")
        os.close(life)
        import time
        time.sleep(60)
    if not Path("brush").exists():
        Path("brush").touch()
        raise RuntimeError("there is no brush")
    return PhaseOutcome("done", {}, "painted")
"""


@pytest.fixture
def walls(workbench: Any) -> Path:
    """A directory with a domain whose second phase fails once."""
    directory: Path = workbench.directory
    (directory / "domain.yaml").write_text(DOMAIN)
    (directory / "walls_phases.py").write_text(PHASES)
    return directory


def at_terminal(
    arguments: tuple[str, ...], directory: Path, environment: dict[str, str], typed: dict[str, str]
) -> tuple[int, str]:
    """Run a command at a terminal and type each answer once its prompt is there; the status and all it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        (*COMMAND, *arguments), cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    written = b""
    waiting = dict(typed)
    while select.select([ours], [], [], PATIENCE_S)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux gives once the other end is closed
            break
        if not part:
            break
        written += part
        for prompt, answer in list(waiting.items()):
            if prompt.encode() in written:
                del waiting[prompt]
                os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    return process.wait(timeout=PATIENCE_S), written.decode().replace("\r\n", "\n")


def test_a_checklist_and_a_decision_at_the_terminal(walls: Path, environment: dict[str, str]) -> None:
    """The checklist is drawn in place; a failure is asked about, and a beginning of the word is enough."""
    typed = {"leave it? ": "r"}
    code, written = at_terminal(("run", "."), walls, environment, typed)
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    for text in ("  ▸ Phase: paint", "  ✔ Phase: mix", "  ○ Phase: done", "phase error in paint: retry/skip/abort"):
        assert text in plain
    assert "decided by person: retry, on with paint" in plain
    assert written.index("\x1b[?25l") < written.index("\x1b[?25h")
    assert "Workflow complete!  walls-1  3 executions" in plain.splitlines()[-1]


def test_what_is_left_at_the_terminal_pauses(walls: Path, environment: dict[str, str]) -> None:
    """An empty answer leaves the workflow paused, with status 8; `resume` asks again, and an odd answer once more."""
    code, written = at_terminal(("run", ".", "--display", "plain"), walls, environment, {"leave it? ": ""})
    assert (code, "go on with it: orchestrator workflow resume" in written) == (8, True)
    typed = {"leave it? ": "maybe", "names none of them, or more than one\r\nphase error": "skip"}
    code, written = at_terminal(("resume", "walls-1", "--display", "plain"), walls, environment, typed)
    assert (code, "  decided by person: skip, on with done" in written) == (0, True)


def test_no_input_is_no_answer(walls: Path, environment: dict[str, str]) -> None:
    """Where standard input is no terminal nobody is asked."""
    ended = subprocess.run(
        (*COMMAND, "run", "."), cwd=walls, env=environment, input="retry\n", capture_output=True, text=True, check=False
    )
    assert (ended.returncode, "leave it?" in ended.stderr) == (8, False)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_in_order(walls: Path, environment: dict[str, str], number: signal.Signals, code: int) -> None:
    """A signal during a phase ends the workflow in order; it is resumed where it was."""
    os.mkfifo(walls / "here")
    process = subprocess.Popen(
        (*COMMAND, "run", "."), cwd=walls, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert (walls / "here").read_text() == "painting"
    process.send_signal(number)
    _, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    stopped, on = error.splitlines()[-2:]
    assert stopped == f"the workflow was stopped by {number.name}; its history is saved in runs/journal.sqlite"
    (walls / "here").unlink()
    (walls / "brush").touch()
    again = on.partition("orchestrator workflow ")[2].split()
    ended = subprocess.run((*COMMAND, *again), cwd=walls, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0
    assert "  Resuming from phase: paint" in ended.stderr.splitlines()
