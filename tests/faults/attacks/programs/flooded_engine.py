"""A3, an engine that is flooded, in a process of its own: prints what its memory grew by, and why the flood ended.

    python flooded_engine.py JSON

The flood comes from a generator (text, json, files) or from a suite (suite), at the level that is named.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from orchestrator import Budget, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.evaluators.command import CommandEvaluator
from orchestrator.generators.command import CommandGenerator
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR
from orchestrator.spec import EvalCase

BACKENDS = {"strong": "bubblewrap", "basic": "containment"}


def memory(name: str) -> int:
    """A figure of /proc/self/status, bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))


def flooded(settings: dict[str, Any], program: str) -> str:
    """Why the program's generation or evaluation failed."""
    backend, cap = BACKENDS[settings["level"]], settings["cap"]
    command = ["{python}" if settings["kind"] == "suite" else sys.executable, "-I", "-S", "-c", program]
    spec = MergedSpec(name="spec", intent="Do it.", evals=(EvalCase(name="a"),))
    if settings["kind"] == "suite":
        launcher = best_sandbox(EVAL, backend=backend)  # type: ignore[arg-type] # two of its names
        options: Any = {"candidate_file": "a", "report": "json", "output_limit": cap, "launcher": launcher}
        evaluator = CommandEvaluator([*command, "{report}"], suite={}, **options)
        orchestrator = Orchestrator(generator=lambda _: "x", evaluator=evaluator, budget=Budget(attempts=1, seconds=60))
        failing = asyncio.run(orchestrator.arun(spec)).as_json()["history"][0]["failing"]
        return str(failing)
    launcher = best_sandbox(GENERATOR, backend=backend)  # type: ignore[arg-type] # two of its names
    options = {"output": settings["kind"], "output_limit": cap, "launcher": launcher}
    generator = CommandGenerator(command, **options)
    orchestrator = Orchestrator(
        generator=generator, evaluator=never, candidate_limit=cap, budget=Budget(attempts=1, seconds=60)
    )
    return str(asyncio.run(orchestrator.arun(spec)).as_json()["errors"])


def never(_: Submission) -> Verdict:
    """A flood is no candidate."""
    raise AssertionError


def main(settings: dict[str, Any]) -> None:
    """Warm up on programs that fail quietly, then be flooded."""
    before = 0
    for _ in range(2):
        Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
        flooded(settings, "raise SystemExit(3)")
        before = memory("VmHWM")
    reason = flooded(settings, settings["program"])
    print(json.dumps({"grown": memory("VmHWM") - before, "reason": reason[:2000]}))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
