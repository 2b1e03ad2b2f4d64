"""Types to JSON Schema: what a declared field accepts, in the words of the 2020-12 dialect."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, get_args, get_origin, get_type_hints

import attrs

from orchestrator.valueshapes import is_array, is_enumeration, is_literal, is_table, is_union

__all__ = ["Shapes", "closed"]

Schema = dict[str, Any]

SCALARS: Final[Mapping[Any, str]] = {
    str: "string", Path: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null",
}  # fmt: skip


def closed(properties: Mapping[str, Schema], optional: tuple[str, ...] = ()) -> Schema:
    """An object with these keys and no others; all must be there but the optional ones."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


@attrs.define
class Shapes:
    """Makes schemas of types; the classes they use are gathered in `definitions`, for `$defs`."""

    known: Mapping[Any, Schema] = attrs.field(factory=dict)
    """Schemas of types that are written in a way of their own."""
    is_file: bool = False
    """Whether people write it: keys may have '-' for '_', and fields with a default may be left out."""
    definitions: dict[str, Schema] = attrs.field(factory=dict, init=False)

    def of(self, declared: Any) -> Schema:
        """The schema of a declared type."""
        if get_origin(declared) is Annotated:
            kind, sentence = get_args(declared)[:2]
            return {**self.of(kind), "description": sentence}
        if declared in self.known:
            return self.known[declared]
        if declared in SCALARS:
            return {"type": SCALARS[declared]}
        if is_literal(declared) or is_enumeration(declared):
            return {"enum": list(get_args(declared)) or [member.value for member in declared]}
        return self.of_union(get_args(declared)) if is_union(declared) else self.of_container(declared)

    def of_union(self, members: tuple[Any, ...]) -> Schema:
        """Any of several types; plain ones as a list of type names."""
        schemas = [self.of(member) for member in members]
        if all(set(each) == {"type"} and isinstance(each["type"], str) for each in schemas):
            return {"type": [each["type"] for each in schemas]}
        return {"anyOf": schemas}

    def of_container(self, declared: Any) -> Schema:
        """An array, a table, an attrs class, or anything at all."""
        if is_array(declared):
            return {"type": "array", "items": self.of(get_args(declared)[0])}
        if is_table(declared):
            return {"type": "object", "additionalProperties": self.of(get_args(declared)[1])}
        if isinstance(declared, type) and attrs.has(declared):
            return self.reference(declared)
        if declared is Any:
            return {}
        raise TypeError(f"no schema for {declared!r}: say in `known` how it is written")

    def reference(self, declared: type[attrs.AttrsInstance]) -> Schema:
        """A reference to the definition of an attrs class."""
        name = declared.__name__
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.of_class(declared)
        return {"$ref": f"#/$defs/{name}"}

    def of_class(self, declared: type[attrs.AttrsInstance]) -> Schema:
        """The object that an attrs class is written as."""
        hints = get_type_hints(declared, include_extras=True)
        properties: dict[str, Schema] = {}
        optional: list[str] = []
        twins: list[Schema] = []
        for field in attrs.fields(declared):
            if not field.metadata.get("is_sent", True):
                continue
            schema = {**self.of(hints[field.name]), **default_of(field)} if self.is_file else self.of(hints[field.name])
            spelled = field.name.replace("_", "-")
            names = (spelled, field.name) if self.is_file and spelled != field.name else (field.name,)
            properties |= dict.fromkeys(names, schema)
            is_needed = field.default is attrs.NOTHING
            if len(names) > 1:
                either = {"oneOf": [{"required": [name]} for name in names]}
                twins.append(either if is_needed else {"not": {"required": list(names)}})
            if self.is_file and (len(names) > 1 or not is_needed):
                optional += names
        described = {"description": cleandoc(declared.__doc__ or "").partition("\n\n")[0].replace("\n", " ")}
        return {**described, **closed(properties, tuple(optional)), **({"allOf": twins} if twins else {})}


def default_of(field: attrs.Attribute[Any]) -> Schema:
    """The default of a field, where it is a plain value."""
    if field.default is attrs.NOTHING:
        return {}  # it is itself a member of an enumeration
    value = field.default.value if isinstance(field.default, Enum) else field.default
    if value is None or isinstance(value, bool | int | float | str):
        return {"default": value}
    return {}
