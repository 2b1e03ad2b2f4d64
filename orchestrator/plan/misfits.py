"""Values of a plan that are not of the type that their field declares: Python takes any, a file's reader does not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, get_args, get_type_hints

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.structuring import structure
from orchestrator.valueshapes import is_array, is_literal, is_union, mismatch

__all__ = ["misfits"]


def misfits(value: attrs.AttrsInstance, path: str = "$") -> Iterator[Fault]:
    """Each such value with its path, in the words of a file's reader."""
    for name, kind in types_of(type(value)).items():
        found = getattr(value, name)
        if type(found) is not kind:
            yield from misfits_of(kind, found, step(path, name))


@cache
def types_of(kind: type[attrs.AttrsInstance]) -> dict[str, Any]:
    """The declared types of a class's fields."""
    hints = get_type_hints(kind)
    return {field.name: hints[field.name] for field in attrs.fields(kind)}


def misfits_of(kind: Any, value: object, path: str) -> Iterator[Fault]:
    """What is wrong with one value."""
    if is_array(kind) and isinstance(value, tuple):
        (item,) = get_args(kind)[:1]
        for index, each in enumerate(value):
            yield from misfits_of(item, each, step(path, index))
    elif attrs.has(kind) and isinstance(value, kind):
        yield from misfits(value, path)
    elif not is_of(kind, value):
        yield from told(kind, value, path)


def is_of(kind: Any, value: object) -> bool:
    """Whether a value without parts is of a declared type."""
    if is_literal(kind):
        return value in get_args(kind)
    return isinstance(value, get_args(kind) if is_union(kind) else kind) if not is_array(kind) else False


def told(kind: Any, value: object, path: str) -> Iterator[Fault]:
    """What the reader of files says of a value; a class of ours can be told from a table only here."""
    try:
        structure(value, kind, path)
    except DocumentError as error:
        yield from (attrs.evolve(fault, path=path + fault.path.removeprefix("$")) for fault in error.faults)
    else:
        yield Fault(path, str(mismatch(f"a {kind.__name__}", value)))
