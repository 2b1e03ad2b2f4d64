"""A3: a gigabyte of output, in all the ways that lead into the engine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from orchestrator.evaluators.reports import LARGEST_REPORT
from orchestrator.generators.command import ARCHIVE_OVERHEAD

ENGINE = Path(__file__).with_name("programs") / "flooded_engine.py"
CAP = 8_000_000
"""What is kept of each stream, bytes; more than what an engine's memory grows and shrinks by anyway."""
QUIET = 1_000_000
"""What an engine's peak differs by between runs that are flooded by nobody, bytes."""
GIGABYTE = 1_000_000_000
FLOOD = (
    "import os, sys\nchunk = {chunk}\nfor _ in range({count}):\n    for stream in {streams}: os.write(stream, chunk)\n"
)
LINES = "b'x' * 79 + b'\\n'"
FLOODS = {
    "stdout": FLOOD.format(chunk=f"({LINES}) * 1000", count=GIGABYTE // 80_000, streams="(1,)"),
    "no newline": FLOOD.format(chunk="b'x' * 80_000", count=GIGABYTE // 80_000, streams="(1,)"),
    "stderr": FLOOD.format(chunk="b'x' * 80_000", count=GIGABYTE // 80_000, streams="(2,)"),
    "both": FLOOD.format(chunk="b'x' * 80_000", count=GIGABYTE // 160_000, streams="(1, 2)"),
    "one byte at a time": FLOOD.format(chunk="b'x'", count=GIGABYTE, streams="(1,)"),
}
REPORT = "import os, sys\nfile = os.open(sys.argv[1], os.O_WRONLY)\nwhile True: os.write(file, b'x' * 80_000)"
LEFT = "import os\nwith open('big', 'wb', 0) as file:\n    for _ in range(400): file.write(b'x' * 250_000)"
DOCUMENT = "print('{\"candidate\": \"' + 'x' * 7_900_000 + '\"}')"
MANY_LEFT = "for number in range(100):\n    with open(str(number), 'w') as file: file.write('x' * 1_000_000)"


@attrs.frozen
class Case:
    """One way to flood an engine."""

    kind: str
    name: str
    program: str
    reason: str = "wrote too much to"
    caps: int = CAP
    """What may be kept in all, bytes."""
    is_quick: bool = False


CASES = [
    Case("text", "stdout", FLOODS["stdout"]),
    Case("text", "no newline", FLOODS["no newline"], is_quick=True),
    Case("text", "stderr", FLOODS["stderr"]),
    Case("text", "both", FLOODS["both"], is_quick=True),
    Case("json", "no newline", FLOODS["no newline"]),
    Case("json", "a long document", f"{DOCUMENT}; raise SystemExit(3)", "ended with status 3"),
    Case("files", "stdout", FLOODS["no newline"]),
    Case("files", "a large file", LEFT, "left", CAP + ARCHIVE_OVERHEAD),
    Case("files", "large files", MANY_LEFT, "left", CAP + ARCHIVE_OVERHEAD, is_quick=True),
    Case("suite", "stdout", FLOODS["stdout"]),
    Case("suite", "stderr", FLOODS["stderr"]),
    Case("suite", "both", FLOODS["both"], caps=2 * CAP, is_quick=True),
    Case("suite", "report", REPORT, "wrote too much to report", LARGEST_REPORT, is_quick=True),
]


@pytest.mark.parametrize("flood", FLOODS)
def test_a3_a_flood_is_stopped_at_the_cap(ground: Any, flood: str) -> None:
    """What was within the cap is kept, the rest is not read, and the program is gone."""
    if flood == "one byte at a time":
        completed = ground.run(FLOODS[flood], stdout_limit=1_000, stderr_limit=1_000)
    else:
        completed = ground.run(FLOODS[flood], stdout_limit=1_000_000, stderr_limit=1_000_000)
    kept = {"stdout": len(completed.stdout), "stderr": len(completed.stderr)}[completed.exceeded]
    assert kept == (1_000 if flood == "one byte at a time" else 1_000_000)
    assert (completed.timed_out, completed.duration_us < 5_000_000, ground.survivors()) == (False, True, [])


@pytest.mark.usefixtures("launcher")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.kind}-{case.name}")
def test_a3_the_engine_keeps_its_memory(case: Case, level: str, environment: dict[str, str], is_long: bool) -> None:
    """Its peak is within what it was before and twice the caps that are in play."""
    if not (case.is_quick or is_long):
        pytest.skip("the shorter list; all of them with ORCHESTRATOR_FAULTS=long")
    settings = {"kind": case.kind, "level": level, "program": case.program, "cap": CAP}
    command = [sys.executable, str(ENGINE), json.dumps(settings)]
    told = json.loads(subprocess.run(command, env=environment, capture_output=True, timeout=60, check=True).stdout)
    print(case.kind, case.name, level, round(told["grown"] / case.caps, 2), "times the caps")
    assert case.reason in told["reason"]
    assert told["grown"] < 1.5 * case.caps + QUIET
