"""What `import orchestrator` costs a host."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("cattrs", "concurrent.futures.process", "rfc8785", "rich", "sqlite3", "structlog", "typer", "yaml")


def test_it_loads_nothing_that_only_some_hosts_need() -> None:
    """Codecs, file formats, the database and the terminal are loaded where they are used."""
    loaded = python("import orchestrator, sys; print(*sorted({*sys.argv[1:]} & {*sys.modules}))", *HEAVY)
    assert loaded.split() == []


def python(code: str, *arguments: str) -> str:
    """What a fresh interpreter prints."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
