"""Reads a module directory of the Commons Format: commonsformat.toml, commonsformat.md, evals.toml.

The layout follows the modules that are published with the format (versions 0.1 and 0.2). The format's own
section texts on merging, tiers and lockfiles are not public, so no conformance to them is claimed, and a
module that needs merging is refused instead of merged in a way of our own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import attrs

from orchestrator.documents import read_document, read_text
from orchestrator.errors import DocumentError, SpecError, UnmergedSpecError
from orchestrator.faults import Fault, relocated
from orchestrator.spec.constraintlines import read_constraint_lines
from orchestrator.spec.entries import Dependency, EvalSuite, Manifest
from orchestrator.spec.model import Constraint, EvalCase, Example, MergedSpec
from orchestrator.spec.placing import Placed, cases_of_tables, place_map, values
from orchestrator.spec.taggedtext import TaggedSection, read_tagged_text
from orchestrator.structuring import structure

__all__ = ["EVALS", "MANIFEST", "TEXT", "load_module"]

MANIFEST: Final = "commonsformat.toml"
TEXT: Final = "commonsformat.md"
EVALS: Final = "evals.toml"

_Result = TypeVar("_Result")


def load_module(directory: str | os.PathLike[str]) -> MergedSpec:
    """The spec of a closed module, one that depends on no other.

    Raises UnmergedSpecError for a module with `depends_on` or `extends`, else SpecError; either names
    every fault of all three files.
    """
    return _ModuleReader(Path(directory)).read()


@attrs.define(eq=False)
class _ModuleReader:
    directory: Path
    faults: list[Fault] = attrs.Factory(list[Fault])

    def read(self) -> MergedSpec:
        manifest = self._attempt(MANIFEST, self._read_manifest)
        sections = self._read_sections()
        constraints = self._constraints(sections)
        suite = self._read_suite(manifest)
        if manifest and suite:
            self.faults.extend(_mismatches(manifest, suite))
        if manifest and (manifest.depends_on or manifest.extends):
            raise UnmergedSpecError(str(self.directory), (_unmerged(manifest), *self.faults))
        spec = self._spec(manifest, sections, constraints, suite)
        if self.faults or spec is None:
            raise SpecError(str(self.directory), tuple(self.faults))
        return spec

    def _read_manifest(self) -> Manifest:
        return structure(read_document(self.directory / MANIFEST), Manifest, MANIFEST)

    def _read_sections(self) -> tuple[TaggedSection, ...]:
        text = self._attempt(TEXT, lambda: read_tagged_text(read_text(self.directory / TEXT)))
        if text is None:
            return ()
        self._add(TEXT, text.faults)
        return text.sections

    def _constraints(self, sections: tuple[TaggedSection, ...]) -> tuple[Placed[Constraint], ...]:
        blocks = [read_constraint_lines(section) for section in sections if section.tag == "constraints"]
        for block in blocks:
            self._add(TEXT, block.faults)
        return tuple(constraint for block in blocks for constraint in block.constraints)

    def _read_suite(self, manifest: Manifest | None) -> EvalSuite | None:
        named = manifest.verifies if manifest else ""
        file = self.directory / (named or EVALS)
        if not named and not file.exists():
            return None
        if not file.resolve().is_relative_to(self.directory.resolve()):
            self._add(MANIFEST, [Fault("$.verifies", f"{named!r} lies outside of the module")])
            return None
        return self._attempt(file.name, lambda: structure(read_document(file), EvalSuite, file.name))

    def _spec(
        self,
        manifest: Manifest | None,
        sections: tuple[TaggedSection, ...],
        constraints: tuple[Placed[Constraint], ...],
        suite: EvalSuite | None,
    ) -> MergedSpec | None:
        cases = cases_of_tables(suite, "$") if suite else ()
        examples = _examples(sections)
        if self.faults:
            # An id that could not be read must not be reported once more by every case that names it.
            cases = tuple(_without_references(case) for case in cases)
        try:
            return MergedSpec(
                name=manifest.name if manifest else "module",
                version=manifest.version if manifest else "",
                intent=_text(sections, "intent"),
                constraints=values(constraints),
                avoid=_text(sections, "avoid"),
                interface=_text(sections, "interface"),
                threat_model=_text(sections, "threat-model"),
                examples=values(examples),
                references=_text(sections, "references"),
                evals=values(cases),
                properties=suite.properties if suite else {},
            )
        except SpecError as error:
            self.faults.extend(relocated(error.faults, _places(constraints, examples, cases)))
            return None

    def _attempt(self, file: str, read: Callable[[], _Result]) -> _Result | None:
        try:
            return read()
        except DocumentError as error:
            self._add(file, error.faults)
            return None

    def _add(self, file: str, faults: Iterator[Fault] | tuple[Fault, ...] | list[Fault]) -> None:
        self.faults.extend(attrs.evolve(fault, path=f"{file}: {fault.path}".rstrip(": ")) for fault in faults)


def _mismatches(manifest: Manifest, suite: EvalSuite) -> Iterator[Fault]:
    if not manifest.contributes_only and suite.target != manifest.name:
        yield Fault(f"{EVALS}: $.target", f"targets another module than this one, {manifest.name!r}")
    for table in ("cases", "adversarial", "generator_adversary"):
        if getattr(suite, table) and table not in manifest.tables:
            yield Fault(f"{EVALS}: $.{table}", "the manifest's contributes_only leaves no room for these cases")


def _unmerged(manifest: Manifest) -> Fault:
    names = [dependency.spec for dependency in manifest.depends_on]
    if manifest.extends:
        parent = manifest.extends
        names.append(parent.spec if isinstance(parent, Dependency) else parent)
    key = "depends_on" if manifest.depends_on else "extends"
    message = f"not merged with {', '.join(names)}: run the resolver and pass the merged spec, or a closed module"
    return Fault(f"{MANIFEST}: $.{key}", message)


def _text(sections: tuple[TaggedSection, ...], tag: str) -> str:
    return "\n\n".join(section.text for section in sections if section.tag == tag)


def _examples(sections: tuple[TaggedSection, ...]) -> tuple[Placed[Example], ...]:
    return tuple(
        Placed(f"line {section.line}", Example(section.name, section.text))
        for section in sections
        if section.tag == "example"
    )


def _without_references(case: Placed[EvalCase]) -> Placed[EvalCase]:
    return attrs.evolve(case, value=attrs.evolve(case.value, verifies=()))


def _places(
    constraints: tuple[Placed[Constraint], ...],
    examples: tuple[Placed[Example], ...],
    cases: tuple[Placed[EvalCase], ...],
) -> dict[str, str]:
    lines = place_map("$.constraints", constraints, ("id", "text")) | place_map(
        "$.examples", examples, ("name", "text")
    )
    texts = {path: f"{TEXT}: {place}" for path, place in lines.items()}
    return texts | {path: f"{EVALS}: {place}" for path, place in place_map("$.evals", cases).items()}
