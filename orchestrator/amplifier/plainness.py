"""Whatever a kernel, a hook, a tool or a provider hands over, as plain JSON data; models are dumped."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from orchestrator.agent import plainjson
from orchestrator.jsondata import JSON, MAXIMUM_DEPTH

__all__ = ["field_of", "plain", "plain_object", "plain_text"]

plain_text = plainjson.clean


def plain(value: object) -> JSON:
    """The value as JSON data; never raises.

    Models and records become objects of their fields; everything else is as the agent takes it: NaN, sets, bytes
    and strange objects become texts or lists, lone surrogates and cycles are cut out.
    """
    return plainjson.plain(opened(value, 0))


def plain_object(value: object) -> dict[str, JSON]:
    """The value as a JSON object; an empty one where it is none."""
    made = plain(value)
    return made if isinstance(made, dict) else {}


def field_of(value: object, name: str) -> Any:
    """A field of what may be an object or a mapping; None without one, or where reading it fails."""
    try:
        return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    except Exception:  # noqa: BLE001 -- an object that is not ours may raise anything
        return None


def opened(value: object, depth: int) -> object:
    """The value with every model and record in it as a mapping of its fields."""
    if depth > MAXIMUM_DEPTH:
        return value
    try:
        fields = fields_of(value)
        if fields is not None:
            return {key: opened(item, depth + 1) for key, item in fields.items()}
        return [opened(item, depth + 1) for item in value] if isinstance(value, list | tuple) else value
    except Exception:  # noqa: BLE001 -- as above; what cannot be opened is shown as it is
        return value


def fields_of(value: object) -> Mapping[object, object] | None:
    """The fields of a mapping, a model or a record; None for anything else."""
    if isinstance(value, Mapping):
        return value
    if is_model(value):
        dumped: object = value.model_dump()  # type: ignore[attr-defined]  # a pydantic model
        return dumped if isinstance(dumped, Mapping) else None
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def is_model(value: object) -> bool:
    """Whether it is a pydantic model; a mock, which seems to have every method, is none."""
    return callable(getattr(type(value), "model_dump", None))
