"""The rules between the steps of a plan, checked on sketches, so that a file with wrong types is checked too."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice, pairwise
from typing import Final

import attrs

from orchestrator.faults import Fault, closest_name, step
from orchestrator.jsondata import JSON, json_faults
from orchestrator.paths import path_key
from orchestrator.plan.ordering import Ancestry, cycle
from orchestrator.plan.vocabulary import ARTIFACT, IDENTIFIER, is_artifact_name, is_identifier, output_name

__all__ = ["MOST_STEPS", "Sketch", "check_sketches", "head_faults", "rule_faults", "text_faults"]

MOST_STEPS: Final = 10_000
"""How many steps a plan may have."""
MOST_FAULTS: Final = 200
MOST_HINTS: Final = 10
"""How often a near name is looked for: that takes long among thousands."""
LONGEST_CYCLE: Final = 8
NO_ID: Final = "#"
"""What the sketch of a step without an id is called by, before its index."""
UNSEEN: Final = "not looked at"
"""Stands for a text that is missing, which the types already complain of."""


@attrs.frozen
class Sketch:
    """Of one step, what the rules between steps look at."""

    id: str
    depends_on: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = (UNSEEN,)
    role: str = UNSEEN
    task: str = UNSEEN


def rule_faults(data: JSON) -> tuple[Fault, ...]:
    """Every broken rule of a plan whose types are wrong, as far as it can be told."""
    table = by_name(data)
    faults = (*head_faults(table.get("plan_id"), table.get("goal")), *check_sketches(*sketches_of(table)))
    return (*faults, *text_faults(data))


def head_faults(plan_id: JSON, goal: JSON) -> Iterator[Fault]:
    """What is wrong with the id and the goal, where they are texts."""
    if isinstance(plan_id, str) and not is_identifier(plan_id):
        yield Fault("$.plan_id", f"{plan_id!a:.120} is no plan id: use {IDENTIFIER}")
    if isinstance(goal, str) and not goal.strip():
        yield Fault("$.goal", "is empty: say what the plan is to reach")


def check_sketches(steps: Sequence[Sketch], context: Sequence[str]) -> tuple[Fault, ...]:
    """Every broken rule with its path, the first 200 of them."""
    if len(steps) > MOST_STEPS:
        return (Fault("$.steps", f"{len(steps)} steps: a plan has at most {MOST_STEPS}, so split it"),)
    if not steps:
        return (Fault("$.steps", "there is no step: a plan needs at least one"),)
    found = list(islice(plan_faults(steps, context), MOST_FAULTS + 1))
    if len(found) > MOST_FAULTS:
        found[MOST_FAULTS:] = [Fault("$.steps", f"more than {MOST_FAULTS} faults: these are the first")]
    return tuple(found)


def sketches_of(table: Mapping[str, JSON]) -> tuple[list[Sketch], tuple[str, ...]]:
    """What can be told of a plan whose types are wrong: its steps, and its context artifacts."""
    entries = table.get("steps")
    context = texts(table.get("context_requirements"))
    if not isinstance(entries, list):
        return [Sketch(f"{NO_ID}0")], context
    steps = [by_name(entry) for entry in entries]
    found = [
        Sketch(
            id=str(entry.get("id", f"{NO_ID}{index}")),
            depends_on=texts(entry.get("depends_on")),
            inputs=texts(entry.get("inputs")),
            outputs=texts(entry.get("outputs")),
            acceptance_criteria=texts(entry.get("acceptance_criteria", (UNSEEN,))),
            role=text(entry.get("role")),
            task=text(entry.get("task")),
        )
        for index, entry in enumerate(steps)
    ]
    return found, context


def text_faults(data: JSON) -> Iterator[Fault]:
    """Texts that no UTF-8 file could hold."""
    return islice(json_faults(data), MOST_FAULTS)


def by_name(entry: JSON) -> Mapping[str, JSON]:
    """A table with '_' for '-' in its keys; an empty one for anything else."""
    return {str(key).replace("-", "_"): value for key, value in entry.items()} if isinstance(entry, Mapping) else {}


def text(value: JSON) -> str:
    """A text as it is; for anything else what stands for one."""
    return value if isinstance(value, str) else UNSEEN


def texts(value: JSON) -> tuple[str, ...]:
    """The texts of an array; a text that stands where one is wanted counts as one of one."""
    if isinstance(value, str):
        return (value,)
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list | tuple) else ()


def plan_faults(steps: Sequence[Sketch], context: Sequence[str]) -> Iterator[Fault]:
    """Each broken rule, in order of the rules."""
    for index, name in enumerate(context):
        if not is_artifact_name(name):
            yield Fault(step("$.context_requirements", index), f"{name!a:.120} is no artifact: use {ARTIFACT}")
    yield from name_faults(steps)
    dependencies = {each.id: each.depends_on for each in steps}
    unknown = list(islice(dependency_faults(steps, dependencies), MOST_FAULTS + 1))
    yield from unknown
    found = cycle(dependencies)
    if found:
        index = next(index for index, each in enumerate(steps) if each.id == found[0])
        message = f"depends on itself: {shortened(found)}; remove one of these dependencies"
        yield Fault(f"$.steps[{index}].depends_on", message)
    is_ordered = not found and not unknown and len(dependencies) == len(steps)
    yield from artifact_faults(steps, context, Ancestry.of(dependencies) if is_ordered else None)


def name_faults(steps: Sequence[Sketch]) -> Iterator[Fault]:
    """Ids, and what else one step alone can have wrong."""
    seen: dict[str, str] = {}
    for index, each in enumerate(steps):
        path = step("$.steps", index)
        if not is_identifier(each.id) and not each.id.startswith(NO_ID):
            yield Fault(step(path, "id"), f"{each.id!a:.120} is no step id: use {IDENTIFIER}")
        key = path_key(each.id)
        if key in seen:
            what = "the id of two steps" if seen[key] == each.id else f"the same file name as {seen[key]!a:.120}"
            yield Fault(step(path, "id"), f"{each.id!a:.120} is {what}: rename one")
        seen.setdefault(key, each.id)
        yield from content_faults(each, path)


def content_faults(each: Sketch, path: str) -> Iterator[Fault]:
    """Role, task, acceptance criteria and outputs of a step."""
    for name, said in (("role", each.role), ("task", each.task)):
        if not said.strip():
            yield Fault(step(path, name), "is empty: every step needs one")
    if not each.acceptance_criteria:
        yield Fault(step(path, "acceptance_criteria"), "is empty: say at least one thing that tells it is done")
    for place, criterion in enumerate(each.acceptance_criteria):
        if not criterion.strip():
            yield Fault(step(step(path, "acceptance_criteria"), place), "is empty: say something or remove it")
    for place, name in enumerate(each.outputs):
        if not is_artifact_name(name):
            yield Fault(step(step(path, "outputs"), place), f"{name!a:.120} is no artifact: use {ARTIFACT}")


def dependency_faults(steps: Sequence[Sketch], known: Mapping[str, object]) -> Iterator[Fault]:
    """Dependencies that are no steps, or named twice."""
    hints = iter(range(MOST_HINTS))
    for index, each in enumerate(steps):
        for place, name in enumerate(each.depends_on):
            path = step(f"$.steps[{index}].depends_on", place)
            if name not in known:
                hint = closest_name(name, known) if next(hints, None) is not None else ""
                yield Fault(path, f"there is no step {name!a:.120}", hint)
        if len(set(each.depends_on)) < len(each.depends_on):
            yield Fault(f"$.steps[{index}].depends_on", "names a step twice: keep one")


def artifact_faults(steps: Sequence[Sketch], context: Sequence[str], ancestry: Ancestry | None) -> Iterator[Fault]:
    """Inputs that nobody makes in time, and outputs that two steps make at once.

    Without an order, which a plan with broken dependencies has not, only inputs that nobody makes at all.
    """
    makers: dict[str, list[str]] = {}
    indexes = {each.id: index for index, each in enumerate(steps)}
    for name in indexes if ancestry is None else ancestry.order:
        for output in steps[indexes[name]].outputs or (output_name(name),):
            makers.setdefault(output, []).append(name)
    if ancestry is not None:
        yield from twin_faults(makers, indexes, ancestry)
    yield from input_faults(steps, frozenset(context), makers, ancestry)


def twin_faults(makers: Mapping[str, Sequence[str]], indexes: Mapping[str, int], ancestry: Ancestry) -> Iterator[Fault]:
    """Outputs that two steps make, neither of them after the other."""
    for output, names in makers.items():
        for first, second in pairwise(names):
            if not ancestry.holds(second, first):
                what = "is made twice" if first == second else f"is also made by {first!a}, which may run at that time"
                message = f"{output!a:.120} {what}: let one depend on the other, or rename one"
                yield Fault(f"$.steps[{indexes[second]}].outputs", message)


def input_faults(
    steps: Sequence[Sketch], context: Collection[str], makers: Mapping[str, Sequence[str]], ancestry: Ancestry | None
) -> Iterator[Fault]:
    """Inputs that are neither context nor made by a step before; `makers` has the steps that make each output."""
    hints = iter(range(MOST_HINTS))
    for index, each in enumerate(steps):
        for place, name in enumerate(each.inputs):
            path = step(f"$.steps[{index}].inputs", place)
            others = [maker for maker in makers.get(name, ()) if maker != each.id]
            if name in context or is_made(each.id, others, ancestry):
                continue
            if others:
                what = f"is made by {others[0]!a}, on which this step does not depend: add it to depends_on"
                yield Fault(path, f"{name!a:.120} {what}")
            else:
                hint = closest_name(name, {*makers, *context}) if next(hints, None) is not None else ""
                message = f"{name!a:.120} is no step's output and no context artifact: make it, or require it"
                yield Fault(path, message, hint)


def is_made(step_id: str, makers: Sequence[str], ancestry: Ancestry | None) -> bool:
    """Whether one of these steps is before a step; without an order, whether there is one."""
    return bool(makers) if ancestry is None else any(ancestry.holds(step_id, maker) for maker in makers)


def shortened(names: Sequence[str]) -> str:
    """A cycle in words, at most eight names of it."""
    shown = names if len(names) <= LONGEST_CYCLE else (*names[: LONGEST_CYCLE - 1], "…", names[-1])
    return " -> ".join(shown)
