"""The attack list as a whole: where each of its fifteen attacks is proven to fail."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[2]
PROOFS = {
    "A1": ("faults/attacks/test_a1_survivors.py", "test_a1_"),
    "A2": ("faults/attacks/test_a2_deadlines.py", "test_a2_"),
    "A3": ("faults/attacks/test_a3_floods.py", "test_a3_"),
    "A4": ("faults/attacks/test_a4_streams.py", "test_a4_"),
    "A5": ("faults/attacks/test_a5_endings.py", "test_a5_"),
    "A6": ("faults/attacks/test_a6_exhaustion.py", "test_a6_"),
    "A7": ("faults/attacks/test_a7_writes.py", "test_a7_"),
    "A8": ("faults/attacks/test_a8_secrets_and_system_calls.py", "test_a8_"),
    "A9": ("faults/attacks/test_a9_network.py", "test_a9_"),
    "A10": ("faults/test_hostile_text.py", "test_a10_"),
    "A11": ("faults/test_hostile_text.py", "test_a11_"),
    "A12": ("orchestrator/generators/test_openai_faults.py", "test_an_encoded_answer_is_refused"),
    "A13": ("faults/test_hostile_text.py", "test_a13_"),
    "A14": ("faults/test_forgeries.py", "test_refused_"),
    "A15": ("faults/test_hostile_text.py", "test_a15_"),
}
"""The module under `tests`, and how the names of the tests in it begin."""
A12 = (
    "test_the_deadline_holds_whatever_the_server_does",
    "test_a_flood_is_cut_off",
    "test_huge_headers_are_refused",
    "test_an_encoded_answer_is_refused",
    "test_a_redirect_is_never_followed",
    "test_a_document_longer_than_announced_is_no_answer",
)
"""Slow drip, flood, huge headers, gzip bomb, redirect and wrong length: what a server can do to a generator."""


@pytest.mark.parametrize("attack", PROOFS)
def test_each_attack_has_tests(attack: str) -> None:
    """A module that was renamed, or a test that was dropped, is missed here."""
    path, begins = PROOFS[attack]
    assert any(name.startswith(begins) for name in names_in(path)), f"{attack}: no {begins}… in tests/{path}"


def test_the_list_is_whole() -> None:
    """From the first to the fifteenth, and nothing that one test alone stands for is missing."""
    assert list(PROOFS) == [f"A{number}" for number in range(1, 16)]
    assert set(A12) <= set(names_in(PROOFS["A12"][0]))


def names_in(path: str) -> list[str]:
    """The names of the tests in a module; none when there is no such module."""
    file = TESTS / path
    return re.findall(r"^(?:async )?def (test_\w+)", file.read_text(), re.MULTILINE) if file.exists() else []
