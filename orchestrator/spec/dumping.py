"""Writes a spec as the plain data of a merged-spec file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.jsondata import JSON

if TYPE_CHECKING:
    from orchestrator.spec.model import EvalCase, MergedSpec

__all__ = ["dump_spec"]


def dump_spec(spec: MergedSpec) -> dict[str, JSON]:
    """`spec` as JSON data; loading it gives an equal spec.

    Parts that are empty are left out, so that a key added by a later release changes no digest.
    """
    parts = {
        "version": spec.version,
        "constraints": [{"id": constraint.id, "text": constraint.text} for constraint in spec.constraints],
        "avoid": spec.avoid,
        "interface": spec.interface,
        "threat-model": spec.threat_model,
        "examples": [{"name": example.name, "text": example.text} for example in spec.examples],
        "references": spec.references,
        "evals": [_dump_case(case) for case in spec.evals],
        "properties": spec.properties,
    }
    return {"name": spec.name, "intent": spec.intent, **{key: part for key, part in parts.items() if part}}


def _dump_case(case: EvalCase) -> dict[str, JSON]:
    texts = {"description": case.description, "category": case.category, "severity": case.severity}
    lists = {"verifies": list(case.verifies), "tags": list(case.tags)}
    values = {"input": case.input, "expect": case.expect}
    return {
        "name": case.name,
        "kind": case.kind.value,
        **{key: text for key, text in texts.items() if text},
        **{key: value for key, value in values.items() if value is not None},
        **{key: words for key, words in lists.items() if words},
    }
