"""What `import orchestrator` costs a host."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BUDGET_MS = 150

HEAVY = ("cattrs", "concurrent.futures.process", "rfc8785", "rich", "sqlite3", "structlog", "typer", "yaml")

MEASURED = """
import resource
before = resource.getrusage(resource.RUSAGE_SELF)
import orchestrator
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
"""


def test_it_loads_nothing_that_only_some_hosts_need() -> None:
    """Codecs, file formats, the database and the terminal are loaded where they are used."""
    loaded = python("import orchestrator, sys; print(*sorted({*sys.argv[1:]} & {*sys.modules}))", *HEAVY)
    assert loaded.split() == []


def test_it_takes_less_than_150_ms_of_processor_time(tmp_path: Path) -> None:
    """User and system time of the import alone, compiled as installed modules are; the best of five."""
    python("import orchestrator", bytecode=tmp_path)
    assert min(float(python(MEASURED, bytecode=tmp_path)) for _ in range(5)) < BUDGET_MS


def python(code: str, *arguments: str, bytecode: Path | None = None) -> str:
    """What a fresh interpreter prints; with `bytecode`, it keeps compiled modules there."""
    environment = {**os.environ}
    if bytecode is not None:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
