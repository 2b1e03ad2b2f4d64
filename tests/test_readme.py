"""Everything that the README shows is run, and what it says comes out does come out."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import attrs
import pytest

CHECKOUT = Path(__file__).parents[1]
README = CHECKOUT / "README.md"

BLOCK = re.compile(r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?P<target>[^)#]+)\)")
VOLATILE = (
    (re.compile(r"\b[0-9a-f]{12}\b"), "<run>"),
    (re.compile(r"\b\d+\.\d+s\b"), "<time>"),
    (re.compile(r"~[\d,]+ "), "~<n> "),
)
"""What differs from run to run or from machine to machine, and what stands for it in a comparison."""

SETUP = "python3 -m venv"
"""How the commands start that make an environment; `.ci/run` runs them, word for word."""

FAKE_MODEL = """#!{python}
import os, sys
assert "OPENAI_API_KEY" in os.environ or "claude" in sys.argv[0]
assert "ANTHROPIC_API_KEY" not in os.environ
prompt = sys.stdin.read()
digits = r"\\d{{4}}-\\d{{2}}-\\d{{2}}" if "# Attempt 2" in prompt else r"\\d+-\\d+-\\d+"
print(f'import re\\n\\nDAY = re.compile(r"{{digits}}")')
"""

OURS = """#!/bin/sh
exec {python} -m orchestrator "$@"
"""


@attrs.frozen
class Block:
    """One fenced block: what it is, the file it stands for, and the output shown right after it."""

    language: str
    text: str
    file: str = ""
    output: str | None = None


def blocks() -> Iterator[Block]:
    """The README's blocks in order, each with its output."""
    found = [Block(each["language"], each["text"], each["file"] or "") for each in BLOCK.finditer(README.read_text())]
    for block, follower in zip(found, [*found[1:], Block("", "")], strict=True):
        if block.language != "text":
            yield attrs.evolve(block, output=follower.text if follower.language == "text" else None)


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, with our own command and two fake models first on PATH."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, script in (("llm", FAKE_MODEL), ("claude", FAKE_MODEL), ("orchestrator", OURS)):
        program = programs / name
        program.write_text(script.format(python=sys.executable))
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("OPENAI_API_KEY", "named under environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "named nowhere")
    if "PYTHONPATH" in os.environ:
        folders = os.environ["PYTHONPATH"].split(os.pathsep)
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join(map(os.path.abspath, folders)))
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.usefixtures("workplace")
def test_the_python_blocks_print_what_is_shown() -> None:
    """The blocks run from top to bottom as one program, and print exactly the shown outputs."""
    names: dict[str, Any] = {"__name__": "readme"}
    shown, printed = {}, {}
    for block in blocks():
        if block.language == "python" and not block.file:
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(block.text, "README.md", "exec", dont_inherit=True), names)
            printed[block.text] = output.getvalue()
            shown[block.text] = block.output or ""
    assert printed == shown
    assert printed != {}


def test_the_shell_blocks_work_on_the_files_shown(workplace: Path) -> None:
    """With the files as shown and a model on PATH, every command ends well and prints what is shown."""
    shown, printed = {}, {}
    for block in blocks():
        if block.file:
            file = workplace / block.file
            file.parent.mkdir(exist_ok=True)
            file.write_text(block.text)
        elif block.language == "sh" and not block.text.startswith(SETUP):
            said = subprocess.run(
                ["bash", "-euc", block.text],
                check=False,
                capture_output=True,
                text=True,
                stdin=subprocess.DEVNULL,
            )
            assert said.returncode == 0, said.stderr
            printed[block.text] = settled(said.stdout)
            shown[block.text] = settled(block.output or "")
    assert printed == shown
    assert printed != {}


def test_the_two_setup_commands_are_those_that_ci_runs() -> None:
    """The commands that make an environment are too slow for a test: `.ci/run` runs the same two lines."""
    commands = [block.text.strip() for block in blocks() if block.language == "sh" and block.text.startswith(SETUP)]
    lines = (CHECKOUT / ".ci" / "run").read_text().splitlines()
    assert commands == [line for line in lines if line.startswith(SETUP) and "$" not in line]
    assert len(commands) == 2


def test_every_block_is_checked() -> None:
    """No block is of a kind that no test here looks at."""
    kinds = {block.language if not block.file else "file" for block in blocks()}
    assert kinds == {"python", "sh", "file"}


def test_every_link_leads_somewhere() -> None:
    """A link to a file of the checkout names one that is there."""
    targets = {match["target"] for match in LINK.finditer(README.read_text()) if ":" not in match["target"]}
    assert {target for target in targets if not (CHECKOUT / target).exists()} == set()


def settled(output: str) -> str:
    """The output with what is volatile replaced."""
    for pattern, replacement in VOLATILE:
        output = pattern.sub(replacement, output)
    return output
