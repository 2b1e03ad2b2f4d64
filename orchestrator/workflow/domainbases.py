"""What a domain file extends: the built-in base or further files, and all that is wrong on the way to them."""

from __future__ import annotations

import os
from pathlib import Path
from types import MappingProxyType
from typing import Final

import attrs

from orchestrator.documents import read_document, read_text
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.jsondata import JSON

__all__ = ["BASE", "BASE_NAMES", "Extended", "extended"]

BASE_NAMES: Final = ("sage/core/components/orchestrator-base.md", "orchestrator-base.md", "orchestrator-base")
"""What a domain may call the built-in base; the first is the name that contract 4 uses."""
BASE: Final = MappingProxyType(
    {
        "phase_directory": "./phases/",
        "state_directory": "./state/",
        "components": [
            "state-manager",
            "retry-handler",
            "metrics-collector",
            "learning-recorder",
            "subagent-spawner",
        ],
    }
)
"""The built-in base: where phases and states lie, and every component at its defaults (contract 4)."""
DIRECTORIES: Final = ("phase_directory", "state_directory")


@attrs.frozen
class Extended:
    """A domain file's data over that of what it extends; `faults` say what could not be extended."""

    data: dict[str, JSON]
    faults: tuple[Fault, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether everything that the file extends is in it."""
        return not self.faults


def extended(path: Path, extending: tuple[Path, ...] = ()) -> Extended:
    """The data of a domain file, over that of the file it extends; directories as seen from the file that names them.

    Raises DocumentError where the file itself cannot be read.
    """
    data = data_of(path)
    if not isinstance(data, dict):
        raise DocumentError(str(path), (Fault("$", "expected a table: a domain definition"),))
    data = {key.replace("-", "_"): value for key, value in data.items()}
    named = data.pop("extends", None)
    located(data, path.parent)
    base = base_of(named, path, (*extending, path.resolve()))
    return Extended(merged(base.data, data), base.faults)


def data_of(path: Path) -> JSON:
    """What a file holds, as plain data."""
    if path.suffix.lower() in (".md", ".markdown"):
        from orchestrator.workflow.domainmarkdown import read_markdown_domain

        return read_markdown_domain(read_text(path), str(path))
    return read_document(path)


def base_of(named: JSON, path: Path, extending: tuple[Path, ...]) -> Extended:
    """The data of what a file extends: the built-in base, or another file."""
    base = dict(BASE)
    located(base, path.parent)
    if named is None:
        return Extended(base)
    if not isinstance(named, str):
        return unextended("expected a string: the file that is extended")
    target = path.parent / named
    if not target.is_file():
        unknown = f"{named!r} is no file; the built-in base is {BASE_NAMES[0]!r}"
        return Extended(base) if named in BASE_NAMES else unextended(unknown)
    if target.resolve() in extending:
        return unextended(f"files extend each other in a circle: {circle(target.resolve(), extending)}")
    try:
        found = extended(target, extending)
    except DocumentError as error:
        return unextended(*(f"{named}: {fault}" for fault in error.faults))
    return Extended(found.data, tuple(Fault("$.extends", f"{named}: {fault}") for fault in found.faults))


def unextended(*messages: str) -> Extended:
    """Nothing, in place of what cannot be extended."""
    return Extended({}, tuple(Fault("$.extends", message) for message in messages))


def circle(target: Path, extending: tuple[Path, ...]) -> str:
    """The files of a circle, as seen from the directory of the first file that was read."""
    files = (*extending[extending.index(target) :], target)
    return " -> ".join(os.path.relpath(each, extending[0].parent) for each in files)


def located(data: dict[str, JSON], folder: Path) -> None:
    """Have the directories that a file names begin at the file's own."""
    for name in DIRECTORIES:
        if isinstance(data.get(name), str):
            data[name] = str(folder / data[name])


def merged(base: dict[str, JSON], own: dict[str, JSON]) -> dict[str, JSON]:
    """A table over another: tables key by key, everything else replaced."""
    result = dict(base)
    for key, value in own.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result
