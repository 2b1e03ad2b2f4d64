"""A5: ends that look like others: crashes, empty successes and forged statuses."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Budget, Candidate, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.generators.command import CommandGenerator
from orchestrator.generators.process import ProcessGenerator
from orchestrator.process import Launcher
from orchestrator.spec import EvalCase
from orchestrator_events.verdict import CaseStatus

STATUSES = {
    "import os; os.kill(os.getpid(), 11)": -signal.SIGSEGV,
    "import os; os.kill(os.getpid(), 9)": -signal.SIGKILL,
    "import os; os.abort()": -signal.SIGABRT,
    "import os; os._exit(0)": 0,
    "import os; os._exit(137)": 137,
    "import os; os._exit(255)": 255,
}
FORGED_STATUS = """
import json, os, stat, sys
settings = json.loads(sys.argv[1])
if os.readlink('/proc/self/ns/pid') == settings['namespace']:
    raise SystemExit('these are the processes of the host')
own = {os.stat(f'/proc/self/fd/{number}').st_ino for number in (0, 1, 2)}
for number in range(3, 64):
    path = f'/proc/{os.getppid()}/fd/{number}'
    try:
        found = os.stat(path)
        if stat.S_ISFIFO(found.st_mode) and found.st_ino not in own:
            os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), settings['says'].encode())
    except OSError:
        pass
if settings['kills']:
    os.kill(os.getppid(), 9)
os.kill(os.getpid(), 11)
"""
"""Only ever run where the processes it looks at are those of a sandbox: it would write to anybody's pipes."""
REASONS = {
    "SIGSEGV": ("import os; os.kill(os.getpid(), 11)", "was killed by SIGSEGV"),
    "SIGKILL": ("import os; os.kill(os.getpid(), 9)", "was killed by SIGKILL"),
    "SIGABRT": ("import os; os.abort()", "was killed by SIGABRT"),
    "no result": ("import os; os._exit(0)", "ended"),
    "forged 137": ("import os; os._exit(137)", "ended with status 137"),
}
SUITE = """
import json, sys
import answer
cases = [{"id": "a", "status": "passed" if answer.one() == 1 else "failed"}]
json.dump({"protocol": "orchestrator.report/1", "cases": cases}, open(sys.argv[1], "w"))
"""


def generator(kind: str, program: str, launcher: Launcher, directory: Path) -> CommandGenerator | ProcessGenerator:
    """A generator of one kind that does this instead of answering."""
    if kind == "process":
        (directory / "hostile.py").write_text(f"def generate(request):\n    exec({program!r})\n")
        return ProcessGenerator("hostile:generate", name="hostile", path=(directory,), launcher=launcher)
    command = [sys.executable, "-I", "-S", "-c", program]
    return CommandGenerator(command, name="hostile", output=kind, launcher=launcher)  # type: ignore[arg-type] # the kind


@pytest.mark.parametrize(("program", "status"), STATUSES.items(), ids=map(str, STATUSES.values()))
def test_a5_a_program_ends_as_it_ended(ground: Any, program: str, status: int) -> None:
    """A signal is a signal, and a status that a shell would make of one is a status."""
    assert ground.run(program).returncode == status


@pytest.mark.parametrize("kills", [False, True], ids=["", "and kills who knows better"])
@pytest.mark.parametrize("says", ["exit 0\n", "ready\nexit 0\n", "errno 2\n", "signal 1\n", "x" * 1000], ids=repr)
def test_a5_an_end_cannot_be_forged(says: str, kills: bool, profile_name: str, tmp_path: Path, sandboxed: Any) -> None:
    """Who writes to the sandbox's own pipe that it ended well, and crashes, has not ended well.

    Without a sandbox there is no such pipe: nothing but the kernel tells how a program ended.
    """
    settings = {"namespace": os.readlink("/proc/self/ns/pid"), "says": says, "kills": kills}
    completed = sandboxed(profile_name, tmp_path).run(FORGED_STATUS, settings)
    crashed = (-signal.SIGKILL,) if kills else (-signal.SIGSEGV, -signal.SIGPIPE)
    assert completed.returncode in crashed or completed.exceeded == "status", completed


@pytest.mark.parametrize("kind", ["text", "json", "files", "process"])
def test_a5_each_end_has_a_reason_of_its_own(kind: str, launcher: Launcher, tmp_path: Path) -> None:
    """No generator that crashes or gives nothing gives a candidate; what is recorded says which it was."""
    reasons = {}
    for name, (program, expected) in REASONS.items():
        made = generator(kind, program, launcher, tmp_path)
        orchestrator = Orchestrator(generator=made, evaluator=never, budget=Budget(attempts=1, seconds=20))
        (error,) = orchestrator.run(MergedSpec(name="spec", intent="Do it.")).as_json()["errors"]
        reasons[name] = error.splitlines()[0]
        assert expected in error or (name, kind) == ("no result", "files"), error
    assert len(set(reasons.values())) == len(REASONS), reasons


def never(_: Submission) -> Verdict:
    """Nothing hostile gets as far as an evaluation."""
    pytest.fail("there was a candidate")


def test_a5_a_candidate_that_ends_the_suite_has_not_passed(suite_launcher: Launcher) -> None:
    """Each end is an error of the expected case, with a reason of its own."""
    found = {}
    for name, (program, _) in REASONS.items():
        evaluator = CommandEvaluator(
            ["{python}", "suite.py", "{report}"],
            suite={"suite.py": SUITE},
            candidate_file="answer.py",
            report="json",
            launcher=suite_launcher,
        )
        spec = MergedSpec(intent="Do it.", evals=(EvalCase(name="a"),))
        submission = Submission(
            run_id="run", attempt=1, candidate=Candidate(program), spec=spec, language="python", seconds=20
        )
        (result,) = asyncio.run(evaluator.evaluate(submission)).results
        found[name] = (result.id, result.status, result.message)
    assert {(case, status) for case, status, _ in found.values()} == {("a", CaseStatus.ERROR)}
    assert len({message for *_, message in found.values()}) == len(REASONS), found
