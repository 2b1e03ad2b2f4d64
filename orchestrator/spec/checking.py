"""The rules of a merged spec that its types alone do not keep."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.faults import Fault, closest_name
from orchestrator.jsondata import json_faults

if TYPE_CHECKING:
    from orchestrator.spec.model import EvalCase, MergedSpec

__all__ = ["spec_faults"]

_WORD = re.compile(r"[^\s:]+\Z")
_LINE = re.compile(r"\S(?:[^\r\n]*\S)?\Z")
_SEVERITIES: Final = ("", "error", "critical")
_TEXTS: Final = ("name", "version", "intent", "avoid", "interface", "threat_model", "references")


def spec_faults(spec: MergedSpec) -> tuple[Fault, ...]:
    """Every broken rule of `spec`, each with the path of the part that breaks it."""
    type_faults = tuple(_type_faults(spec))
    return type_faults or tuple(_rule_faults(spec))


def _type_faults(spec: MergedSpec) -> Iterator[Fault]:
    for name in _TEXTS:
        yield from _text_faults(getattr(spec, name), f"$.{name.replace('_', '-')}")
    for name in ("constraints", "examples", "evals"):
        if not isinstance(getattr(spec, name), tuple):
            yield Fault(f"$.{name}", f"expected a tuple, found {type(getattr(spec, name)).__name__}")
    if not isinstance(spec.properties, dict):
        yield Fault("$.properties", "expected a table of name and value")


def _rule_faults(spec: MergedSpec) -> Iterator[Fault]:
    if not _LINE.match(spec.name):
        yield Fault("$.name", f"expected one line of text, found {spec.name!r}")
    identifiers = [constraint.id for constraint in spec.constraints]
    yield from _naming_faults(identifiers, "$.constraints", "id", _WORD)
    yield from _naming_faults([example.name for example in spec.examples], "$.examples", "name", _LINE)
    yield from _naming_faults([case.name for case in spec.evals], "$.evals", "name", _LINE)
    for index, constraint in enumerate(spec.constraints):
        yield from _text_faults(constraint.text, f"$.constraints[{index}].text")
    for index, example in enumerate(spec.examples):
        yield from _text_faults(example.text, f"$.examples[{index}].text")
    for index, case in enumerate(spec.evals):
        yield from _case_faults(case, f"$.evals[{index}]", identifiers)


def _naming_faults(names: Sequence[object], path: str, key: str, form: re.Pattern[str]) -> Iterator[Fault]:
    expected = "one word without ':'" if form is _WORD else "one line of text"
    seen: set[str] = set()
    for index, name in enumerate(names):
        place = f"{path}[{index}].{key}"
        if not isinstance(name, str) or not form.match(name):
            yield Fault(place, f"expected {expected}, found {name!r}")
        elif name in seen:
            yield Fault(place, f"{name!r} is given twice: rename one")
        else:
            seen.add(name)
            yield from _text_faults(name, place)


def _case_faults(case: EvalCase, path: str, identifiers: Sequence[str]) -> Iterator[Fault]:
    yield from _text_faults(case.description, f"{path}.description")
    yield from _text_faults(case.category, f"{path}.category")
    if case.severity not in _SEVERITIES:
        yield Fault(f"{path}.severity", f"expected 'error', 'critical' or nothing, found {case.severity!r}")
    for index, tag in enumerate(case.tags):
        yield from _text_faults(tag, f"{path}.tags[{index}]")
    for index, identifier in enumerate(case.verifies):
        if identifier not in identifiers:
            hint = closest_name(str(identifier), identifiers)
            yield Fault(f"{path}.verifies[{index}]", f"no constraint has the id {identifier!r}", hint)


def _text_faults(text: object, path: str) -> Iterator[Fault]:
    if isinstance(text, str):
        yield from json_faults(text, path)
    else:
        yield Fault(path, f"expected text, found {type(text).__name__}")
