"""Parts of a spec with the place in the file each came from, so that faults point at the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

import attrs

from orchestrator.faults import step
from orchestrator.spec.entries import CaseEntry, EvalSuite, EvalTables, KindedCaseEntry, ModuleCase, eval_case
from orchestrator.spec.model import EvalCase, EvalKind

__all__ = ["Placed", "cases_of_list", "cases_of_tables", "named_parts", "place_map", "values"]

_Part = TypeVar("_Part")


@attrs.frozen
class Placed(Generic[_Part]):
    """A part and its place: a path in a document, or a line of a text."""

    place: str
    value: _Part


def values(parts: Sequence[Placed[_Part]]) -> tuple[_Part, ...]:
    """The parts without their places."""
    return tuple(part.value for part in parts)


def place_map(prefix: str, parts: Sequence[Placed[_Part]], keys: Sequence[str] = ()) -> dict[str, str]:
    """Where `prefix[0]`, `prefix[1]` … came from; `keys` are fields that share the place of their part."""
    places = {step(prefix, index): part.place for index, part in enumerate(parts)}
    return places | {step(path, key): place for path, place in places.items() for key in keys}


def named_parts(
    given: Sequence[_Part] | Mapping[str, str], path: str, build: Callable[[str, str], _Part]
) -> tuple[Placed[_Part], ...]:
    """Parts from a list, in its order, or from a table of name and text, in the order of the names.

    The keys of a table have no order in JSON or TOML, so a file cannot mean one by them.
    """
    if isinstance(given, Mapping):
        return tuple(Placed(step(path, name), build(name, given[name])) for name in sorted(given))
    return tuple(Placed(step(path, index), part) for index, part in enumerate(given))


def cases_of_list(entries: Sequence[KindedCaseEntry], path: str) -> tuple[Placed[EvalCase], ...]:
    """Eval cases from entries that each name their kind."""
    return tuple(Placed(step(path, index), eval_case(entry, entry.kind)) for index, entry in enumerate(entries))


def cases_of_tables(tables: EvalTables | EvalSuite, path: str) -> tuple[Placed[EvalCase], ...]:
    """Eval cases from the three tables: functional, adversarial, generator adversary, in this order."""
    kinds: tuple[tuple[str, Sequence[CaseEntry | ModuleCase], EvalKind], ...] = (
        ("cases", tables.cases, EvalKind.FUNCTIONAL),
        ("adversarial", tables.adversarial, EvalKind.ADVERSARIAL),
        ("generator_adversary", tables.generator_adversary, EvalKind.GENERATOR_ADVERSARY),
    )
    return tuple(
        Placed(step(step(path, table), index), eval_case(entry, kind))
        for table, entries, kind in kinds
        for index, entry in enumerate(entries)
    )
