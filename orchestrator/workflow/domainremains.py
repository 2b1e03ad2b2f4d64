"""What of a domain file can still be examined once the keys that fit no domain are left out.

A file answers with every fault at once, but nothing is guessed: what is left out may have meant anything, and so
nothing is said that could be its consequence.
"""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Iterable, Iterator
from copy import deepcopy
from typing import Final

import attrs

from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON

__all__ = ["Remains", "remains_of"]

STEP: Final = re.compile(r"""\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d+|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]""")
"""One step of a fault's path: a plain key, an index, or a key in quotes."""
NEXT: Final = re.compile(r"\$\.phases\[\d+\]\.next\[\d+\]")
NAMELESS: Final = "phase-without-a-name-"
"""What a phase without an id is called while the others are examined."""


@attrs.frozen
class Remains:
    """The data that is left of a domain file, and whether all of its phases have their ids."""

    data: dict[str, JSON]
    has_all_ids: bool = True

    def certain(self, faults: Iterable[Fault]) -> Iterator[Fault]:
        """Those faults that stay whatever the phases without an id are called."""
        stand_ins = {step("$.phases", index) for index, phase in enumerate(self.data["phases"]) if is_stand_in(phase)}
        for fault in faults:
            if self.has_all_ids or not (fault.path in {"$.phases", *stand_ins} or NEXT.fullmatch(fault.path)):
                yield fault


def remains_of(before: Remains, faults: Iterable[Fault]) -> Remains:
    """What is left of the data without the keys that these faults are about; phases keep their places."""
    left = deepcopy(before.data)
    for fault in faults:
        leave_out(left, [literal_eval(index) if index else key for key, index in STEP.findall(fault.path)])
    left.setdefault("domain", "unnamed")
    given = left.setdefault("phases", [None, "done"])
    left["phases"] = [phase if is_named(phase) else stand_in(phase, index) for index, phase in enumerate(given)]
    return Remains(left, before.has_all_ids and all(map(is_named, given)))


def leave_out(data: JSON, steps: list[str | int]) -> None:
    """Remove what these steps lead to: the innermost key, or an entry of `phases`, for which None is put."""
    holder: JSON = None
    place: str | int = ""
    for number, each in enumerate(steps, 1):
        if isinstance(data, dict) and each in data:
            holder, place, data = data, each, data[each]
        elif isinstance(data, list) and isinstance(each, int) and each < len(data):
            if place == "phases":
                holder, place = data, each
            data = data[each]
        elif isinstance(data, dict) and number == len(steps):
            return  # the key is missing
        else:
            break
    if isinstance(holder, list) and isinstance(place, int):
        holder[place] = None
    elif holder is not None:
        del holder[place]


def is_named(phase: JSON) -> bool:
    """Whether an entry of `phases` says which phase it is."""
    return isinstance(phase, str) or (isinstance(phase, dict) and "id" in phase)


def stand_in(phase: JSON, index: int) -> dict[str, JSON]:
    """The phase with an id in place of the one that it lacks."""
    return {**(phase if isinstance(phase, dict) else {}), "id": f"{NAMELESS}{index}"}


def is_stand_in(phase: JSON) -> bool:
    """Whether an entry of `phases` has such an id."""
    return isinstance(phase, dict) and str(phase.get("id")).startswith(NAMELESS)
