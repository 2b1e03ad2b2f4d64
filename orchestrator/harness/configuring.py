"""The harness as a mount plan configures it.

    harness:
      workspace: work                       # by default the directory the session works in
      rules:                                # by default all, in their default order
        - sequence
        - read-limit: {limit: 3}
        - dangerous-commands: {also-writable: [/tmp]}
      roles: {save: write, run_tests: verify}
      auto-verify: true
      hints: [Keep functions short.]

The first rule that denies wins, so their order counts. `harness: none` (or false) switches all of it off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import attrs

from orchestrator.errors import DocumentError
from orchestrator.faults import Fault, closest_name, relocated, step
from orchestrator.harness.actions import DEFAULT_ROLES, ToolRole, ToolRoles
from orchestrator.harness.bounds import DangerousCommands, WorkspaceBounds
from orchestrator.harness.harness import WORKFLOW_HINTS, Harness
from orchestrator.harness.locations import normal
from orchestrator.harness.rules import RULES, Rule, default_rules
from orchestrator.jsondata import JSON
from orchestrator.structuring import structure

__all__ = ["HarnessSection", "harness_from"]

_SOURCE: Final = "mount plan"
_PLACE: Final = "$.harness"


def _is_directory(_instance: object, _attribute: object, path: str) -> None:
    if not path.strip() or "\0" in path:
        raise ValueError(f"{path!r} names no directory: give its path, or leave workspace out")
    if path.startswith("~"):
        raise ValueError(f"{path!r} is not expanded: write the path of the home directory out")


@attrs.frozen(kw_only=True)
class HarnessSection:
    """`harness` of a mount plan."""

    workspace: str | None = attrs.field(default=None, validator=attrs.validators.optional(_is_directory))
    """Directory that writes stay in and commands start in; a relative one starts from the usual one."""
    rules: tuple[Any, ...] | None = None
    """Names, or tables of one name with its options; None for all rules."""
    roles: dict[str, ToolRole] = attrs.field(factory=dict[str, ToolRole])
    """Roles of further tools; `other` takes a tool its role."""
    path_arguments: tuple[str, ...] = ("path", "file_path", "file")
    command_arguments: tuple[str, ...] = ("command", "cmd")
    auto_verify: bool = True
    finish_when_green: bool = True
    hints: tuple[str, ...] = ()
    """Sentences that every prompt ends with."""
    workflow_hints: bool = False
    """Whether general hints about the workflow stand before them."""


def harness_from(
    config: Mapping[str, JSON], *, workspace: str | None, resolve: Callable[[str], str] | None = None
) -> Harness:
    """The harness that a mount plan asks for under `harness`; without that key, the default one.

    `workspace` is the absolute directory the agent works in, unless the plan names another. `resolve` follows
    links, as os.path.realpath does, and is asked about the workspace and the paths of actions. Raises DocumentError
    with every fault at once, each with its `$.harness…` path, and ValueError for a relative workspace.
    """
    asked = config.get("harness", True)
    if asked is False or asked == "none":
        return Harness((), auto_verify=False, finish_when_green=False)
    data: JSON = {} if asked is True or asked is None else asked
    section, faults = _section(data)
    root = _root(section, workspace, faults)
    root = resolve(root) if resolve is not None and root is not None else root
    rules = tuple(_rules(data, root, faults))
    if section is None or faults:
        raise DocumentError(_SOURCE, tuple(faults))
    return Harness(
        rules,
        ToolRoles({**DEFAULT_ROLES, **section.roles}, section.path_arguments, section.command_arguments, root, resolve),
        auto_verify=section.auto_verify,
        finish_when_green=section.finish_when_green,
        hints=(*(WORKFLOW_HINTS if section.workflow_hints else ()), *section.hints),
    )


def _section(data: JSON) -> tuple[HarnessSection | None, list[Fault]]:
    if isinstance(data, str):
        return None, [
            Fault(_PLACE, f"{data[:100]!r} is no harness: give a table, or none", closest_name(data, ["none"]))
        ]
    try:
        return structure(data, HarnessSection, _SOURCE), []
    except DocumentError as error:
        return None, list(relocated(error.faults, {"$": _PLACE}))


def _root(section: HarnessSection | None, workspace: str | None, faults: list[Fault]) -> str | None:
    """Where the agent works, as the plan says, or else the host."""
    if section is None or section.workspace is None:
        return workspace
    if not section.workspace.startswith("/") and workspace is None:
        message = f"{section.workspace!r} is relative to a directory that nobody named: give an absolute one"
        faults.append(Fault(f"{_PLACE}.workspace", message))
        return None
    return normal(f"{workspace}/{section.workspace}" if not section.workspace.startswith("/") else section.workspace)


def _rules(data: JSON, root: str | None, faults: list[Fault]) -> Iterator[Rule]:
    """The rules in their order; what is wrong with them joins the faults."""
    asked = data.get("rules") if isinstance(data, Mapping) else None
    if not isinstance(asked, list | tuple):
        yield from default_rules(root)
        return
    names: set[str] = set()
    for index, item in enumerate(asked):
        place = step(f"{_PLACE}.rules", index)
        try:
            rule = _rule(item, root, place)
        except DocumentError as error:
            faults.extend(error.faults)
            continue
        if rule.name in names:
            faults.append(Fault(place, f"{rule.name!r} is named twice: keep one"))
        names.add(rule.name)
        yield rule


def _rule(item: JSON, root: str | None, place: str) -> Rule:
    name, options = _named(item, place)
    kind = RULES.get(name)
    if kind is None:
        known = ", ".join(RULES)
        raise _faulty(place, f"there is no rule {name[:100]!r}; there are {known}", closest_name(name, RULES))
    inside = place if isinstance(item, str) else step(place, name)
    if not isinstance(options, Mapping):
        raise _faulty(inside, "expected a table of options")
    try:
        return structure({**_defaults(kind, root), **options}, kind, _SOURCE)
    except DocumentError as error:
        raise DocumentError(_SOURCE, relocated(error.faults, {"$": inside})) from None


def _named(item: JSON, place: str) -> tuple[str, JSON]:
    if isinstance(item, str):
        return item, {}
    if isinstance(item, Mapping) and len(item) == 1:
        name, options = next(iter(item.items()))
        return str(name), {} if options is None else options
    raise _faulty(place, "expected the name of a rule, or a table of one name with its options")


def _defaults(kind: type[Rule], root: str | None) -> dict[str, JSON]:
    """What a rule knows without being told: where the agent works."""
    if root is not None and kind is WorkspaceBounds:
        return {"root": root}
    if root is not None and kind is DangerousCommands:
        return {"workspace": root}
    return {}


def _faulty(place: str, message: str, hint: str = "") -> DocumentError:
    return DocumentError(_SOURCE, (Fault(place, message, hint),))
