"""What the wheel puts into an environment, and that it gets on with a package called `events`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from zipfile import ZipFile

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = {
    "orchestrator": CHECKOUT / "orchestrator",
    "orchestrator_states": CHECKOUT / "states" / "orchestrator_states",
    "orchestrator_events": CHECKOUT / "events" / "orchestrator_events",
}

BOTH_AT_WORK = """
import events, opensearchpy
from orchestrator import EvalCase, MergedSpec, Orchestrator
from orchestrator import events as ours

calls = events.Events(("arrived",))
heard = []
calls.arrived += heard.append
calls.arrived("hello")
client = opensearchpy.OpenSearch("http://localhost:1")

result = Orchestrator(
    generator=lambda request: "right" if request.attempt == 2 else "wrong",
    evaluator=lambda submission: {"it-is-right": submission.candidate.text == "right"},
).run(MergedSpec(intent="Say right.", evals=(EvalCase(name="it-is-right"),)))

print(heard, type(client).__module__, ours.__name__, result.status, result.attempts)
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that is installed, without asking any index."""
    folder = tmp_path_factory.mktemp("wheel")
    said = run([sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, CHECKOUT])
    assert said.returncode == 0, said.stdout
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def neighbours(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with all that the wheel and opensearch-py need; skipped only where there is no index."""
    folder = tmp_path_factory.mktemp("downloads")
    said = run([sys.executable, "-m", "pip", "download", "-q", "-d", folder, wheel, "opensearch-py"])
    if said.returncode and "CI" not in os.environ:
        pytest.skip(f"opensearch-py cannot be downloaded: {said.stdout.splitlines()[-1]}")
    assert said.returncode == 0, said.stdout
    return folder


def test_it_holds_our_three_packages_and_nothing_else(wheel: Path) -> None:
    """Nothing is put beside the three packages and their metadata."""
    with ZipFile(wheel) as archive:
        folders = {name.partition("/")[0] for name in archive.namelist()}
    assert folders == {*PACKAGES, wheel.name.replace("-py3-none-any.whl", ".dist-info")}


def test_it_holds_every_file_of_the_packages(wheel: Path) -> None:
    """Modules, type markers and data are all in it: an installed copy can do what the checkout can."""
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    ours = {
        f"{package}/{file.relative_to(folder).as_posix()}"
        for package, folder in PACKAGES.items()
        for file in folder.rglob("*")
        if file.is_file() and not {"__pycache__", ".pytest_cache"} & {*file.parts}
    }
    assert packed == ours


def test_it_carries_the_licence(wheel: Path) -> None:
    """The text of the licence comes with every copy."""
    with ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/licenses/LICENSE")]
        assert archive.read(name) == (CHECKOUT / "LICENSE").read_bytes()


def test_it_works_beside_a_package_called_events(wheel: Path, neighbours: Path, tmp_path: Path) -> None:
    """opensearch-py brings a top-level `events`; installed after and beside ours, both work."""
    python = fresh_environment(tmp_path / "environment")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-index"]
    said = run([*pip, "--find-links", neighbours, wheel, "opensearch-py"])
    assert said.returncode == 0, said.stdout
    said = run([python, "-I", "-c", BOTH_AT_WORK], tmp_path)
    assert said.stdout == "['hello'] opensearchpy.client orchestrator_events passed 2\n"


def fresh_environment(folder: Path) -> Path:
    """A new virtual environment without pip; its interpreter."""
    said = run([sys.executable, "-m", "venv", "--without-pip", folder])
    assert said.returncode == 0, said.stdout
    return folder / "bin" / "python"


def run(command: Sequence[str | Path], folder: Path = CHECKOUT) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, both its streams in one text, with nothing of the checkout on its path."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env=environment,
        check=False,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
