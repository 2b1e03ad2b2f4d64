"""JSON Schemas (2020-12) of the forms that are read and written here, made from the classes that do it."""

from __future__ import annotations

from orchestrator.schemas.kinds import KINDS, UnknownKindError, schema, schema_text

__all__ = ["KINDS", "UnknownKindError", "schema", "schema_text"]
