"""Schemas of records and exports: every event by its name, as the journal stores it."""

from __future__ import annotations

from typing import Any, Final

import attrs

from orchestrator.exports.links import EXPORT_FORMAT
from orchestrator.schemas.shapes import Shapes, closed
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Budget
from orchestrator_events.event import Fact
from orchestrator_events.registry import event_class, event_names

__all__ = ["SHA256", "export_schema", "line_schema", "record_schema", "stored"]

SHA256: Final = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
COUNT: Final = {"type": "integer", "minimum": 1}
TEXT: Final = {"type": "string"}
TEXTS: Final = {
    "description": "Texts that records name, by the SHA-256 of their UTF-8 bytes.",
    "type": "object",
    "propertyNames": {"pattern": "^[0-9a-f]{64}$"},
    "additionalProperties": TEXT,
}

TABLES: Final[dict[str, Any]] = {
    "description": "Tables of generated lifecycles that share the run's stream, by name.",
    "type": "object",
    "minProperties": 1,
    "additionalProperties": {"$ref": "#/$defs/Table"},
}


def record_schema() -> dict[str, Any]:
    """One record; `event` has the fields of the event that `name` names."""
    shapes = stored()
    return {**record_of(shapes), "$defs": dict(sorted(shapes.definitions.items()))}


def export_schema() -> dict[str, Any]:
    """An export as one document."""
    link, definitions = link_of()
    document = closed(
        {
            "format": {"const": EXPORT_FORMAT},
            "run": TEXT,
            "head": closed({"digest": SHA256, "count": COUNT}),
            "table": {"$ref": "#/$defs/Table"},
            "records": {"type": "array", "minItems": 1, "items": closed(link)},
            "blobs": TEXTS,
            "tables": TABLES,
            "children": {
                "description": "Exports of the runs that this one started, in order.",
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/$defs/Export"},
            },
        },
        optional=("tables", "children"),
    )
    return {**document, "$defs": dict(sorted({**definitions, "Export": document}.items()))}


def line_schema() -> dict[str, Any]:
    """An export's line; the first one of each run also says what it is the export of."""
    link, definitions = link_of()
    opening = {"format": {"const": EXPORT_FORMAT}, "run": TEXT, "table": {"$ref": "#/$defs/Table"}}
    further = {**opening, "tables": TABLES}
    line = closed({**further, **link, "blobs": TEXTS}, optional=tuple(further))
    is_first = {"properties": {"sequence": {"const": 1}}}
    return {
        **line,
        "if": is_first,
        "then": {"required": list(opening)},
        "else": {"properties": dict.fromkeys(further, False)},
        "$defs": definitions,
    }


def stored() -> Shapes:
    """Shapes as the record codec writes them: whole numbers, texts by digest, every field there."""
    limits = {name: {"type": ["integer", "null"], "minimum": 1} for name in ("time_us", *limit_names())}
    blob = closed({"bytes": {"type": "integer", "minimum": 0}, "sha256": SHA256})
    return Shapes(known={Blob: blob, Budget: closed(dict(sorted(limits.items())))})


def limit_names() -> list[str]:
    """The limits of a budget that are stored under their own name."""
    return [field.name for field in attrs.fields(Budget) if field.name != "seconds"]


def record_of(shapes: Shapes) -> dict[str, Any]:
    """The record, with a condition for each event."""
    facts = [event for event in map(event_class, event_names()) if issubclass(event, Fact)]
    outer = closed(
        {
            "at": {"type": "integer", "description": "Microseconds since the Unix epoch, UTC."},
            "event": {"type": "object"},
            "lifecycle": TEXT,
            "name": {"enum": [event.name for event in facts]},
            "run": TEXT,
            "sequence": COUNT,
            "source": {**TEXT, "description": "State before the event."},
            "target": {**TEXT, "description": "State after it; equal to `source` for a note."},
            "version": COUNT,
        }
    )
    conditions = [
        {
            "if": {"properties": {"name": {"const": event.name}}},
            "then": {"properties": {"version": {"const": event.version}, "event": shapes.reference(event)}},
        }
        for event in facts
    ]
    return {**outer, "allOf": conditions}


def link_of() -> tuple[dict[str, Any], dict[str, Any]]:
    """The keys of a record with its place in the chain, and what they refer to."""
    shapes = stored()
    record = record_of(shapes)
    definitions = {**shapes.definitions, "Record": record, "Table": table()}
    link = {"sequence": COUNT, "previous": SHA256, "digest": SHA256, "body": {"$ref": "#/$defs/Record"}}
    return link, dict(sorted(definitions.items()))


def table() -> dict[str, Any]:
    """A lifecycle as data."""
    names = {"type": "array", "minItems": 1, "items": TEXT, "uniqueItems": True}
    condition = {"type": "object", "additionalProperties": {"type": ["string", "integer", "boolean"]}}
    row = closed({"event": TEXT, "sources": names, "target": TEXT, "where": condition})
    return closed(
        {
            "name": TEXT,
            "initial": TEXT,
            "states": names,
            "resting": {**names, "minItems": 0},
            "rows": {"type": "array", "items": row},
            "notes": {"type": "array", "items": closed({"event": TEXT, "states": names})},
        }
    )
