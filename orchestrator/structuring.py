"""Turns the plain data of a file into typed values, or says everything that is wrong with it at once.

This is the one converter for files that people write. It never guesses: `"7"` is not 7, `true` is not 1
and `"abc"` is not a list of letters. Records of a journal have a converter of their own.

cattrs is imported by the first call, so that importing the package stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ["structure"]

_Target = TypeVar("_Target")


def structure(data: JSON, target: type[_Target], source: str) -> _Target:
    """`data` as a `target`: an attrs class, possibly nested, or any type its fields may have.

    Fields may be bool, int, float, str, Path, enums, Literal, Optional, unions told apart by kind,
    `tuple[X, ...]`, `list[X]`, `frozenset[X]`, `dict[str, X]`, attrs classes and Any. A key may be
    written with '-' for '_'. Raises DocumentError with every fault, each with its `$.a.b[2]` path;
    the messages of attrs validators are kept.
    """
    converter = _converter()
    try:
        return converter.structure(data, target)
    except (ExceptionGroup, ValueError, DocumentError) as error:
        raise DocumentError(source, tuple(_faults(error, "$"))) from None


@cache
def _converter() -> Converter:
    from cattrs import Converter

    from orchestrator.stricthooks import register_strict_hooks

    converter = Converter(forbid_extra_keys=True, detailed_validation=True)
    register_strict_hooks(converter)
    return converter


def _faults(error: Exception, path: str) -> Iterator[Fault]:
    if isinstance(error, ExceptionGroup):
        for child in error.exceptions:
            yield from _faults(child, _path_of(child, path))
    elif isinstance(error, DocumentError):
        for fault in error.faults:
            yield attrs.evolve(fault, path=path + fault.path.removeprefix("$"))
    else:
        yield Fault(path, _message_of(error), getattr(error, "hint", ""))


def _path_of(error: Exception, path: str) -> str:
    from cattrs.errors import AttributeValidationNote, IterableValidationNote

    for note in reversed(getattr(error, "__notes__", ())):
        if isinstance(note, AttributeValidationNote):
            return step(path, note.name)
        if isinstance(note, IterableValidationNote):
            return step(path, note.index)
    return path


def _message_of(error: Exception) -> str:
    # attrs' own validators put the attribute and the value behind the message.
    first = error.args[0] if error.args else ""
    return first if isinstance(first, str) and first else repr(error)
