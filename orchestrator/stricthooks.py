"""The strict structure hooks of the file converter: one per kind of type, none of which coerces.

A hook raises ValueShapeError with a sentence for the author of the file. The hooks of classes, arrays
and tables gather what their parts raise into cattrs' validation errors, whose notes give the path.

cattrs is imported by this module, so import this module only where a file is being structured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args, get_origin

import attrs
from cattrs import Converter
from cattrs.cols import list_structure_factory
from cattrs.errors import AttributeValidationNote, ClassValidationError
from cattrs.gen import mapping_structure_factory

from orchestrator.faults import closest_name
from orchestrator.valueshapes import (
    ValueShapeError,
    accepts,
    container_of,
    is_array,
    is_enumeration,
    is_literal,
    is_table,
    is_union,
    mismatch,
    name_of,
    shown,
)
from orchestrator_events.errors import OrchestratorError

__all__ = ["register_strict_hooks"]

_Hook = Callable[[Any, Any], Any]


def register_strict_hooks(converter: Converter) -> None:
    """Make `converter` refuse whatever it would otherwise coerce."""
    for scalar in (bool, int, float, str, Path):
        converter.register_structure_hook(scalar, _structure_scalar)
    converter.register_structure_hook_func(is_literal, _structure_literal)
    converter.register_structure_hook_func(is_enumeration, _structure_enumeration)
    converter.register_structure_hook_factory(is_array, _array_hook)
    converter.register_structure_hook_factory(is_table, _table_hook)
    converter.register_structure_hook_factory(is_union, _union_hook)
    converter.register_structure_hook_factory(attrs.has, _class_hook)


def _structure_scalar(value: Any, kind: Any) -> Any:
    # cattrs finds this hook for subclasses too, so a StrEnum or IntEnum arrives here.
    if is_enumeration(kind):
        return _structure_enumeration(value, kind)
    if not accepts(kind, value):
        raise mismatch(name_of(kind), value)
    try:
        return kind(value)
    except OverflowError:
        raise ValueShapeError("integer is too large for a number") from None


def _structure_literal(value: Any, kind: Any) -> Any:
    return _chosen(value, {choice: choice for choice in get_args(kind)})


def _structure_enumeration(value: Any, kind: Any) -> Any:
    return _chosen(value, {member.value: member for member in kind})


def _chosen(value: Any, choices: Mapping[Any, Any]) -> Any:
    for choice, result in choices.items():
        if type(value) is type(choice) and value == choice:
            return result
    listed = ", ".join(repr(choice) for choice in choices)
    hint = closest_name(value, [str(choice) for choice in choices]) if isinstance(value, str) else ""
    raise ValueShapeError(f"expected one of {listed}, found {shown(value)}", hint)


def _array_hook(kind: Any, converter: Converter) -> _Hook:
    arguments = get_args(kind)
    if get_origin(kind) is tuple and arguments[1:] != (Ellipsis,):
        raise TypeError(f"{kind} has a fixed length: use tuple[X, ...] or a class for what files hold")
    structure_items: _Hook = list_structure_factory(kind, converter)
    container = container_of(kind)

    def structure_array(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple):
            raise mismatch("an array", value)
        return container(structure_items(value, kind))

    return structure_array


def _table_hook(kind: Any, converter: Converter) -> _Hook:
    structure_items: _Hook = mapping_structure_factory(kind, converter)

    def structure_table(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise mismatch("a table", value)
        return structure_items(value, kind)

    return structure_table


def _union_hook(kind: Any, converter: Converter) -> _Hook:
    members = [member for member in get_args(kind) if member is not type(None)]
    allows_null = len(members) < len(get_args(kind))

    def structure_union(value: Any, _: Any) -> Any:
        if value is None and allows_null:
            return None
        fitting = members if len(members) == 1 else [member for member in members if accepts(member, value)]
        if not fitting:
            raise mismatch(" or ".join(name_of(member) for member in members), value)
        return converter.structure(value, fitting[0])

    return structure_union


def _class_hook(kind: type[attrs.AttrsInstance], converter: Converter) -> _Hook:
    attributes = attrs.fields(attrs.resolve_types(kind))
    fields = {field.alias or field.name: field for field in attributes if field.init}

    def structure_class(value: Any, _: Any) -> Any:
        if not isinstance(value, Mapping):
            raise mismatch("a table", value)
        values, problems = _structure_fields(value, fields, converter)
        if problems:
            problems.extend(_objections(kind, fields, values))
            raise ClassValidationError(f"While structuring {kind.__name__}", problems, kind)
        return _constructed(kind, fields, values)

    return structure_class


def _structure_fields(
    table: Mapping[str, Any], fields: Mapping[str, attrs.Attribute[Any]], converter: Converter
) -> tuple[dict[str, Any], list[Exception]]:
    values: dict[str, Any] = {}
    problems: list[Exception] = []
    spellings: dict[str, str] = {}
    for key, item in table.items():
        name = key.replace("-", "_")
        field = fields.get(name)
        try:
            if field is None:
                raise _unknown(name, fields)
            if name in spellings:
                raise ValueShapeError(f"means the same key as {spellings[name]!r}: keep one")
            spellings[name] = key
            values[name] = converter.structure(item, Any if field.type is None else field.type)
        except (ExceptionGroup, ValueError, OrchestratorError) as error:
            problems.append(_noted(error, key))
    for name, field in fields.items():
        if name not in spellings and field.default is attrs.NOTHING:
            problems.append(_noted(ValueShapeError("required key is missing"), name))
    return values, problems


def _unknown(name: str, fields: Iterable[str]) -> ValueShapeError:
    hint = closest_name(name, fields)
    listed = "" if hint else f": there are {', '.join(fields) or 'none here'}"
    return ValueShapeError(f"unknown key{listed}", hint)


def _constructed(kind: Any, fields: Mapping[str, attrs.Attribute[Any]], values: Mapping[str, Any]) -> Any:
    try:
        return kind(**values)
    except (ValueError, TypeError, OrchestratorError) as error:
        # attrs stops at the first validator that objects; the author wants to hear all of them.
        problems = list(_objections(kind, fields, values)) or [error]
        raise ClassValidationError(f"While structuring {kind.__name__}", problems, kind) from None


def _objections(
    kind: Any, fields: Mapping[str, attrs.Attribute[Any]], values: Mapping[str, Any]
) -> Iterator[Exception]:
    for name, value in values.items():
        validator = fields[name].validator
        if validator is None:
            continue
        try:
            validator(object.__new__(kind), fields[name], value)
        except (ValueError, TypeError, OrchestratorError) as error:
            yield _noted(error, name)
        except AttributeError:
            continue  # A validator that looks at other fields: it needs a whole instance.


def _noted(error: Exception, key: str) -> Exception:
    error.add_note(AttributeValidationNote(f"Structuring key {key!r}", key, Any))
    return error
