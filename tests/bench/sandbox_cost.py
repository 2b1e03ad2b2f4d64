"""What each level of isolation adds to the start of a program: python tests/bench/sandbox_cost.py [REPEATS]."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from orchestrator.environment import clean_environment
from orchestrator.process import run_process
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Launcher, Place

REPEATS = int(sys.argv[1]) if len(sys.argv) > 1 else 50
COMMANDS = {"/bin/true": ["/bin/true"], "python -c pass": [sys.executable, "-c", "pass"]}


async def started(launcher: Launcher, command: list[str], place: Place) -> float:
    """Milliseconds from the call to the return of one start."""
    began = time.perf_counter()
    completed = await run_process(
        command,
        cwd=place.directory,
        environment=clean_environment(),
        seconds=30,
        stdout_limit=1000,
        stderr_limit=1000,
        launcher=launcher,
        place=place,
        report_limit=20_000,
    )
    assert completed.returncode == 0, completed
    return (time.perf_counter() - began) * 1000


async def measure(places: dict[str, tuple[Launcher, Place]]) -> None:
    """One line a level; the levels take turns, so that a busy moment hits all of them."""
    for text, command in COMMANDS.items():
        times: dict[str, list[float]] = {name: [] for name in places}
        for _ in range(REPEATS):
            for name, (launcher, place) in places.items():
                times[name].append(await started(launcher, command, place))
        for name, found in times.items():
            print(f"{text:15} {name:38} median {median(found):6.1f} ms   best {min(found):6.1f} ms")


def main() -> None:
    """Measure every level that works here."""
    with tempfile.TemporaryDirectory() as folder:
        contained = best_sandbox(EVAL, backend="containment")
        began = time.perf_counter()
        evals, generators = best_sandbox(EVAL), best_sandbox(GENERATOR)
        print(f"finding the level took {(time.perf_counter() - began) * 1000:.1f} ms (kept until the next boot)")
        scratch = Place(directory=Path(folder), work="scratch")
        asyncio.run(
            measure(
                {
                    contained.isolation.label: (contained, Place(directory=Path(folder))),
                    f"{evals.isolation.label}, eval": (evals, Place(directory=Path(folder))),
                    f"{evals.isolation.label}, scratch": (evals, scratch),
                    f"{generators.isolation.label}, generator": (
                        generators,
                        Place(directory=Path(folder), profile=GENERATOR),
                    ),
                }
            )
        )


if __name__ == "__main__":
    main()
