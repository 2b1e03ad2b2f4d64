"""Amendments: what changes is a value that can be told, recorded and applied."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from orchestrator.plan.difference import AmendmentError, Difference, apply, difference
from orchestrator.plan.plan import Plan, Step
from orchestrator.plan.vocabulary import Risk

NAMES = ("a", "b", "c", "d", "e")


@some.composite
def plans(draw: some.DrawFn) -> Plan:
    """Plans of up to five steps, each depending on some before it."""
    names = draw(some.lists(some.sampled_from(NAMES), min_size=1, unique=True))
    steps = []
    for index, name in enumerate(names):
        before = draw(some.lists(some.sampled_from(names[:index]), unique=True)) if index else []
        steps.append(
            Step(
                id=name,
                role="r",
                task=draw(some.sampled_from(("Build.", "Test."))),
                acceptance_criteria=draw(some.sampled_from((("x",), ("x", "y")))),
                risk_level=draw(some.sampled_from(Risk)),
                depends_on=tuple(before),
                ambiguity=draw(some.booleans()),
            )
        )
    return Plan(plan_id="p", goal=draw(some.sampled_from(("g", "h"))), steps=tuple(steps))


@settings(deadline=None)
@given(plans(), plans())
def test_apply_undoes_difference(old: Plan, new: Plan) -> None:
    """Applying what differs between two plans to the first gives the second; nothing differs from itself."""
    assert apply(difference(old, new), old) == new
    assert difference(old, new).is_empty == (old == new)
    assert difference(new, new) == Difference()


OLD = Plan(
    plan_id="p",
    goal="It works.",
    steps=(
        Step(id="a", role="r", task="Design.", acceptance_criteria=("x",), risk_level=Risk.LOW),
        Step(id="b", role="r", task="Build.", acceptance_criteria=("x",), risk_level=Risk.LOW, depends_on=("a",)),
        Step(id="c", role="r", task="Paint.", acceptance_criteria=("x",), risk_level=Risk.LOW),
    ),
)
NEW = Plan(
    plan_id="p",
    goal="It works well.",
    steps=(
        OLD.steps[0],
        attrs.evolve(OLD.steps[1], risk_level=Risk.HIGH, acceptance_criteria=("x", "y"), task="Build it."),
        Step(id="t", role="Tester", task="Test.", acceptance_criteria=("x",), risk_level=Risk.LOW, depends_on=("b",)),
    ),
)


def test_words() -> None:
    """An amendment is told a line for each change."""
    assert difference(OLD, NEW).lines() == (
        "plan: goal: 'It works.' -> 'It works well.'",
        "step c removed",
        "step t added after b: Tester, low risk: 'Test.'",
        "step b: task: 'Build.' -> 'Build it.'",
        "step b: acceptance_criteria: +'y'",
        "step b: risk_level: 'low' -> 'high'",
    )
    assert difference(OLD, OLD).lines() == ("nothing changes",)
    assert difference(OLD, attrs.evolve(OLD, steps=OLD.steps[::-1])).lines() == ("steps reordered: 'c, b, a'",)


@pytest.mark.parametrize(("step_id", "said"), [("b", "its task, acceptance_criteria, risk_level"), ("c", "removed")])
def test_completed_steps_stay(step_id: str, said: str) -> None:
    """What is completed can be neither changed nor removed."""
    with pytest.raises(AmendmentError, match=said) as caught:
        difference(OLD, NEW).require_untouched({step_id})
    assert caught.value.step_id == step_id
    difference(OLD, NEW).require_untouched({"a"})


@pytest.mark.parametrize("other", [NEW, attrs.evolve(OLD, goal="Another."), attrs.evolve(OLD, steps=OLD.steps[:2])])
def test_another_plan(other: Any) -> None:
    """An amendment is applied to the plan it was made for, and to no other."""
    with pytest.raises(AmendmentError):
        apply(difference(OLD, NEW), other)


def test_lifecycle_stays() -> None:
    """An amendment leaves the lifecycle to the lifecycle."""
    executing = attrs.evolve(OLD, lifecycle="executing")
    assert apply(difference(OLD, NEW), executing) == attrs.evolve(NEW, lifecycle="executing")
