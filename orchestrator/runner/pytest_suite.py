"""A pytest suite in the judge's process: pytest itself writes its JUnit report, into memory, and the cases are its."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Any, Final
from xml.etree import ElementTree as ET

import pytest

from orchestrator.runner.cases import Case
from orchestrator.runner.peer import Peer

__all__ = ["run_suite"]

STATUSES: Final = {"skipped": 1, "failure": 2, "error": 3}
ILLEGAL: Final = re.compile("[^\t\n\r -~\x80-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What pytest does not write into XML as it is."""
LAST_BYTE: Final = 0xFF
NAMES: Final = ("passed", "skipped", "failed", "error")


def run_suite(peer: Peer, arguments: list[str]) -> tuple[list[Case], int]:
    """Run it; its cases, and pytest's exit status."""
    memory = os.memfd_create("report")
    watch = Watch(peer)
    options = ["-q", "-p", "no:cacheprovider", f"--junitxml=/proc/self/fd/{memory}", *arguments]
    status = int(pytest.main(options, plugins=[watch]))
    with open(memory, "rb") as file:
        file.seek(0)
        text = file.read()
    return ([watch.corrected(each) for each in cases_of(text)] if text else []), status


class Watch:
    """Sees to it that no case passes in which the candidate's process failed."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.faults: dict[str, str] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        """Note what went wrong during a case, or before it for good."""
        known = len(self.peer.faults)
        result = yield
        fault = "; ".join(self.peer.faults[known:]) or self.peer.broken
        if fault:
            self.faults[case_id(item.nodeid)] = fault
        return result

    def corrected(self, case: Case) -> Case:
        """The case as it counts."""
        fault = self.faults.get(case.id)
        if fault is None and case.status == "passed":
            return case
        return case if fault is None else Case(case.id, "error", f"{fault}\n{case.message}".strip())


def cases_of(text: bytes) -> list[Case]:
    """The cases of a JUnit report: class and name are the id, the gravest entry is the status."""
    return [case_of(element) for element in ET.fromstring(text).iter("testcase")]  # noqa: S314 -- pytest's own


def case_of(element: ET.Element) -> Case:
    """One case."""
    name = "::".join(part for part in (element.get("classname"), element.get("name")) if part)
    worst = max((each for each in element if each.tag in STATUSES), key=lambda each: STATUSES[each.tag], default=None)
    if worst is None:
        return Case(name, "passed")
    parts = [(part or "").strip() for part in (worst.get("message"), worst.text)]
    return Case(name, NAMES[STATUSES[worst.tag]], "\n".join(part for part in parts if part))


def case_id(node: str) -> str:
    """The id that a node has in a JUnit report."""
    path, bracket, parameters = node.partition("[")
    file, *names = path.split("::")
    parts = [file.replace("/", ".").removesuffix(".py"), *names]
    parts[-1] += bracket + parameters
    *classes, name = parts
    return "::".join(part for part in (".".join(classes), "".join(map(shown, name))) if part)


def shown(character: str) -> str:
    """A character as an XML report holds it."""
    if ILLEGAL.match(character) is None:
        return character
    code = ord(character)
    return f"#x{code:02X}" if code <= LAST_BYTE else f"#x{code:04X}"
