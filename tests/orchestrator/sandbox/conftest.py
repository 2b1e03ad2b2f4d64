"""Real programs in real sandboxes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.environment import clean_environment
from orchestrator.errors import IsolationRefusedError
from orchestrator.process import Completed, run_process
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Launcher, Place, Profile

Run = Callable[..., Completed]


def bubblewrap(profile: Profile) -> Launcher:
    """Bubblewrap, or a skipped test where it does not work."""
    if shutil.which("bwrap") is None:
        pytest.skip("no bwrap here: apt install bubblewrap")
    try:
        return best_sandbox(profile, backend="bubblewrap")
    except IsolationRefusedError as error:
        pytest.skip(f"bubblewrap does not work here: {error}")


@pytest.fixture(params=[EVAL, GENERATOR], ids=lambda profile: profile.name)
def profile(request: pytest.FixtureRequest) -> Profile:
    """Each kind of program."""
    assert isinstance(request.param, Profile)
    return request.param


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command in bubblewrap, in an empty directory of the host that may be written to there."""

    def run_in(
        command: Sequence[str], profile: Profile = EVAL, place: Place | None = None, **options: Any
    ) -> Completed:
        work = tmp_path / "work"
        work.mkdir(exist_ok=True)
        options = {"seconds": 20, "stdout_limit": 100_000, "stderr_limit": 100_000, **options}
        options.setdefault("environment", clean_environment())
        return asyncio.run(
            run_process(
                command,
                cwd=work,
                launcher=bubblewrap(profile),
                place=place or Place(directory=work, profile=profile),
                **options,
            )
        )

    return run_in
