"""What can be read of data whose types are wrong, so that the rules of a file are looked at all the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar, get_args, get_type_hints

import attrs

from orchestrator.errors import DocumentError
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure
from orchestrator.valueshapes import is_array, is_union

__all__ = ["salvaged"]

STAND_IN: Final = "?"
"""Stands for a text that is missing or of another type."""

_Target = TypeVar("_Target", bound=attrs.AttrsInstance)


def salvaged(data: JSON, target: type[_Target]) -> _Target:
    """An instance of what is right in `data`; what is not has a stand-in, or else its default."""
    table = {key.replace("-", "_"): value for key, value in data.items()} if isinstance(data, Mapping) else {}
    hints = get_type_hints(target)
    made: dict[str, Any] = {}
    for field in attrs.fields(target):
        name = field.alias or field.name
        if name in table or field.default is attrs.NOTHING:
            found = part(table.get(name, STAND_IN), hints[field.name])
            if found is not attrs.NOTHING:
                made[name] = found
    return target(**made)


def part(value: JSON, kind: Any) -> Any:
    """One value, as far as it is right; NOTHING where nothing can stand for it."""
    if is_union(kind) and value is not None:
        inner = [each for each in get_args(kind) if attrs.has(each) or is_rows(each)]
        kind = inner[0] if inner else kind
    if is_rows(kind):
        return tuple(salvaged(each, get_args(kind)[0]) for each in value) if isinstance(value, list) else ()
    if attrs.has(kind):
        return salvaged(value, kind)
    for candidate in (value, STAND_IN):
        try:
            return structure(candidate, kind, "")
        except DocumentError:
            continue
    return attrs.NOTHING


def is_rows(kind: Any) -> bool:
    """Whether a type is an array of tables of ours."""
    return is_array(kind) and attrs.has(get_args(kind)[0])
