"""Plans as plain data: what is left empty is left out, so that a key added later changes no digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from orchestrator.jsondata import JSON

if TYPE_CHECKING:
    from orchestrator.plan.plan import Plan, Step

__all__ = ["as_json", "dumped"]


def dumped(value: Plan | Step) -> dict[str, JSON]:
    """A plan or a step as JSON data; reading it gives an equal one."""
    return shown(value)


def as_json(value: attrs.AttrsInstance) -> dict[str, JSON]:
    """An instance as JSON data with all its fields."""
    return attrs.asdict(value, value_serializer=lambda _instance, _field, item: jsonlike(item))


def jsonlike(item: JSON) -> JSON:
    """A value without what only Python has: enums and tuples."""
    if isinstance(item, tuple):
        return list(item)
    return str(item) if isinstance(item, str) else item


def shown(value: attrs.AttrsInstance) -> dict[str, JSON]:
    """An instance as a table of what differs from the defaults."""
    table: dict[str, JSON] = {}
    for field in attrs.fields(type(value)):
        item = getattr(value, field.name)
        if field.default is attrs.NOTHING or field.name == "lifecycle" or not is_default(field, item):
            table[field.name] = plain(item)
    return table


def is_default(field: attrs.Attribute[JSON], item: object) -> bool:
    """Whether a field has the value it has when it is left out."""
    made: object = getattr(field.default, "factory", None)
    return bool(item == (made() if callable(made) else field.default))


def plain(item: JSON) -> JSON:
    """A value of a plan as JSON data."""
    if isinstance(item, tuple):
        return [plain(each) for each in item]
    if attrs.has(type(item)):
        return shown(item)
    return str(item) if isinstance(item, str) else item
