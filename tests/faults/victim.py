"""A process that runs or resumes one spec and kills itself, SIGKILL, at one named place.

    python victim.py DIRECTORY run|resume PLACE

PLACE is `before:N` or `after:N` (the N-th append), `generate:N` or `evaluate:N` (inside that effect of attempt N),
or `nowhere`. Every call of the generator and every acknowledged append is logged, synced, in DIRECTORY.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from orchestrator import Budget, MergedSpec, Orchestrator, Request, Submission, Verdict
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator_events.journal import Batch

ATTEMPTS = 3
SPEC = MergedSpec(name="victim", intent="Count to the number of the attempt.")


def logged(path: Path, text: str) -> None:
    """Append a line that survives the process."""
    with path.open("a") as file:
        file.write(text + "\n")
        file.flush()
        os.fsync(file.fileno())


def killer(place: str) -> Callable[[str, int], None]:
    """A function that kills the process at `place`."""
    kind, _, number = place.partition(":")

    def here(what: str, count: int) -> None:
        if what == kind and count == int(number or 0):
            os.kill(os.getpid(), signal.SIGKILL)

    return here


class WatchedJournal(SqliteJournal):
    """A journal that is killed before or after its n-th append."""

    def __init__(self, directory: Path, kill: Callable[[str, int], None]) -> None:
        super().__init__(directory / "journal.sqlite")
        self.directory = directory
        self.kill = kill
        self.appends = 0

    async def append(self, batch: Batch) -> None:
        """Append, and log that it was acknowledged."""
        self.appends += 1
        self.kill("before", self.appends)
        await super().append(batch)
        logged(self.directory / "acknowledged", str(batch.records[-1].sequence))
        self.kill("after", self.appends)


def main(directory: Path, action: str, place: str) -> None:
    """Run or resume, and print the outcome as JSON."""
    kill = killer(place)

    def generate(request: Request) -> str:
        logged(directory / "calls", request.idempotency_key)
        kill("generate", request.attempt)
        return f"candidate {request.attempt}"

    def evaluate(submission: Submission) -> Verdict:
        kill("evaluate", submission.attempt)
        return Verdict.of({"a": True, "b": submission.attempt >= ATTEMPTS or f"needs attempt {ATTEMPTS}"})

    with WatchedJournal(directory, kill) as journal:
        orchestrator = Orchestrator(
            generator=generate, evaluator=evaluate, journal=journal, budget=Budget(attempts=ATTEMPTS, seconds=60)
        )
        report = orchestrator.run(SPEC, run_id="victim") if action == "run" else orchestrator.resume("victim")
    told = report.as_json()
    history = [(entry["attempt"], entry["candidate"], entry["passed"], entry["failing"]) for entry in told["history"]]
    outcome = {"status": told["status"], "history": history, "calls": told["generator_invocations"]}
    sys.stdout.write(json.dumps(outcome) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
