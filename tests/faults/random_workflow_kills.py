"""Random SIGKILLs of `workflow run software-epic`, each followed by `workflow resume`, until epics are done.

    python tests/faults/random_workflow_kills.py [KILLS]        (200 by default; figures on standard output)

Every process is killed after a random time; whatever is left is resumed under the same treatment. Each epic must come
to the end that an undisturbed one has, with a journal whose audit is clean.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

COMMAND = [sys.executable, "-m", "orchestrator"]
QUIET = ["--display", "quiet"]


def one_epic(random_number: random.Random, undisturbed: dict[str, Any]) -> int:
    """Start, kill and resume until it is done; how often it was killed."""
    kills = 0
    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)
        arguments = ["workflow", "run", "software-epic", *QUIET]
        while True:
            process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=directory, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            try:
                _, error = process.communicate(timeout=random_number.uniform(0.4, 4.0))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.communicate()
                kills += 1
            else:
                if process.returncode == 0 or "it is done: there is nothing left" in error:
                    break
                assert process.returncode == 2, (process.returncode, arguments, error)  # nothing was recorded yet
            if said(directory, "runs"):
                arguments = ["workflow", "resume", "last", *QUIET]
        end = end_of(directory)
        assert undisturbed.setdefault("end", end) == end, (undisturbed["end"], end)
        audited = subprocess.run(
            [*COMMAND, "audit", "last"], cwd=directory, capture_output=True, text=True, check=False
        )
        assert audited.returncode == 0, audited.stdout
    return kills


def said(directory: Path, *arguments: str) -> str:
    """What a command prints."""
    return subprocess.run([*COMMAND, *arguments], cwd=directory, capture_output=True, text=True, check=False).stdout


def end_of(directory: Path) -> dict[str, Any]:
    """The stories' outcomes and modules."""
    state = json.loads(said(directory, "workflow", "status", "--json"))["state"]
    source = directory / "workspace" / "source"
    return {
        "phase": state["phase"],
        "stories": state["stories"],
        "modules": {path.name: path.read_text() for path in sorted(source.iterdir())},
    }


def main(wanted: int) -> None:
    """Kill until there were enough, then print the figures."""
    random_number = random.Random(int(os.environ.get("SEED", "1")))
    undisturbed: dict[str, Any] = {}
    kills = epics = 0
    begun = time.monotonic()
    while kills < wanted:
        kills, epics = kills + one_epic(random_number, undisturbed), epics + 1
        print(json.dumps({"epics": epics, "kills": kills}), flush=True)
    print(f"{kills} kills in {epics} epics: all came to the same end, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
