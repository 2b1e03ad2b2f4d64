"""The shapes of the tables that spec files and modules hold, before they are put together.

The manifest and eval suite of a module follow the examples published with the Commons Format, since the
format's own section texts are not public; no conformance to those is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Literal

import attrs

from orchestrator.spec.model import Constraint, EvalCase, EvalKind, Example

__all__ = [
    "Author",
    "CaseEntry",
    "Coverage",
    "Dependency",
    "EvalSuite",
    "EvalTables",
    "KindedCaseEntry",
    "Manifest",
    "ModuleCase",
    "SevereModuleCase",
    "SpecFile",
    "eval_case",
]


def _form(pattern: str, description: str) -> Callable[[Any, Any, str], None]:
    compiled = re.compile(pattern)

    def check(_instance: Any, _attribute: Any, value: str) -> None:
        if not compiled.fullmatch(value):
            raise ValueError(f"expected {description}, found {value!r}")

    return check


_identifier = _form("[a-z0-9]+(-+[a-z0-9]+)*", "lower-case letters, digits and hyphens with no hyphen at either end")
_format_version = _form(r"0\.[12](\.[0-9]+)?", "a format version that is known here, 0.1 or 0.2")
_release = _form(r"(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*)){2}", "MAJOR.MINOR.PATCH without a suffix")
_release_range = _form(
    r"|(\^|~|[<>]=?|==?)? ?[0-9]+(\.[0-9]+){0,2}", "a version constraint such as '^1.0.0' or '>=0.0.3'"
)
_address = _form(r"[^\s/]+(/[^\s/]+){2,}", "an address host/owner/repository/path")


@attrs.frozen(kw_only=True)
class CaseEntry:
    """An eval case in one of the three case tables of a merged-spec file."""

    name: str
    description: str = ""
    category: str = ""
    severity: Literal["", "error", "critical"] = ""
    input: Any = None
    expect: Any = None
    verifies: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class KindedCaseEntry(CaseEntry):
    """An eval case in the list form of a merged-spec file, where it names its own kind."""

    kind: EvalKind


@attrs.frozen(kw_only=True)
class EvalTables:
    """The eval cases of a merged-spec file as three tables, each of one kind."""

    cases: tuple[CaseEntry, ...] = ()
    adversarial: tuple[CaseEntry, ...] = ()
    generator_adversary: tuple[CaseEntry, ...] = ()


@attrs.frozen(kw_only=True)
class SpecFile(EvalTables):
    """A merged spec as a file; the case tables may stand at the top or under `evals`."""

    name: str = "spec"
    version: str = ""
    intent: str
    constraints: tuple[Constraint, ...] | dict[str, str] = ()
    avoid: str = ""
    interface: str = ""
    threat_model: str = ""
    examples: tuple[Example, ...] | dict[str, str] = ()
    references: str = ""
    evals: tuple[KindedCaseEntry, ...] | EvalTables = ()
    properties: dict[str, Any] = attrs.Factory(dict[str, Any])


@attrs.frozen(kw_only=True)
class Author:
    """One author in a module's manifest."""

    name: str
    email: str = ""
    url: str = ""


@attrs.frozen(kw_only=True)
class Dependency:
    """A module that another one builds on, and how conflicts with it are settled."""

    spec: str = attrs.field(validator=_address)
    version: str = attrs.field(default="", validator=_release_range)
    ref: str = ""
    commit: str = ""
    overrides: dict[str, Any] = attrs.Factory(dict[str, Any])


@attrs.frozen(kw_only=True)
class Manifest:
    """A module's commonsformat.toml."""

    commonsformat: str = attrs.field(validator=_format_version)
    name: str = attrs.field(validator=_identifier)
    version: str = attrs.field(validator=_release)
    description: str = ""
    license: str = ""
    authors: tuple[Author, ...] | None = attrs.field(default=None)
    verifies: str = ""
    homepage: str = ""
    repository: str = ""
    keywords: tuple[str, ...] = ()
    depends_on: tuple[Dependency, ...] = ()
    extends: str | Dependency = ""
    contributes_only: (
        bool | Literal["adversarial", "generator_adversary"] | tuple[Literal["adversarial", "generator_adversary"], ...]
    ) = False

    @authors.validator
    def _has_an_author(self, _attribute: object, authors: tuple[Author, ...] | None) -> None:
        if authors == ():
            raise ValueError("expected at least one author")

    @property
    def tables(self) -> tuple[str, ...]:
        """The case tables that the module's eval suite may fill."""
        match self.contributes_only:
            case False:
                return ("cases", "adversarial", "generator_adversary")
            case True:
                return ("adversarial", "generator_adversary")
            case str(table):
                return (table,)
            case tables:
                return tables


@attrs.frozen(kw_only=True)
class ModuleCase:
    """A functional case of a module's eval suite."""

    name: str = attrs.field(validator=_identifier)
    description: str = ""
    category: str = ""
    input: dict[str, Any]
    expect: dict[str, Any]
    verifies: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class SevereModuleCase(ModuleCase):
    """A case of a module's `adversarial` or `generator_adversary` table."""

    severity: Literal["", "error", "critical"] = ""


@attrs.frozen(kw_only=True)
class Coverage:
    """The kinds of attack that a suite says it covers."""

    categories: tuple[str, ...]


@attrs.frozen(kw_only=True)
class EvalSuite:
    """A module's evals.toml."""

    commonsformat_evals: str = attrs.field(validator=_format_version)
    target: str = attrs.field(validator=_identifier)
    target_version: str = attrs.field(default="", validator=_release_range)
    cases: tuple[ModuleCase, ...] = ()
    adversarial: tuple[SevereModuleCase, ...] = ()
    generator_adversary: tuple[SevereModuleCase, ...] = ()
    adversarial_coverage: Coverage | None = None
    properties: dict[str, Any] = attrs.Factory(dict[str, Any])


def eval_case(entry: CaseEntry | ModuleCase, kind: EvalKind) -> EvalCase:
    """The case that `entry` of a table of `kind` describes."""
    return EvalCase(
        name=entry.name,
        kind=kind,
        description=entry.description,
        category=entry.category,
        severity=entry.severity if isinstance(entry, CaseEntry | SevereModuleCase) else "",
        input=entry.input,
        expect=entry.expect,
        verifies=entry.verifies,
        tags=entry.tags,
    )
