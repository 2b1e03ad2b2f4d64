"""Random SIGKILLs of a process that executes the plan of the victim, each followed by another, until plans are done.

    python tests/faults/random_plan_kills.py [KILLS]        (200 by default; figures on standard output)

Every process is killed after a random time; whatever is left goes on under the same treatment. Each plan must come to
the outcome that an undisturbed one has, with the same files in its studio and a journal whose audit is clean, and no
answer that was recorded may be bought again. SEED in the environment is that of the random times, 1 by default.
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
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import attrs

from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.journal.sqlite import SqliteJournal

VICTIM = Path(__file__).with_name("plan_victim.py")
MEMORY = Path("/dev/shm")
CALL = "slow:20"
"""How long a call of a model takes, ms: with less, hardly any kill would meet one."""
MOMENTS_S = (0.3, 2.2)
"""When the first process is killed, counted from its start; the first third of a second is the interpreter's."""
MOST_IN_FLIGHT = 5
"""Calls at once: four steps, of which one is a dual run."""
OF_ONE_INVOCATION = (".log", "journal.json", "trace.md", "state.json", "state.previous.json", "STATE.md", ".new")
"""Ends of the names of files that hold times, or that a write was cut off in."""


@attrs.frozen
class Completed:
    """A plan that came to its end."""

    kills: int
    repeated: int
    """Calls beyond those of an undisturbed plan."""
    end: dict[str, Any]
    findings: list[str]


def one_plan(random_number: random.Random | None) -> Completed:
    """Start, kill and go on until the plan is completed; None kills nothing."""
    kills, had = 0, dict[str, int]()
    directory = Path(tempfile.mkdtemp(prefix="plan-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None))
    try:
        while was_killed(directory, None if random_number is None else moment(random_number, kills)):
            kills += 1
            had = paid_once(directory, had)
        paid_once(directory, had)
        calls = called(directory)
        end = {**outcome(directory), "files": files(directory / "studio"), "calls": sorted(calls)}
        return Completed(kills, calls.total() - len(calls), end, findings(directory))
    finally:
        shutil.rmtree(directory)


def moment(random_number: random.Random, kills: int) -> float:
    """When a process is killed, seconds from its start; later with each kill, or a busy machine would get nowhere."""
    return random_number.uniform(*MOMENTS_S) * 1.1**kills


def was_killed(directory: Path, seconds: float | None) -> bool:
    """Go on with the plan for so long; whether it had to be killed, and did not complete before."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    process = subprocess.Popen(
        [sys.executable, str(VICTIM), str(directory), CALL],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        told, error = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.communicate()
        return True
    assert (process.returncode, json.loads(told or "{}").get("status")) == (0, "completed"), error
    return False


def outcome(directory: Path) -> dict[str, Any]:
    """What a plan came to: what each step made, word for word, and what the state says of it."""
    state = json.loads((directory / "studio/STATE/state.json").read_text())
    made = {name: artifact["sha256"] for name, artifact in state["artifacts"].items()}
    told = {name: state[name] for name in ("lifecycle", "plan_digest", "failure_history", "open_risks")}
    return {**told, "made": made, "completed": sorted(state["completed_steps"])}


def files(studio: Path) -> dict[str, str]:
    """Digests of the studio's files, but for those in which invocations differ."""
    found = [path for path in studio.rglob("*") if path.is_file() and not path.name.endswith(OF_ONE_INVOCATION)]
    captured = {path.with_suffix(".json") for path in studio.rglob("*.log")}  # these name digests of what holds times
    return {
        str(path.relative_to(studio)): "" if path in captured else sha256(path.read_bytes()).hexdigest()
        for path in sorted(found)
    }


def called(directory: Path) -> Counter[str]:
    """How often a model was called in each run."""
    path = directory / "calls"
    return Counter(path.read_text().split() if path.exists() else ())


def answered(directory: Path) -> set[str]:
    """Runs whose model has answered, as the journal has it."""
    path = directory / "journal.sqlite"

    async def read() -> set[str]:
        with SqliteJournal(path) as journal:
            return {
                run_id
                for run_id in await journal.run_ids()
                async for entry in journal.read(run_id)
                if entry.record.event.name == "turn:answered"
            }

    return asyncio.run(read()) if path.exists() else set()


def paid_once(directory: Path, had: dict[str, int]) -> dict[str, int]:
    """How often each answer that is recorded was asked for; of those that were recorded before, none since."""
    calls = called(directory)
    again = {run_id for run_id, count in had.items() if calls[run_id] > count}
    assert again == set(), f"bought again: {again}"
    return {run_id: calls[run_id] for run_id in answered(directory)}


def findings(directory: Path) -> list[str]:
    """What audits find, of the journal and of the export that lies in the studio."""

    async def exported() -> str:
        with SqliteJournal(directory / "journal.sqlite") as journal:
            return await export_json(journal, "shop")

    texts = (asyncio.run(exported()), (directory / "studio/RUNS/shop/journal.json").read_text())
    return [str(finding) for text in texts for finding in audit(parse_export(text)).findings]


def difference(one: dict[str, Any], other: dict[str, Any]) -> str:
    """Where two outcomes differ."""
    return "\n".join(
        f"{name}: {difference(one[name], other[name]) if isinstance(one.get(name), dict) else one.get(name)} became "
        f"{other.get(name)!s:.500}"
        for name in {**one, **other}
        if one.get(name) != other.get(name)
    )


def main(wanted: int) -> None:
    """Kill until there were enough, then print the figures."""
    random_number = random.Random(int(os.environ.get("SEED", "1")))
    undisturbed = one_plan(None)
    assert undisturbed.findings == []
    kills = plans = repeated = 0
    begun = time.monotonic()
    while kills < wanted:
        plan = one_plan(random_number)
        assert plan.end == undisturbed.end, difference(undisturbed.end, plan.end)
        assert plan.findings == []
        assert 0 <= plan.repeated <= MOST_IN_FLIGHT * plan.kills
        kills, plans, repeated = kills + plan.kills, plans + 1, repeated + plan.repeated
        print(json.dumps({"plans": plans, "kills": kills, "repeated_calls": repeated}), flush=True)
    taken = f"{time.monotonic() - begun:.0f} s"
    print(f"{kills} kills in {plans} plans: all came to the same end, {repeated} calls repeated, {taken}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
