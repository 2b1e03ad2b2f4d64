"""A run that nobody touched is audited clean, however it ended and however often it was cut off."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from orchestrator import MergedSpec, Orchestrator
from orchestrator.audit import audit
from orchestrator.export import export_lines
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ScriptedEvaluator, ScriptedGenerator

CHECKS = (
    "chain", "head", "records", "digests", "table", "spec", "moves", "markers", "isolation", "attempts", "prompts",
    "consents", "budget", "verdicts", "results",
)  # fmt: skip


def test_every_ending(course: str, exported: Callable[[str], str]) -> None:
    """Passed, exhausted by each limit, denied, interrupted, failed: every check is done, none finds a thing."""
    head = json.loads(exported(course))["head"]
    report = audit(parse_export(exported(course)), head=head["digest"], count=head["count"])
    assert (report.findings, report.checks, report.is_clean) == ((), CHECKS, True)


def test_every_resumption(course: str, resumptions: Callable[[str], Iterator[tuple[str, str]]]) -> None:
    """A run that was cut off after any commit, or ended, and was resumed, once or twice, is audited clean."""
    found = {how: [str(finding) for finding in audit(parse_export(text)).findings] for how, text in resumptions(course)}
    assert found == {how: [] for how in found}


def test_lines_are_the_same_export() -> None:
    """Both forms of an export hold the same run, and its report says what the run's own result said."""
    journal = MemoryJournal()
    orchestrator = Orchestrator(
        generator=ScriptedGenerator(["one", "two"]),
        evaluator=ScriptedEvaluator([{"case": "no"}, {"case": True}]),
        journal=journal,
    )
    result = orchestrator.run(MergedSpec(intent="Count."))

    async def lines() -> str:
        return "".join([line async for line in export_lines(journal, result.run_id)])

    report = audit(parse_export(asyncio.run(lines())), head=result.journal_head.digest, count=result.journal_head.count)
    assert report.as_json() == {
        "format": "orchestrator.audit/1",
        "run": result.run_id,
        "head": {"digest": result.journal_head.digest, "count": result.journal_head.count},
        "state": "passed",
        "spec": result.spec_digest,
        "checks": list(CHECKS),
        "findings": [],
        "is_clean": True,
    }


BARE = """
import sys, types
package = types.ModuleType("orchestrator")
package.__path__ = [sys.argv[1]]
sys.modules["orchestrator"] = package
from orchestrator.audit import audit
from orchestrator.importing import read_export
assert audit(read_export(sys.argv[2])).is_clean
engine = ("driver", "engine", "evaluators", "generators", "process", "supervision", "threads", "strategies", "resuming")
print([name for name in engine if f"orchestrator.{name}" in sys.modules])
"""


def test_audit_needs_no_engine(tmp_path: Path, exported: Callable[[str], str]) -> None:
    """The audit works where nothing of the engine is loaded: neither driver nor generators nor evaluators."""
    export = tmp_path / "run.json"
    export.write_text(exported("passed after failures"))
    package: Any = sys.modules["orchestrator"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or os.getcwd() for path in sys.path)}
    ended = subprocess.run(
        [sys.executable, "-c", BARE, package.__path__[0], str(export)],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "[]\n", "")
