"""What importing the package loads, and what it leaves alone."""

from __future__ import annotations

import ast
import subprocess
import sys

import orchestrator_events

LOADED = """
import sys
import orchestrator_events
print([name for name in ("cattrs", "structlog", "sqlite3", "yaml", "rfc8785", "json") if name in sys.modules])
print(sorted(name for name in sys.modules if name.startswith("orchestrator_events.")))
import structlog
print(structlog.is_configured())
import logging
print(logging.getLogger().handlers, logging.getLogger("orchestrator").handlers)
"""


def test_importing_loads_no_heavy_library_and_configures_nothing() -> None:
    """cattrs, structlog, sqlite3 and other event families come when they are used; logging is the host's."""
    result = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    heavy, modules, configured, handlers = result.stdout.splitlines()
    families = {"agent", "workflow", "plan"} & {name.split(".")[1] for name in ast.literal_eval(modules)}
    assert (heavy, families, configured, handlers) == ("[]", set(), "False", "[] []")


def test_every_exported_name_exists() -> None:
    """`__all__` promises nothing that is not there, and is in order."""
    names = orchestrator_events.__all__
    assert [name for name in names if not hasattr(orchestrator_events, name)] == []
    assert len(names) == len(set(names))
