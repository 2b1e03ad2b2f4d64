"""Walks through a domain's phases."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.cli.workflows.walks import walks_over

PHASES = ("a", "b", "c", "d", "done")
EDGES = st.fixed_dictionaries(
    {phase: st.lists(st.sampled_from(PHASES), unique=True).map(tuple) for phase in PHASES[:-1]}
)


@given(EDGES)
def test_every_transition_is_taken(edges: dict[str, tuple[str, ...]]) -> None:
    """All walks together take each transition that can be reached, and none that is not declared; each ends at done."""
    edges = {phase: tuple(dict.fromkeys((*targets, "done"))) for phase, targets in edges.items()}
    walks = list(walks_over(edges, "a", "done"))
    taken = {pair for walk in walks for pair in pairwise(walk)}
    within, queue = {"a"}, ["a"]
    while queue:
        fresh = set(edges.get(queue.pop(), ())) - within
        within |= fresh
        queue += fresh
    assert taken == {(source, target) for source in within for target in edges.get(source, ())}
    assert {(walk[0], walk[-1]) for walk in walks} == {("a", "done")}


def test_a_single_phase() -> None:
    """A domain of one phase that may repeat needs one walk."""
    assert list(walks_over({"a": ("a", "done")}, "a", "done")) == [("a", "a", "done")]
