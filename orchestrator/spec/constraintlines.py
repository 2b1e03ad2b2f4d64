"""Reads the lines `- identifier: text` of a constraints section."""

from __future__ import annotations

import re

import attrs

from orchestrator.faults import Fault
from orchestrator.spec.model import Constraint
from orchestrator.spec.placing import Placed
from orchestrator.spec.taggedtext import TaggedSection

__all__ = ["ConstraintLines", "read_constraint_lines"]

_ITEM = re.compile(r"- +(`?)([a-z0-9]+(?:-+[a-z0-9]+)*)\1:(?:\s|\Z)")
_REMEDY = "write '- identifier: text' with an identifier of lower-case letters, digits and hyphens"


@attrs.frozen
class ConstraintLines:
    """The constraints of one section, each with its line, and the lines that are none."""

    constraints: tuple[Placed[Constraint], ...]
    faults: tuple[Fault, ...]


def read_constraint_lines(section: TaggedSection) -> ConstraintLines:
    """The constraints of `section`; lines that begin no item belong to the item above, as they are."""
    faults: list[Fault] = []
    items: list[tuple[int, str, list[str]]] = []
    for number, line in enumerate(section.text.split("\n"), start=section.first_line):
        item = _ITEM.match(line)
        if item:
            items.append((number, item[2], [line[item.end() :]]))
        elif line.startswith("- "):
            faults.append(Fault(f"line {number}", f"not a constraint: {_REMEDY}"))
        elif items:
            items[-1][2].append(line)
        elif line.strip():
            faults.append(Fault(f"line {number}", f"text before the first constraint: {_REMEDY}"))
    placed = tuple(_placed(number, identifier, lines, faults) for number, identifier, lines in items)
    return ConstraintLines(placed, tuple(faults))


def _placed(number: int, identifier: str, lines: list[str], faults: list[Fault]) -> Placed[Constraint]:
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        faults.append(Fault(f"line {number}", f"constraint {identifier!r} has no text"))
    return Placed(f"line {number}", Constraint(identifier, "\n".join(lines).removesuffix("\r")))
