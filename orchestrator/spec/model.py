"""The merged spec: everything a generator is told and everything its candidates are judged by."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from hashlib import sha256

import attrs

from orchestrator.errors import SpecError
from orchestrator.jsondata import JSON
from orchestrator.spec.checking import spec_faults
from orchestrator.spec.dumping import dump_spec
from orchestrator.spec.jsontext import JsonText, json_text
from orchestrator.spec.sections import Section, sections_of

__all__ = ["Constraint", "EvalCase", "EvalKind", "Example", "MergedSpec"]


class EvalKind(StrEnum):
    """Which table of an eval suite a case stands in."""

    FUNCTIONAL = "functional"
    ADVERSARIAL = "adversarial"
    GENERATOR_ADVERSARY = "generator_adversary"
    """A case that a plausible but wrong implementation fails: it pins a subtle invariant."""


@attrs.frozen
class Constraint:
    """One rule the candidate must keep; eval cases point at its `id`."""

    id: str
    text: str


@attrs.frozen
class Example:
    """A named example of the behaviour that is asked for."""

    name: str
    text: str


@attrs.frozen(kw_only=True)
class EvalCase:
    """One case of the hidden judge: what goes in, what must come out, and which constraints it verifies.

    `input` and `expect` are JSON values in whatever shape the eval runner understands; each read gives
    a fresh copy. `category` is the suite's own word. Raises SpecError where a value is not JSON.
    """

    name: str
    kind: EvalKind = attrs.field(default=EvalKind.FUNCTIONAL, converter=EvalKind)
    description: str = ""
    category: str = ""
    severity: str = ""
    _input: JsonText = attrs.field(default=JsonText("null"), converter=json_text, alias="input")
    _expect: JsonText = attrs.field(default=JsonText("null"), converter=json_text, alias="expect")
    verifies: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()

    @property
    def input(self) -> JSON:
        """What the case gives to the implementation, as a fresh JSON value."""
        return self._input.decoded()

    @property
    def expect(self) -> JSON:
        """What the case asserts; only the fields it names count."""
        return self._expect.decoded()


@attrs.frozen(kw_only=True)
class MergedSpec:
    """A spec with nothing left to resolve: the input of a conformance run (contract 1).

    Texts are kept byte for byte. Raises SpecError with every fault: an id or name that is given twice
    or is not one word, a case that verifies an unknown constraint, text that is not Unicode.
    """

    name: str = "spec"
    version: str = ""
    intent: str
    constraints: tuple[Constraint, ...] = ()
    avoid: str = ""
    interface: str = ""
    threat_model: str = ""
    examples: tuple[Example, ...] = ()
    references: str = ""
    evals: tuple[EvalCase, ...] = ()
    _properties: JsonText = attrs.field(default=JsonText("{}"), converter=json_text, alias="properties")

    def __attrs_post_init__(self) -> None:
        faults = spec_faults(self)
        if faults:
            raise SpecError(f"spec {self.name!r}", faults)

    @property
    def properties(self) -> Mapping[str, JSON]:
        """Named invariants and advisory values, as a fresh mapping."""
        properties: dict[str, JSON] = self._properties.decoded()
        return properties

    @cached_property
    def canonical(self) -> str:
        """The whole spec as RFC 8785 JSON: every section and every eval case, parts left empty absent."""
        from rfc8785 import dumps

        return dumps(dump_spec(self)).decode()

    @cached_property
    def digest(self) -> str:
        """`sha256:` and 64 hexadecimal digits over the UTF-8 bytes of `canonical`.

        Independent of the order of keys and of the file format; 1 and 1.0 are one number in JSON.
        """
        return f"sha256:{sha256(self.canonical.encode()).hexdigest()}"

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """What every prompt carries, in order; the evals are not in it."""
        return sections_of(self)

    @cached_property
    def expected_cases(self) -> frozenset[str] | None:
        """The names of all eval cases; None when the spec names none."""
        return frozenset(case.name for case in self.evals) or None

    def severity_of(self, case: str) -> str:
        """`error`, `critical`, or empty where the spec does not say or does not know the case."""
        return self._severities.get(case, "")

    @cached_property
    def _severities(self) -> dict[str, str]:
        return {case.name: case.severity for case in self.evals}
