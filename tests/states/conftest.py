"""Lifecycles of several shapes, for whatever draws or exports them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest

from orchestrator_states import RUN, Lifecycle, Row, StateName


def row(event: str, sources: str | Sequence[str], target: str, **where: str | bool) -> Row:
    """A row by the wire name of its event."""
    listed = [sources] if isinstance(sources, str) else sources
    return Row(event, tuple(StateName(state) for state in listed), StateName(target), where)


def built(name: str, states: Sequence[str], resting: Sequence[str], rows: Sequence[Row]) -> Lifecycle:
    """A lifecycle that starts in its first state."""
    return Lifecycle(
        name=name,
        states=[StateName(state) for state in states],
        initial=StateName(states[0]),
        resting=[StateName(state) for state in resting],
        rows=rows,
    )


CHAIN = built(
    "chain",
    ["a", "b"],
    ["b"],
    [row("attempt:passed", "a", "b"), row("attempt:failed", "a", "a"), row("prompt:refined", "b", "a")],
)
"""Two states, a loop at one and a way back."""

LOOP = built(
    "plan",
    ["draft", "reviewed", "locked", "executing", "amended", "completed"],
    ["completed"],
    [
        row("prompt:ready", "draft", "reviewed"),
        row("approval:answered", "reviewed", "locked", is_approved=True),
        row("approval:answered", "reviewed", "draft", is_approved=False),
        row("execution:start", "locked", "executing"),
        row("prompt:refined", "executing", "amended"),
        row("approval:requested", "amended", "reviewed"),
        row("child:ended", "executing", "executing"),
        row("attempt:passed", "executing", "completed"),
    ],
)
"""Conditions, a self-loop and two ways back, without groups."""

STEP = built(
    "step",
    ["pending", "executing", "verifying", "reviewing", "fixing", "completed", "blocked", "failed"],
    ["completed", "blocked", "failed"],
    [
        row("execution:start", "pending", "executing"),
        row("candidate:generated", "executing", "verifying"),
        row("evaluation:started", "verifying", "reviewing"),
        row("attempt:failed", ["verifying", "reviewing"], "fixing"),
        row("prompt:refined", "fixing", "executing"),
        row("attempt:passed", "reviewing", "completed"),
        row("budget:exhausted", ["executing", "fixing"], "blocked"),
        row("execution:resumed", "blocked", "pending"),
        row("execution:failed", ["executing", "verifying", "reviewing", "fixing"], "failed"),
    ],
)
"""One group with a state beside its path."""

ODD = built(
    'odd "name": <b>&',
    ["state", "end", "1-2", "1_2", 'say "hi" & <go>'],
    ["end"],
    [
        row("prompt:ready", ["state", "1-2"], "1_2"),
        row("attempt:failed", "state", "1-2"),
        row("attempt:passed", "1_2", 'say "hi" & <go>'),
        row("execution:end", 'say "hi" & <go>', "end"),
        row("approval:answered", "1_2", "end", answer='<"&>'),
    ],
)
"""Names that are keywords, collide once escaped, or hold characters that mean something."""

PHASES = [f"phase-{number}" for number in range(1, 17)]
DENSE = built(
    "domain",
    [*PHASES, "escalated", "released", "rejected", "failed"],
    ["released", "rejected", "failed"],
    [
        *(row("attempt:passed", one, other) for one, other in pairwise(PHASES)),
        row("attempt:passed", PHASES[-1], "released"),
        *(row("attempt:failed", one, other) for one, other in zip(PHASES[2::3], PHASES[1::3], strict=False)),
        row("approval:requested", [PHASES[5], PHASES[9], PHASES[12]], "escalated"),
        row("approval:answered", "escalated", PHASES[9], is_approved=True),
        row("approval:answered", "escalated", "rejected", is_approved=False),
        row("execution:cancelled", PHASES, "rejected"),
        row("execution:failed", PHASES, "failed"),
    ],
)
"""Twenty states, as a generated domain table may have them."""

TABLES = {each.name: each for each in (RUN, CHAIN, LOOP, STEP, ODD, DENSE)}


@pytest.fixture(params=TABLES.values(), ids=["run", "chain", "loop", "step", "odd", "dense"])
def table(request: pytest.FixtureRequest) -> Lifecycle:
    """Each of the tables in turn."""
    drawn: Lifecycle = request.param
    return drawn


@pytest.fixture
def chain() -> Lifecycle:
    """Two states, a loop at one and a way back."""
    return CHAIN


@pytest.fixture
def odd() -> Lifecycle:
    """Names that are hard to write in any diagram language."""
    return ODD
