"""Checks JSON values against a small part of JSON Schema: the part that a domain's own fields need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from orchestrator.faults import Fault, closest_name, step
from orchestrator.jsondata import JSON

__all__ = ["Schema", "schema_faults", "value_faults"]

Schema: TypeAlias = Mapping[str, JSON]
"""A JSON Schema of type, enum, properties, required, additionalProperties and items; title, description, default."""

KEYWORDS: Final = (
    "type",
    "enum",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "title",
    "description",
    "default",
)
KINDS: Final[Mapping[str, tuple[type, ...]]] = MappingProxyType(
    {
        "string": (str,),
        "integer": (int,),
        "number": (int, float),
        "boolean": (bool,),
        "object": (dict,),
        "array": (list,),
        "null": (type(None),),
    }
)


def schema_faults(schema: JSON, path: str) -> Iterator[Fault]:
    """Everything that is wrong with a schema; a keyword that is not checked is a fault, not a comment."""
    if not isinstance(schema, dict):
        yield Fault(path, "expected a table: a JSON Schema")
        return
    for keyword in schema:
        if keyword not in KEYWORDS:
            message = f"unknown keyword: {', '.join(KEYWORDS)} are checked"
            yield Fault(step(path, keyword), message, closest_name(keyword, KEYWORDS))
    for kind in kinds_of(schema):
        if kind not in KINDS:
            hint = closest_name(str(kind), KINDS)
            yield Fault(step(path, "type"), f"{kind!r:.40} is no type: use {', '.join(KINDS)}", hint)
    for keyword in ("enum", "required"):
        if keyword in schema and not isinstance(schema[keyword], list):
            yield Fault(step(path, keyword), "expected an array")
    yield from required_faults(schema, path)
    yield from inner_faults(schema, path)


def required_faults(schema: Schema, path: str) -> Iterator[Fault]:
    """Names of required keys that are no names."""
    required = schema.get("required")
    for index, name in enumerate(required if isinstance(required, list) else ()):
        if not isinstance(name, str):
            yield Fault(step(step(path, "required"), index), f"expected a string, found {type(name).__name__}")


def inner_faults(schema: Schema, path: str) -> Iterator[Fault]:
    """What is wrong with the schemas inside a schema."""
    properties = schema.get("properties", {})
    if isinstance(properties, dict):
        for name, each in properties.items():
            yield from schema_faults(each, step(step(path, "properties"), name))
    else:
        yield Fault(step(path, "properties"), "expected a table of schemas")
    if "items" in schema:
        yield from schema_faults(schema["items"], step(path, "items"))
    if not isinstance(schema.get("additionalProperties", True), bool):
        yield from schema_faults(schema["additionalProperties"], step(path, "additionalProperties"))


def value_faults(value: JSON, schema: Schema, path: str = "$") -> Iterator[Fault]:
    """Everything in which a value is not what a schema, itself without faults, asks for."""
    kinds = kinds_of(schema)
    if kinds and not any(is_of(value, kind) for kind in kinds):
        yield Fault(path, f"expected {' or '.join(kinds)}, found {kind_of(value)}")
        return
    if "enum" in schema and not any(is_equal(value, choice) for choice in schema["enum"]):
        yield Fault(path, f"expected one of {', '.join(repr(choice) for choice in schema['enum'])}")
    if isinstance(value, dict):
        yield from object_faults(value, schema, path)
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from value_faults(item, schema["items"], step(path, index))


def object_faults(value: Mapping[str, JSON], schema: Schema, path: str) -> Iterator[Fault]:
    """In which keys an object is not what a schema asks for."""
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Fault(step(path, name), "required key is missing")
    others = schema.get("additionalProperties", True)
    for name, item in value.items():
        if name in properties:
            yield from value_faults(item, properties[name], step(path, name))
        elif others is False:
            yield Fault(step(path, name), "unknown key", closest_name(name, properties))
        elif isinstance(others, dict):
            yield from value_faults(item, others, step(path, name))


def kinds_of(schema: Schema) -> list[str]:
    """The types that a schema names; none: any."""
    kinds = schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else list(kinds) if isinstance(kinds, list) else [str(kinds)]


def is_of(value: JSON, kind: str) -> bool:
    """Whether a value is of a type; a boolean is no number, and 1.0 is an integer, as in JSON Schema."""
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, KINDS[kind])


def is_equal(value: JSON, other: JSON) -> bool:
    """Whether two values are one in JSON Schema: 1 is 1.0, and true is not 1, however deep."""
    if isinstance(value, dict) and isinstance(other, dict):
        return value.keys() == other.keys() and all(is_equal(value[name], other[name]) for name in value)
    if isinstance(value, list) and isinstance(other, list):
        return len(value) == len(other) and all(map(is_equal, value, other))
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def kind_of(value: JSON) -> str:
    """The type of a value."""
    return next(kind for kind in KINDS if is_of(value, kind))
