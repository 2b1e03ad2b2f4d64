"""The ground for attacks: each level that this machine offers, and what came of an attack there."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import attrs
import pytest

from orchestrator.environment import clean_environment
from orchestrator.errors import IsolationRefusedError
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Launcher, Place, Profile

PROGRAMS = Path(__file__).with_name("programs")
BACKENDS = {"strong": "bubblewrap", "basic": "containment"}
CUT_OFF = attrs.evolve(GENERATOR, network=False)
PROFILES = {"eval": EVAL, "generator": GENERATOR, "generator without network": CUT_OFF}
GONE_WITHIN_S = 0.1
"""How long after a call returned something of it may still be alive, seconds."""
ATTEMPTING = """
import json, sys

def succeeds(act, settings):
    try:
        return bool(act(settings))
    except OSError:
        return False

settings = json.loads(sys.argv[1])
print(json.dumps([name for name, act in ATTACKS.items() if succeeds(act, settings)]))
"""
"""What is run after the text of a program in `programs`, which says what it tries in ATTACKS."""


@attrs.define(eq=False)
class Ground:
    """One level and one profile, a directory of the host to work in, and a name that all processes carry."""

    level: str
    profile: Profile
    launcher: Launcher
    parent: Path
    """Its `work` is where programs work; all else in it is out of bounds."""
    token: str = attrs.Factory(lambda: f"attack-{secrets.token_hex(8)}")

    @property
    def work(self) -> Path:
        """The working directory."""
        return self.parent / "work"

    @property
    def is_strong(self) -> bool:
        """Whether attacks have to fail here."""
        return self.level == "strong"

    def declares(self, weakness: str) -> bool:
        """Whether the level itself says that it does not hold this."""
        return weakness in self.launcher.isolation.not_enforced

    def holds(self, is_held: bool, weakness: str) -> bool:
        """Whether an attack was held, or the level says that such attacks are not."""
        return is_held or self.declares(weakness)

    def command(self, program: str, settings: Mapping[str, object] | None = None) -> list[str]:
        """The command that runs a Python program given as text."""
        return [sys.executable, "-I", "-S", "-c", program, json.dumps(dict(settings or {})), self.token]

    def run(self, program: str, settings: Mapping[str, object] | None = None, **options: Any) -> Completed:
        """Run a program here; `limits` are changes to the profile's."""
        return asyncio.run(self.started(program, settings, **options))

    async def started(self, program: str, settings: Mapping[str, object] | None = None, **options: Any) -> Completed:
        """`run`, inside a loop."""
        limits = attrs.evolve(self.profile.limits, **options.pop("limits", {}))
        profile = attrs.evolve(self.profile, limits=limits, **options.pop("profile", {}))
        options = {"seconds": 20, "stdout_limit": 100_000, "stderr_limit": 100_000, **options}
        work = options.pop("work", "read-only")
        return await run_process(
            self.command(program, settings),
            cwd=self.work,
            environment=clean_environment(),
            launcher=self.launcher,
            place=Place(directory=self.work, profile=profile, work=work),
            **options,
        )

    def attempted(self, name: str, settings: Mapping[str, object], **options: Any) -> set[str]:
        """What succeeded of what a program in `programs` tries."""
        completed = self.run(text_of(name), settings, **options)
        assert (completed.returncode, completed.stderr) == (0, b"")
        return set(json.loads(completed.stdout))

    def processes(self) -> list[int]:
        """Ids of all processes of the host that an attack here has left, dead and dying ones not counted."""
        names = filter(str.isdecimal, os.listdir("/proc"))
        return [int(name) for name in names if carries(int(name), self.token) and not is_killed(int(name))]

    def survivors(self, within: float = GONE_WITHIN_S) -> list[int]:
        """Who is still alive that long after the call returned, seconds."""
        until = time.monotonic() + within
        while (found := self.processes()) and time.monotonic() < until:
            time.sleep(0.005)
        return found

    def close(self) -> None:
        """End what a weak level left alive; whatever re-forks ends itself soon after."""
        until = time.monotonic() + 5
        while (found := self.processes()) and time.monotonic() < until:
            for process in found:
                with suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            time.sleep(0.01)
        assert found == []


def carries(process: int, token: str) -> bool:
    """Whether a process has the name of one attack in its command line; the dead have none."""
    try:
        return token.encode() in Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return False


def is_killed(process: int) -> bool:
    """Whether SIGKILL is pending: on a busy machine the dead wait for their turn, but run nothing any more."""
    try:
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
    except OSError:
        return True
    pending = [int(line.split()[1], 16) for line in lines if line.startswith(("SigPnd", "ShdPnd"))]
    return any(mask >> (signal.SIGKILL - 1) & 1 for mask in pending)


def text_of(name: str) -> str:
    """The whole text of a program that tries attacks one by one and prints which succeeded."""
    return (PROGRAMS / f"{name}.py").read_text() + ATTEMPTING


def launcher_of(level: str, profile: Profile) -> Launcher:
    """The launcher; where there is no sandbox the test is skipped, or fails when one is required."""
    if level == "strong" and shutil.which("bwrap") is None:
        lacking("no bwrap here: apt install bubblewrap")
    try:
        return best_sandbox(profile, backend=BACKENDS[level])  # type: ignore[arg-type] # two of its names
    except IsolationRefusedError as error:
        lacking(f"bubblewrap does not work here: {error}")


def lacking(reason: str) -> NoReturn:
    """There is no sandbox; ORCHESTRATOR_SANDBOX=required makes that a failure."""
    if os.environ.get("ORCHESTRATOR_SANDBOX") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(params=list(BACKENDS))
def level(request: pytest.FixtureRequest) -> str:
    """Each level that runs programs."""
    return str(request.param)


@pytest.fixture(params=["eval", "generator"])
def profile_name(request: pytest.FixtureRequest) -> str:
    """Each kind of program."""
    return str(request.param)


@pytest.fixture
def ground(level: str, profile_name: str, tmp_path: Path) -> Iterator[Ground]:
    """A fresh ground for each level and kind of program."""
    (tmp_path / "work").mkdir()
    profile = PROFILES[profile_name]
    made = Ground(level, profile, launcher_of(level, profile), tmp_path)
    yield made
    made.close()


@pytest.fixture
def sandboxed() -> Any:
    """Makes the ground of a sandbox alone, for attacks that without one would reach anybody's processes."""

    def made(profile_name: str, parent: Path) -> Ground:
        (parent / "work").mkdir()
        profile = PROFILES[profile_name]
        return Ground("strong", profile, launcher_of("strong", profile), parent)

    return made


@pytest.fixture
def launcher(level: str) -> Launcher:
    """What starts a generator at each level."""
    return launcher_of(level, GENERATOR)


@pytest.fixture
def suite_launcher(level: str) -> Launcher:
    """What starts an eval suite at each level."""
    return launcher_of(level, EVAL)


@pytest.fixture
def unconfined() -> Any:
    """Runs a program of `programs` as it is, to show that what it tries is real: what succeeded."""

    def attempted(name: str, settings: Mapping[str, object], descriptors: tuple[int, ...] = ()) -> set[str]:
        completed = subprocess.run(
            [sys.executable, "-I", "-S", "-c", text_of(name), json.dumps(dict(settings))],
            env=clean_environment(),
            capture_output=True,
            pass_fds=descriptors,
            start_new_session=True,
            timeout=20,
            check=True,
        )
        return set(json.loads(completed.stdout))

    return attempted
