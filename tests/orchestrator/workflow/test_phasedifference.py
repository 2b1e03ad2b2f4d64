"""How two versions of a domain differ, told phase by phase."""

from __future__ import annotations

import pytest

from orchestrator.workflow.phasedifference import phase_differences
from orchestrator_states.workflow import phases_lifecycle

WAS = phases_lifecycle("demo", ("a", "b", "done"), {})


@pytest.mark.parametrize(
    ("phases", "following", "differences"),
    [
        (("a", "b", "done"), {}, ()),
        (("a", "b", "c", "done"), {}, (("phase c", "not there", "there"),)),
        (("a", "done"), {}, (("phase b", "there", "gone"),)),
        (("a", "b", "done"), {"a": ["b"]}, (("next of a", "any phase", "b"),)),
        (("b", "a", "done"), {}, (("phases", "a, b, done", "b, a, done"),)),
    ],
    ids=["the same", "one more", "one less", "another next", "another order"],
)
def test_phase_differences(
    phases: tuple[str, ...], following: dict[str, list[str]], differences: tuple[tuple[str, str, str], ...]
) -> None:
    """Phases that came or went are named, and what else may follow where that is declared."""
    assert phase_differences(WAS, phases_lifecycle("demo", phases, following)) == differences


def test_another_domain() -> None:
    """Between two domains there is nothing to compare phase by phase."""
    assert phase_differences(WAS, phases_lifecycle("other", ("x", "done"), {})) == ()
