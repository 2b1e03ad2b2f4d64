"""`graph` and `events`, and what the command says of itself."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from orchestrator import __version__
from orchestrator.catalogue import catalogue_text
from orchestrator.cli import main
from orchestrator_states.dot import to_dot
from orchestrator_states.mermaid import to_mermaid
from orchestrator_states.run import RUN
from orchestrator_states.svg import to_svg
from orchestrator_states.table_json import to_json
from orchestrator_states.terminal import to_text


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("text", to_text(RUN)),
        ("mermaid", to_mermaid(RUN)),
        ("dot", to_dot(RUN)),
        ("svg", to_svg(RUN)),
        ("json", to_json(RUN)),
    ],
)
def test_graph(workbench: Any, form: str, expected: str) -> None:
    """A lifecycle is drawn in every form, with nothing around it."""
    outcome = workbench("graph", "run", "--format", form)
    assert (outcome.code, outcome.out, outcome.err) == (0, expected, "")


def test_graph_of_a_run(workbench: Any) -> None:
    """The picture of a run shows how often, and how long, it was in each state."""
    workbench.run(answers=("red", "red green"))
    mermaid = workbench("graph", workbench.run_id, "--format", "mermaid").out
    picture = ET.fromstring(workbench("graph", "last", "--format", "svg").out)
    times = re.compile(r" (<1ms|[0-9.]+m?s)(?=\")")
    shown = {times.sub(" TIME", line.strip().replace("\N{MULTIPLICATION SIGN}", "x")) for line in mermaid.splitlines()}
    assert shown >= {'state "generating x2 TIME" as generating', 'state "passed x1" as passed'}
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"


def test_unknown_graph(workbench: Any) -> None:
    """A name that is neither a lifecycle nor a run is 2, with the near one."""
    outcome = workbench("graph", "rum")
    assert (outcome.code, outcome.err) == (2, "error: no lifecycle is called 'rum'; did you mean 'run'?\n")


def test_events(workbench: Any) -> None:
    """The catalogue of events is printed as it is."""
    outcome = workbench("events")
    assert (outcome.code, outcome.out, outcome.err) == (0, catalogue_text(), "")


@pytest.mark.parametrize("arguments", [["--help"], ["run", "--help"], ["demo", "-h"]])
def test_help(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    """Help goes to standard output and is a success."""
    assert main(arguments) == 0
    written = capsys.readouterr()
    assert written.out.startswith("Usage: orchestrator")
    assert written.err == ""


def test_help_fits(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """No summary is cut off at 80 columns, and what a command takes stands in no braces."""
    monkeypatch.setenv("COLUMNS", "80")
    main(["--help"])
    every = capsys.readouterr().out
    main(["run", "--help"])
    usage = capsys.readouterr().out.splitlines()[0]
    assert ([line for line in every.splitlines() if line[:1] == " " and line.endswith(("...", "…"))], usage) == (
        [],
        "Usage: orchestrator run [OPTIONS] SPEC",
    )


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    """Name and version, on standard output."""
    assert (main(["--version"]), capsys.readouterr().out) == (0, f"orchestrator {__version__}\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["rnu"], "No such command 'rnu'. Did you mean 'run'?"),
        (["runs", "--jsno"], "No such option: --jsno"),
        (["show"], "Missing argument 'RUN'"),
        (["graph", "run", "--format", "gif"], "'gif' is not one of"),
    ],
)
def test_usage_errors(capsys: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    """A command line that cannot be understood is 2, and standard output stays empty."""
    code = main(arguments)
    written = capsys.readouterr()
    assert (code, written.out) == (2, "")
    assert told in written.err


def test_without_the_extra(tmp_path: Path, environment: dict[str, str]) -> None:
    """Without typer and rich the command says in one line what to install, and exits 2."""
    program = (
        "import sys; sys.modules['typer'] = sys.modules['rich'] = None\n"
        "from orchestrator.cli import main; sys.exit(main(['--help']))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (
        2,
        "",
        "orchestrator: typer and rich not found: install the command line with pip install 'orchestrator-fsm[cli]'\n",
    )


def test_help_loads_little(tmp_path: Path, environment: dict[str, str]) -> None:
    """Help is quick because nothing is loaded that only a command needs."""
    program = (
        "import sys; from orchestrator.cli import main; main(['--help'])\n"
        "print([name for name in ('rich', 'sqlite3', 'cattrs', 'yaml', 'structlog') if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert ended.stdout.splitlines()[-1] == "[]"


def test_as_a_module(tmp_path: Path, environment: dict[str, str]) -> None:
    """`python -m orchestrator` is the same command, and lists every other."""
    ended = subprocess.run(
        [sys.executable, "-m", "orchestrator", "graph", "run", "--format", "json"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert json.loads(ended.stdout)["name"] == "run"


def test_reader_that_leaves(tmp_path: Path, environment: dict[str, str]) -> None:
    """When whoever reads the output has enough, the command ends without a complaint."""
    ended = subprocess.run(
        f"{sys.executable} -m orchestrator events | true",
        shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.stdout, ended.stderr) == ("", "")
