"""The command as a process of its own: signals, and a real terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

import pytest

COMMAND = (sys.executable, "-m", "orchestrator")
PATIENCE_S = 30


def started(workbench: Any, environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """A run whose generator says on a FIFO that it is there, keeps that open, and then hangs."""
    generator = f"sh -c 'exec 3> {workbench.directory}/life; echo here >&3; {arguments[0]}'"
    return subprocess.Popen(
        [*COMMAND, *workbench.judged("--generator", generator, *arguments[1:])],
        cwd=workbench.directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def line_with(stream: IO[str], text: str) -> str:
    """The next line that holds a text; what came before is dropped."""
    return next(line for line in stream if text in line)


def unprobed(text: str) -> list[str]:
    """The lines but for those of probes, which are there only where there is a sandbox."""
    return [line for line in text.splitlines() if not line.startswith("probed: ")]


@pytest.fixture
def life(workbench: Any) -> Path:
    """A FIFO that is at its end as soon as none of those lives who were started with it, wherever they are."""
    path: Path = workbench.directory / "life"
    os.mkfifo(path)
    return path


def is_over(life: int) -> bool:
    """Whether nobody holds the other end of a FIFO any more, within a second."""
    return bool(select.select([life], [], [], 1)[0]) and os.read(life, 1) == b""


@pytest.mark.parametrize("sandbox", ["auto", "containment"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_ends_in_order(
    workbench: Any, environment: dict[str, str], life: Path, number: signal.Signals, code: int, sandbox: str
) -> None:
    """A signal during a call ends the program called and the run; the history is saved and can be shown."""
    process = started(workbench, environment, "exec sleep 300", "--json", "--sandbox", sandbox)
    reading = os.open(life, os.O_RDONLY)
    assert os.read(reading, 100) == b"here\n"
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == code
    assert is_over(reading)
    os.close(reading)
    assert unprobed(err)[3:] == [
        f"{number.name}: ending the run in order; a second signal ends it at once",
        f"run {workbench.run_id} was stopped by {number.name}; its history is saved in runs/journal.sqlite",
        f"go on with it: orchestrator resume {workbench.run_id}",
    ]
    result = json.loads(out)
    assert (result["state"], result["exit_code"], result["generator_invocations"]) == ("generating", code, 1)
    names = [record["body"]["name"] for record in json.loads(workbench("export", "last").out)["records"]]
    assert names == [
        "execution:start",
        "isolation:established",
        "prompt:ready",
        "generation:started",
        "generation:abandoned",
        "orchestrator:complete",
        "execution:end",
    ]


@pytest.mark.parametrize("sandbox", ["auto", "containment"])
def test_second_signal_ends_at_once(workbench: Any, environment: dict[str, str], life: Path, sandbox: str) -> None:
    """A second signal does not wait for a program that ignores the first, and leaves none behind."""
    hangs = 'trap "" TERM; sleep 300 & wait; sleep 300'
    process = started(workbench, environment, hangs, "--sandbox", sandbox)
    reading = os.open(life, os.O_RDONLY)
    assert os.read(reading, 100) == b"here\n"
    assert process.stderr is not None
    process.send_signal(signal.SIGINT)
    line_with(process.stderr, "SIGINT: ending the run in order")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (130, 143)
    assert is_over(reading)
    os.close(reading)
    assert workbench("show", "last").code == 0


def on_a_terminal(command: tuple[str, ...], directory: Path, environment: dict[str, str]) -> tuple[int, str]:
    """Run a command with a terminal as its standard output and error; its status and all it wrote."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True
    )
    os.close(theirs)
    written = b""
    while select.select([ours], [], [], PATIENCE_S)[0]:
        try:
            part = os.read(ours, 65536)
        except OSError:  # what Linux gives once the other end is closed
            break
        if not part:
            break
        written += part
    os.close(ours)
    return process.wait(timeout=PATIENCE_S), written.decode().replace("\r\n", "\n")


def test_live_display(workbench: Any, environment: dict[str, str]) -> None:
    """On a terminal progress is drawn in place, and gone at the end, with the cursor back."""
    command = (*COMMAND, *workbench.command("--time", "5m", answers=("red", "red green")))
    code, written = on_a_terminal(command, workbench.directory, environment)
    assert code == 0
    hides, shows, goes_up = "\x1b[?25l", "\x1b[?25h", "\x1b[1A\x1b[2K"
    assert written.index(hides) < written.index(goes_up) < written.index(shows)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
    for text in (
        "colours  generating #1",
        "0 of 5, one under way",
        "1 of 5, one under way",
        "  #1   ●✗●  2/3  closest",
    ):
        assert text in plain
    assert "conforms after 2 attempts" in written[written.index(shows) :]


@pytest.mark.parametrize("setting", [{}, {"TERM": "dumb"}, {"CI": "true"}])
def test_plain_display(workbench: Any, environment: dict[str, str], setting: dict[str, str]) -> None:
    """Plain progress has no control character but the line feed: when asked for, on a dumb terminal, in CI."""
    asked = () if setting else ("--display", "plain")
    command = (*COMMAND, *workbench.command(*asked, "--color", "never"))
    code, written = on_a_terminal(command, workbench.directory, environment | setting | {"COLUMNS": "400"})
    assert code == 0
    assert not {character for character in written if character < " "} - {"\n"}
    assert len(unprobed(written)) == 6


@pytest.mark.parametrize(("setting", "has_color"), [({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({}, True)])
def test_no_color_is_about_color(
    workbench: Any, environment: dict[str, str], setting: dict[str, str], *, has_color: bool
) -> None:
    """NO_COLOR takes the colour away and leaves the live display."""
    command = (*COMMAND, *workbench.command())
    _, written = on_a_terminal(command, workbench.directory, environment | setting)
    assert "\x1b[?25l" in written
    assert bool(re.search(r"\x1b\[[0-9;]*m", written)) == has_color


def test_ascii(workbench: Any, environment: dict[str, str]) -> None:
    """A stream that cannot carry Unicode gets ASCII marks, and escapes for what others wrote."""
    (workbench.directory / "suite" / "check.py").write_text(
        "import json, sys\n"
        "cases = [{'id': 'names_red', 'status': 'failed', 'message': 'h\\u00e9las'}]\n"
        "json.dump({'protocol': 'orchestrator.report/1', 'cases': cases}, open(sys.argv[1], 'w'))\n"
    )
    command = (*COMMAND, *workbench.command("--attempts", "1", "--display", "live"))
    code, written = on_a_terminal(command, workbench.directory, environment | {"PYTHONIOENCODING": "ascii"})
    assert code == 3
    assert written.isascii()
    assert "h\\xe9las" in written
    assert "  #1   x--  0/3" in re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written)
