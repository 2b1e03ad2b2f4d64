"""Walks through a domain's phases that together take every transition it allows."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

__all__ = ["walks_over"]

Edges = Mapping[str, tuple[str, ...]]
"""From each phase to those that may come next."""


def walks_over(edges: Edges, first: str, last: str) -> Iterator[tuple[str, ...]]:
    """Walks from `first` to `last`, each given by its phases, until every reachable transition was taken.

    A walk takes what was not taken yet wherever it can, so there are few of them. Every phase has a way to `last`,
    which a domain's lifecycle makes sure of.
    """
    left = {(source, target) for source in reachable(edges, first) for target in edges.get(source, ())}
    while left:
        walk = [first]
        while walk[-1] != last:
            walk += step_on(edges, walk[-1], left) or way_to(edges, walk[-1], lambda phase: phase == last)
            left -= set(pairwise(walk))
        yield tuple(walk)


def step_on(edges: Edges, here: str, left: set[tuple[str, str]]) -> list[str]:
    """The phases up to and with the nearest transition that was not taken; empty when there is none ahead."""
    loops_first = sorted(edges.get(here, ()), key=lambda target: target != here)
    for target in loops_first:
        if (here, target) in left:
            return [target]
    return way_to(edges, here, lambda phase: any((phase, target) in left for target in edges.get(phase, ())))


def way_to(edges: Edges, here: str, is_there: Callable[[str], bool]) -> list[str]:
    """The shortest way to a phase that fits, without where it begins; empty when no way leads to one."""
    before: dict[str, str] = {}
    queue = deque([here])
    while queue:
        phase = queue.popleft()
        for target in edges.get(phase, ()):
            if target in before or target == here:
                continue
            before[target] = phase
            if is_there(target):
                return unwound(before, target, here)
            queue.append(target)
    return []


def unwound(before: Mapping[str, str], target: str, here: str) -> list[str]:
    """The way that a search found, from its end to its beginning and turned around."""
    way = [target]
    while before[way[-1]] != here:
        way.append(before[way[-1]])
    return way[::-1]


def reachable(edges: Edges, first: str) -> set[str]:
    """Every phase that there is a way to."""
    found, queue = {first}, [first]
    while queue:
        for target in edges.get(queue.pop(), ()):
            if target not in found:
                found.add(target)
                queue.append(target)
    return found
