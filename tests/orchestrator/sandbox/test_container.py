"""What a container as the sandbox promises; the engine is a script that shows what it was given."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import attrs
import pytest

from orchestrator.errors import IsolationRefusedError
from orchestrator.process import run_process
from orchestrator.sandbox.container import Container
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Launch, Place

CONTAINER = Container(engine="/usr/bin/podman", image="python:3", version="4.3.1")


def command(launch: Launch, container: Container = CONTAINER) -> list[str]:
    """What would be started, without the name that is new each time."""
    with attrs.evolve(container, engine="/usr/bin/false").prepared(launch) as start:
        words = list(start.command)
    assert words[1:3] == ["run", "--name"]
    return words[4:]


def test_an_eval_gets_a_container_that_holds_it(tmp_path: Path) -> None:
    """No network, no privilege, a read-only root, limits, and no value of a variable on show."""
    place = Place(directory=tmp_path)
    launch = Launch(command=("python3", "-V"), environment={"KEY": "secret", "PATH": "/x"}, place=place)
    user = f"{os.geteuid() or 65534}:{os.getegid() or 65534}"
    assert command(launch) == [
        *("--rm", "--interactive", "--init", "--pull", "never", "--read-only", "--cap-drop", "ALL"),
        *("--security-opt", "no-new-privileges", "--user", user, "--network", "none", "--hostname", "sandbox"),
        *("--pids-limit=64", "--memory=4294967296", "--memory-swap=4294967296"),
        *("--ulimit=nofile=1024:1024", "--ulimit=fsize=268435456:268435456", "--ulimit=core=0:0"),
        "--tmpfs=/tmp:rw,nosuid,nodev,mode=1777,size=268435456",
        f"--mount=type=bind,source={tmp_path},target={tmp_path},readonly",
        *("--env=KEY", "--env=HOME=/tmp", "--env=TMPDIR=/tmp", "--env=PYTHONDONTWRITEBYTECODE=1"),
        f"--workdir={tmp_path}",
        *("python:3", "python3", "-V"),
    ]


def test_a_generator_gets_a_network_and_what_it_may_read(tmp_path: Path) -> None:
    """Readable paths are mounted read-only, under their own names."""
    profile = attrs.evolve(GENERATOR, readable=(Path("/opt/models"),))
    words = command(Launch(command=("true",), place=Place(directory=tmp_path, profile=profile)))
    assert words[words.index("--network") + 1] == "bridge"
    assert "--mount=type=bind,source=/opt/models,target=/opt/models,readonly" in words


def test_a_path_that_would_change_the_mount_is_refused(tmp_path: Path) -> None:
    """A comma would begin another option."""
    odd = tmp_path / "a,readonly=false"
    with pytest.raises(ValueError, match="holds a comma"):
        command(Launch(command=("true",), place=Place(directory=odd)))


ENGINE = """#!/bin/sh
[ "$1" = rm ] && echo removed > "$(dirname "$0")/removed" && exit
while [ "$1" != image ]; do shift; done
shift
exec "$@"
"""


@pytest.fixture
def engine(tmp_path: Path) -> Path:
    """An engine that contains nothing: it runs the command where it is."""
    path = tmp_path / "docker"
    path.write_text(ENGINE)
    path.chmod(0o755)
    return path


def test_a_report_comes_on_standard_output(engine: Path, tmp_path: Path) -> None:
    """The program's own output goes to standard error, where it cannot be mistaken for it; its status stays."""
    (tmp_path / "work").mkdir()
    completed = asyncio.run(
        run_process(
            ["sh", "-c", "pwd; echo chatter; echo report > {report}; exit 3"],
            cwd=tmp_path / "work",
            environment={"PATH": os.environ["PATH"]},
            seconds=20,
            stdout_limit=1000,
            stderr_limit=1000,
            report_limit=1000,
            launcher=Container(engine=str(engine), image="image"),
        )
    )
    found = (completed.report, completed.stdout, completed.stderr.decode(), completed.returncode)
    assert found == (b"report\n", b"", f"{tmp_path / 'work'}\nchatter\n", 3)


@pytest.mark.parametrize(
    ("script", "image", "remedy"),
    [
        (None, "image", "there is no docker on PATH: install it, or choose bubblewrap"),
        ("exit 1", "image", "does not answer: start it"),
        ("echo 27.0.1", "", "needs an image"),
    ],
)
def test_an_engine_that_cannot_be_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, image: str, remedy: str
) -> None:
    """The message says what to install, start or name; nothing weaker is used in its place."""
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    if script is not None:
        (tmp_path / "docker").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "docker").chmod(0o755)
    with pytest.raises(IsolationRefusedError, match=remedy):
        best_sandbox(EVAL, backend="container", engine="docker", image=image)


def test_a_container_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its level is strong, as configured, and nothing is said to have been probed."""
    (tmp_path / "docker").write_text("#!/bin/sh\necho 27.0.1\n")
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    isolation = best_sandbox(EVAL, backend="container", engine="docker", image="image", require="strong").isolation
    assert isolation.label == "strong (container docker 27.0.1)"
    assert {probe.outcome for probe in isolation.probes} == {"untested: configured"}
