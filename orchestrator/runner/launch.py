"""Started by path: makes `orchestrator.runner` importable without the rest of the package, and runs one side."""

from __future__ import annotations

import importlib
import json
import os
import sys
from types import ModuleType


def run() -> int:
    """Run the side that the command line names."""
    side, options = sys.argv[1], json.loads(sys.argv[2])
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.modules["orchestrator"] = stub = ModuleType("orchestrator")
    stub.__path__ = [os.path.dirname(here)]
    module = importlib.import_module(f"orchestrator.runner.{side}")
    # What a suite or a candidate imports under this name is the installed package.
    for name in ("pytest_suite", "unittest_suite") if side == "judge" else ():
        if options["framework"] in name:
            importlib.import_module(f"orchestrator.runner.{name}")
    del sys.modules["orchestrator"]
    status: int = module.main(options)
    return status


if __name__ == "__main__":
    sys.exit(run())
