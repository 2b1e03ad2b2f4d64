"""Schemas of what people and programs write for us, and of what a generating program reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_type_hints

import attrs

from orchestrator.configuration import Configuration
from orchestrator.conform import FORMAT, Lockfile
from orchestrator.evaluators.reports import Report
from orchestrator.generators.protocol import REQUEST_PROTOCOL, Answer
from orchestrator.outcome import DISCLAIMER
from orchestrator.ports import Request
from orchestrator.schemas.shapes import Shapes
from orchestrator.spec.entries import SpecFile

__all__ = [
    "answer_schema",
    "config_schema",
    "lockfile_schema",
    "report_schema",
    "request_schema",
    "spec_schema",
]


def spec_schema() -> dict[str, Any]:
    """A merged spec; parts are lists or tables, eval cases a list or three tables."""
    return written(SpecFile)


def config_schema() -> dict[str, Any]:
    """A configuration file."""
    return written(Configuration)


def report_schema() -> dict[str, Any]:
    """A report of an eval runner in our own form."""
    return written(Report)


def answer_schema() -> dict[str, Any]:
    """An answer of a generating program: a candidate or files, not both."""
    found = written(Answer)
    either = {"required": ["candidate"], "properties": {"candidate": {"type": "string"}, "files": {"type": "null"}}}
    other = {"required": ["files"], "properties": {"files": {"type": "object"}, "candidate": {"type": "null"}}}
    return {**found, "oneOf": [either, other]}


def lockfile_schema() -> dict[str, Any]:
    """A lockfile."""
    shapes = Shapes()
    found = shapes.of_class(Lockfile)
    found["properties"] |= {"kind": {"const": DISCLAIMER}, "format": {"const": FORMAT}}
    outcomes = {"enum": ["passed", "exhausted", "interrupted", "cancelled", "failed"]}
    shapes.definitions["GeneratorOutcome"]["properties"]["outcome"] = outcomes
    return {**found, "$defs": shapes.definitions}


def request_schema() -> dict[str, Any]:
    """A request to a generating program."""
    parameters = get_type_hints(Request)["parameters"]
    shapes = Shapes(known={parameters: {"type": "object", "description": "Generation parameters, by name."}})
    found = shapes.of_class(Request)
    properties = {"protocol": {"const": REQUEST_PROTOCOL}, **found["properties"]}
    return {**found, "properties": properties, "required": list(properties)}


def written(declared: type[attrs.AttrsInstance]) -> dict[str, Any]:
    """The schema of a file that is read into an attrs class."""
    shapes = Shapes(is_file=True)
    found = shapes.of_class(declared)
    definitions: Mapping[str, Any] = dict(sorted(shapes.definitions.items()))
    return {**found, **({"$defs": definitions} if definitions else {})}
