"""Roles of subagents: what each is told to do, and what its output must look like."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, step
from orchestrator.jsondata import JSON
from orchestrator.workflow.components.checking import a_count, a_duration, a_size, is_name
from orchestrator.workflow.jsonshape import schema_faults

__all__ = ["BUILT_IN", "STATUSES", "Role", "RoleSettings", "a_role_table", "roles_with"]

STATUSES: Final = ("success", "failure", "blocked")
"""What a subagent may say of its own work; `timeout` and `error` are said of it."""

TEXT: Final = {"type": "string"}
TEXTS: Final = {"type": "array", "items": TEXT}
WHOLE: Final = {"type": "integer"}


def _schema_is_plain(_: object, attribute: attrs.Attribute[Any], value: object) -> None:
    faults = () if value is None else tuple(schema_faults(value, "$")) or _status_faults(value)
    if faults:
        raise DocumentError(attribute.name, faults)


@attrs.frozen(kw_only=True)
class RoleSettings:
    """A role of a domain's own, or what it changes in a built-in one; what is left out stays as it is."""

    instructions: str | None = None
    requires: tuple[str, ...] | None = None
    """Keys that the context must have."""
    output_schema: Any = attrs.field(default=None, validator=_schema_is_plain)
    """JSON Schema of the output, beside the `status` that every output has; no keyword but those checked."""
    generator: str | None = None
    seconds: float | None = attrs.field(default=None, validator=attrs.validators.optional(a_duration))
    max_tokens: int | None = attrs.field(default=None, validator=attrs.validators.optional(a_count))
    context_characters: int | None = attrs.field(default=None, validator=attrs.validators.optional(a_size))


@attrs.frozen(kw_only=True)
class Role:
    """What a subagent of this role is told, and what it must answer."""

    name: str
    instructions: str
    output_schema: Mapping[str, JSON]
    """JSON Schema of the output, `status` included."""
    requires: tuple[str, ...] = ()
    generator: str = ""
    """Empty: the one of all subagents."""
    seconds: float | None = None
    max_tokens: int | None = None
    context_characters: int | None = None


def roles_with(settings: Mapping[str, RoleSettings]) -> dict[str, Role]:
    """The built-in roles as a domain changes them, and its own."""
    roles = dict(BUILT_IN)
    for name, change in settings.items():
        known = roles.get(name) or Role(name=name, instructions="", output_schema=with_status({}))
        given = {field.name: getattr(change, field.name) for field in attrs.fields(RoleSettings)}
        if change.output_schema is not None:
            given["output_schema"] = with_status(change.output_schema)
        roles[name] = attrs.evolve(known, **{key: value for key, value in given.items() if value is not None})
    return roles


def with_status(schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The schema of an object that also says how its work ended."""
    properties = {"status": {"enum": list(STATUSES)}, **schema.get("properties", {})}
    required = ["status", *(name for name in schema.get("required", ()) if name != "status")]
    return {**schema, "type": "object", "required": required, "properties": properties}


def a_role_table(_: object, attribute: attrs.Attribute[Any], value: Mapping[str, RoleSettings]) -> None:
    """Roles with plain names; one of the domain's own says what it is told to do."""
    faults = []
    for name, settings in value.items():
        place = step("$", name)
        if not is_name(name):
            faults.append(Fault(place, "no name of a role: use letters, digits, '.', '_', ':' and '-'"))
        if name not in BUILT_IN and not settings.instructions:
            faults.append(Fault(place, "a role of your own needs instructions: say what it is to do"))
    if faults:
        raise DocumentError(attribute.name, tuple(faults))


def _status_faults(schema: JSON) -> tuple[Fault, ...]:
    """A schema is one of objects, and its `status`, where it declares one, narrows ours."""
    if not isinstance(schema, Mapping):
        return (Fault("$", "the output of a subagent is an object: write a table"),)
    if schema.get("type", "object") != "object":
        return (Fault("$.type", "the output of a subagent is an object"),)
    properties = schema.get("properties", {})
    status = properties.get("status") if isinstance(properties, Mapping) else None
    if status is None:
        return ()
    allowed = status.get("enum") if isinstance(status, Mapping) else None
    if not isinstance(allowed, list) or not set(map(str, allowed)) <= set(STATUSES):
        return (Fault("$.properties.status", f"status is an enum of {', '.join(STATUSES)}: narrow it or leave it out"),)
    return ()


def _built_in(name: str, instructions: str, required: tuple[str, ...], properties: Mapping[str, JSON]) -> Role:
    schema = {"required": list(required), "properties": {"summary": TEXT, "reason": TEXT, **properties}}
    return Role(name=name, instructions=instructions, output_schema=with_status(schema))


def _items(required: tuple[str, ...], properties: Mapping[str, JSON]) -> dict[str, JSON]:
    return {"type": "array", "items": {"type": "object", "required": list(required), "properties": dict(properties)}}


CHUNK: Final = {"id": TEXT, "description": TEXT, "files": TEXTS, "depends_on": TEXTS}
ISSUE: Final = {"severity": {"enum": ["must_fix", "should_fix", "note"]}, "description": TEXT, "file": TEXT}
FAILURE: Final = {"test": TEXT, "error": TEXT, "file": TEXT}

BUILT_IN: Final[Mapping[str, Role]] = {
    role.name: role
    for role in (
        _built_in(
            "PLANNER",
            "Plan the work in the context as chunks that can be done one after the other. Change nothing yourself.",
            ("chunks",),
            {"chunks": _items(("id", "description"), CHUNK)},
        ),
        _built_in(
            "IMPLEMENTER",
            "Do the work that the context describes, and only that. Name every file that you changed.",
            ("files_changed",),
            {"files_changed": TEXTS},
        ),
        _built_in(
            "TESTER",
            "Test the work that the context describes. Count what passed and what failed; repair nothing.",
            ("passed", "failed"),
            {"passed": WHOLE, "failed": WHOLE, "failures": _items(("test", "error"), FAILURE)},
        ),
        _built_in(
            "REVIEWER",
            "Review the work that the context describes. Approve it only when no issue must be fixed; change nothing.",
            ("approved", "issues"),
            {"approved": {"type": "boolean"}, "issues": _items(("severity", "description"), ISSUE)},
        ),
        _built_in(
            "FIXER",
            "Repair the failure that the context describes, and only that. Name every file that you changed.",
            ("files_changed",),
            {"files_changed": TEXTS, "root_cause": TEXT},
        ),
    )
}
"""The roles of contract 4's method."""
