"""Processor time of `import orchestrator`, milliseconds above an empty interpreter; the best of seven.

python tests/bench/import_cost.py
"""

from __future__ import annotations

import subprocess
import sys

MEASURED = """
import resource
before = resource.getrusage(resource.RUSAGE_SELF)
import orchestrator
after = resource.getrusage(resource.RUSAGE_SELF)
print((after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime) * 1000)
"""


def measured() -> float:
    """One fresh interpreter's figure."""
    ended = subprocess.run([sys.executable, "-c", MEASURED], check=True, capture_output=True, text=True)
    return float(ended.stdout)


if __name__ == "__main__":
    measured()
    print(f"import orchestrator: {min(measured() for _ in range(7)):.0f} ms of processor time")
