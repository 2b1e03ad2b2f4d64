"""Random SIGKILLs of the command line while it runs a real suite, each followed by `resume`, until runs finish.

    python tests/faults/random_kills.py [KILLS]        (200 by default; figures on standard output)

Each run is the demo's spec with its pytest suite and a program that answers as the demo's script does, a little
slower. Every process is killed after a random time; whatever is left is resumed under the same treatment.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from orchestrator.demo import CANDIDATE_FILE
from orchestrator.journal.sqlite import SqliteJournal

DEMO = Path(__import__("orchestrator.demo").demo.__file__).parent
GENERATOR = """
import re, sys, time
from pathlib import Path
found = re.search("# Attempt ([0-9]+)", sys.stdin.read())
attempt = int(found[1]) if found else 1
with open(sys.argv[1], "a") as log:
    log.write(f"{attempt}\\n")
time.sleep(0.15)
answers = sorted(Path(sys.argv[2]).glob("*.py.txt"))
sys.stdout.write(answers[min(attempt, len(answers)) - 1].read_text())
"""


def prepared(directory: Path) -> list[str]:
    """A run's files, and the arguments that start it."""
    suite = directory / "suite"
    suite.mkdir()
    for path in (DEMO / "suite").iterdir():
        shutil.copy(path, suite / path.name.removesuffix(".txt"))
    (directory / "generate.py").write_text(GENERATOR)
    generator = f"{sys.executable} -S generate.py calls {DEMO / 'candidates'}"
    named = ["--generator", generator, "--suite", "suite", "--candidate-file", CANDIDATE_FILE]
    return ["run", str(DEMO / "spec.toml"), *named, "--display", "quiet", "--time", "10m"]


def one_run(random_number: random.Random, undisturbed: list[Any]) -> tuple[int, int]:
    """Start, kill and resume until it has finished; kills and calls beyond those of an undisturbed run."""
    kills = 0
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        arguments = prepared(directory)
        while True:
            process = subprocess.Popen(
                [sys.executable, "-m", "orchestrator", *arguments],
                cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                _, error = process.communicate(timeout=random_number.uniform(0.3, 2.5))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
            else:
                if process.returncode == 0:
                    break
                if "it passed: there is nothing left" in error:
                    break
                assert process.returncode == 2, (process.returncode, arguments, error)
            entries = recorded(directory / "runs" / "journal.sqlite")
            if entries:
                arguments = ["resume", "last", "--display", "quiet"]
        told = history(recorded(directory / "runs" / "journal.sqlite"))
        if undisturbed:
            assert told == undisturbed, (told, undisturbed)
        else:
            undisturbed.extend(told)
        calls = (directory / "calls").read_text().split()
        return kills, len(calls) - len(told)


def recorded(journal_file: Path) -> list[Any]:
    """The records of the one run; reading checks the chain."""
    if not journal_file.exists():
        return []

    async def read() -> list[Any]:
        with SqliteJournal(journal_file) as journal:
            ids = await journal.run_ids()
            return [entry.record async for entry in journal.read(ids[-1])] if ids else []

    return asyncio.run(read())


def history(records: list[Any]) -> list[Any]:
    """Attempt, verdict and candidate of each judged attempt."""
    found = []
    candidate = ""
    for record in records:
        event = record.event
        if event.name == "candidate:generated":
            candidate = event.candidate.digest
        if event.name in ("attempt:failed", "attempt:passed"):
            found.append([event.attempt, event.name, sorted(event.passed), candidate])
    return found


def main(wanted: int) -> None:
    """Kill until there were enough, then print the figures."""
    random_number = random.Random(int(os.environ.get("SEED", "1")))
    undisturbed: list[Any] = []
    kills = runs = repeated = 0
    begun = time.monotonic()
    while kills < wanted:
        killed, extra = one_run(random_number, undisturbed)
        assert 0 <= extra <= killed
        kills, runs, repeated = kills + killed, runs + 1, repeated + extra
        print(json.dumps({"runs": runs, "kills": kills, "repeated_calls": repeated}), flush=True)
    print(
        f"{kills} kills in {runs} runs: all finished alike, {repeated} calls repeated, {time.monotonic() - begun:.0f} s"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
