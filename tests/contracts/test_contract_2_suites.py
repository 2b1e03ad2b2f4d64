"""Contract 2, "Validation": the kernel's own validators and suites, each in a process of its own.

A process that loaded the kernel may crash at its exit, after its work: what it wrote is judged, never its exit code.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import orchestrator.amplifier

pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")

PACKAGE = Path(orchestrator.amplifier.__file__).parent

SUITE = """
from amplifier_core.validation.behavioral import OrchestratorBehaviorTests
from amplifier_core.validation.structural import OrchestratorStructuralTests


class TestBehavior(OrchestratorBehaviorTests):
    pass


class TestStructure(OrchestratorStructuralTests):
    pass
"""

ENTRY_POINT = """
import asyncio
import os
from importlib.metadata import entry_points
from amplifier_core.validation import OrchestratorValidator

(found,) = [each for each in entry_points(group="amplifier.modules") if each.name == "loop-conformance"]
result = asyncio.run(OrchestratorValidator().validate(found.module))
for check in result.checks:
    print(check.passed, check.severity, check.name, check.message)
print(result.summary(), flush=True)
os._exit(0)
"""


def said_by(*command: str, cwd: Path) -> str:
    """What a program printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_the_kernels_command_validates_the_package_by_path(tmp_path: Path) -> None:
    """`amplifier-core validate orchestrator PATH`: what there is of the contract's quick validation command."""
    command = Path(sys.executable).with_name("amplifier-core")
    said = said_by(str(command), "validate", "orchestrator", str(PACKAGE), cwd=tmp_path)
    assert "PASSED: 5/5 checks passed (0 errors, 0 warnings)" in said or "5/5" in said, said


def test_the_kernels_validator_passes_the_entry_point(tmp_path: Path) -> None:
    """Every check, by the module's name."""
    lines = said_by(sys.executable, "-c", ENTRY_POINT, cwd=tmp_path).splitlines()
    assert lines[-1].startswith("PASSED"), lines
    assert [line for line in lines[:-1] if not line.startswith("True info")] == []


def test_the_kernels_suites_pass(tmp_path: Path) -> None:
    """OrchestratorBehaviorTests and OrchestratorStructuralTests, with the kernel's own pytest plugin."""
    pytest.importorskip("pytest_asyncio", reason="the kernel's plugin needs pytest-asyncio")
    suite, report = tmp_path / "test_module.py", tmp_path / "report.xml"
    suite.write_text(SUITE)
    (tmp_path / "pytest.ini").write_text("[pytest]\nasyncio_mode = strict\n")
    said = said_by(
        *(sys.executable, "-m", "pytest", "-q", "-c", str(tmp_path / "pytest.ini"), "--rootdir", str(tmp_path)),
        *("-p", "no:cacheprovider", f"--junit-xml={report}", "--module-path", str(PACKAGE), str(suite)),
        cwd=tmp_path,
    )
    assert report.exists(), said
    cases = ET.parse(report).getroot().iter("testcase")
    outcomes = {str(case.get("name")): [child.tag for child in case] for case in cases}
    assert outcomes == {
        "test_mount_succeeds": [],
        "test_orchestrator_has_execute_method": [],
        "test_execute_returns_string": [],
        "test_execute_with_empty_prompt": [],
        "test_orchestrator_uses_provider": [],
        "test_orchestrator_updates_context": [],
        "test_structural_validation": [],
    }, said
