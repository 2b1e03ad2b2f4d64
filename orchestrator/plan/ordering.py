"""The order of a plan's steps: by dependency, what may run side by side, and where a cycle is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import attrs

if TYPE_CHECKING:
    from orchestrator.plan.plan import Plan, Step

__all__ = ["Ancestry", "cycle", "ordered", "parallel_sets", "ready"]

Dependencies: TypeAlias = Mapping[str, Sequence[str]]
"""Steps by id, each with the ids it depends on."""


def ordered(plan: Plan) -> tuple[Step, ...]:
    """The steps so that each comes after all it depends on; otherwise in the plan's order."""
    return tuple(step for group in parallel_sets(plan) for step in group)


def parallel_sets(plan: Plan) -> tuple[tuple[Step, ...], ...]:
    """The steps in groups: those of a group depend on earlier groups alone, so they may run side by side."""
    groups, _ = layers({step.id: step.depends_on for step in plan.steps})
    return tuple(tuple(plan.step(name) for name in group) for group in groups)


def ready(plan: Plan, completed: Collection[str]) -> tuple[Step, ...]:
    """The steps that are not completed and may run now, in the plan's order."""
    done = set(completed)
    return tuple(step for step in plan.steps if step.id not in done and done.issuperset(step.depends_on))


def cycle(dependencies: Dependencies) -> tuple[str, ...]:
    """A cycle, such as ('a', 'b', 'a') where a depends on b; empty when there is none. Unknown ids are no steps."""
    _, left = layers(dependencies)
    if not left:
        return ()
    # Each of those left depends on another one that is left, so following them comes around.
    path: dict[str, None] = {}
    name = next(iter(left))
    while name not in path:
        path[name] = None
        name = next(each for each in dependencies[name] if each in left)
    names = list(path)
    return (*names[names.index(name) :], name)


@attrs.frozen
class Ancestry:
    """Who comes before whom, of dependencies without a cycle."""

    order: tuple[str, ...]
    before: Mapping[str, int]
    """Of each step, a number with a bit for each step it depends on, directly or not."""
    places: Mapping[str, int]

    @classmethod
    def of(cls, dependencies: Dependencies) -> Ancestry:
        """The ancestry of acyclic dependencies; unknown ids are no steps."""
        groups, _ = layers(dependencies)
        order = tuple(name for group in groups for name in group)
        places = {name: place for place, name in enumerate(order)}
        before: dict[str, int] = {}
        for name in order:
            bits = 0
            for other in known(dependencies[name], places):
                bits |= before[other] | 1 << places[other]
            before[name] = bits
        return cls(order, before, places)

    def holds(self, later: str, earlier: str) -> bool:
        """Whether one step depends on another, directly or not."""
        return bool(self.before[later] >> self.places[earlier] & 1)


def layers(dependencies: Dependencies) -> tuple[list[list[str]], dict[str, None]]:
    """Steps in groups, each after all it depends on, and those that depend on a cycle."""
    needs = {name: set(known(others, dependencies)) for name, others in dependencies.items()}
    followers: dict[str, list[str]] = {name: [] for name in needs}
    for name, others in needs.items():
        for other in others:
            followers[other].append(name)
    place = {name: index for index, name in enumerate(needs)}
    left = {name: len(others) for name, others in needs.items()}
    groups: list[list[str]] = []
    group = [name for name, count in left.items() if not count]
    while group:
        groups.append(group)
        following: list[str] = []
        for name in group:
            del left[name]
            for other in followers[name]:
                left[other] -= 1
                if not left[other]:
                    following.append(other)
        group = sorted(following, key=place.__getitem__)
    return groups, dict.fromkeys(left)


def known(names: Iterable[str], among: Collection[str]) -> list[str]:
    """The names that are among others."""
    return [name for name in names if name in among]
