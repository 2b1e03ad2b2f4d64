"""Limits of memory where control groups for memory are ours: on the kernel of an emulated machine, of both versions."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

KERNEL = "ORCHESTRATOR_KERNEL"
"""Names the variable with the directory that a kernel package was unpacked into; emulated.py says how."""
SCRIPT = Path(__file__).with_name("emulated.py")
ROOT = SCRIPT.parents[3]
TESTS = (
    "tests/orchestrator/sandbox/test_cgroup.py::test_memory_in_all_is_bounded_and_the_kill_is_told",
    "tests/faults/attacks/test_a6_exhaustion.py::test_a6_who_takes_too_much_memory_together_is_told_the_limit",
)
"""What is run there; each is for an eval suite and for a generator, and none may be skipped."""


def emulated() -> ModuleType:
    """The module that starts such a machine."""
    found = importlib.util.spec_from_file_location("emulated", SCRIPT)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def kernel() -> Path:
    """Where a kernel is, or a test that is skipped for what is missing."""
    directory = os.environ.get(KERNEL, "")
    if not directory:
        pytest.skip(f"{KERNEL} does not name the directory of an unpacked kernel package: emulated.py says how")
    if missing := emulated().lacking(Path(directory)):
        pytest.skip(f"no machine can be emulated here: {missing}: apt install qemu-system-x86 busybox-static")
    return Path(directory)


@pytest.mark.parametrize("version", [1, 2])
def test_memory_in_all_is_held_on_a_real_kernel(kernel: Path, version: int) -> None:
    """Whoever takes more than all may have together is killed, and told why, by both versions of control groups."""
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "--color=no", "-p", "no:cacheprovider", *TESTS]
    machine = [sys.executable, str(SCRIPT), str(kernel), str(version), *command]
    ended = subprocess.run(machine, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    counted = re.findall(r"^(\d+ .*) in [\d.]+s", ended.stdout, re.MULTILINE)
    assert (ended.returncode, counted) == (0, ["4 passed"]), ended.stdout + ended.stderr
