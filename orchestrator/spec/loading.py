"""Loads a spec from wherever it lies: a module directory, or one merged-spec file."""

from __future__ import annotations

import os
from pathlib import Path

from orchestrator.documents import read_document
from orchestrator.errors import DocumentError, SpecError
from orchestrator.faults import Fault, relocated
from orchestrator.jsondata import JSON
from orchestrator.spec.commonsformat import EVALS, MANIFEST, TEXT, load_module
from orchestrator.spec.dumping import dump_spec
from orchestrator.spec.entries import EvalTables, SpecFile
from orchestrator.spec.model import Constraint, EvalCase, Example, MergedSpec
from orchestrator.spec.placing import (
    Placed,
    cases_of_list,
    cases_of_tables,
    named_parts,
    place_map,
    values,
)
from orchestrator.structuring import structure

__all__ = ["dump_spec", "load_spec", "read_spec"]


def load_spec(path: str | os.PathLike[str]) -> MergedSpec:
    """The spec at `path`: a module directory, or a merged spec as .json, .toml, .yaml or .yml.

    The keys of a file are the fields of MergedSpec, with '-' or '_'; eval cases stand in a list that
    names each `kind`, or in tables `cases`, `adversarial` and `generator_adversary`. Raises SpecError
    with every fault, UnmergedSpecError for a module that is not closed.
    """
    place = Path(path)
    try:
        if place.is_dir():
            _require_manifest(place)
            return load_module(place)
        _require_whole_spec(place)
        return read_spec(read_document(place), str(place))
    except SpecError:
        raise
    except DocumentError as error:
        raise SpecError(error.source, error.faults) from None


def read_spec(data: JSON, source: str) -> MergedSpec:
    """The spec that plain data describes, as a merged-spec file holds it or `dump_spec` gave it.

    `source` is the name that errors give it. Raises DocumentError, SpecError among them, with every fault.
    """
    entry = structure(data, SpecFile, source)
    constraints = named_parts(entry.constraints, "$.constraints", Constraint)
    examples = named_parts(entry.examples, "$.examples", Example)
    cases = _cases(entry)
    try:
        return MergedSpec(
            name=entry.name,
            version=entry.version,
            intent=entry.intent,
            constraints=values(constraints),
            avoid=entry.avoid,
            interface=entry.interface,
            threat_model=entry.threat_model,
            examples=values(examples),
            references=entry.references,
            evals=values(cases),
            properties=entry.properties,
        )
    except SpecError as error:
        places = (
            place_map("$.constraints", constraints, ("id", "text") if isinstance(entry.constraints, dict) else ())
            | place_map("$.examples", examples, ("name", "text") if isinstance(entry.examples, dict) else ())
            | place_map("$.evals", cases)
        )
        raise SpecError(source, relocated(error.faults, places)) from None


def _require_manifest(directory: Path) -> None:
    if (directory / MANIFEST).exists():
        return
    inner = sorted(manifest.parent.name for manifest in directory.glob(f"*/{MANIFEST}"))[:3]
    remedy = f"pass one of its modules: {', '.join(inner)}" if inner else "pass a module or a merged-spec file"
    raise SpecError(str(directory), (Fault("", f"is a directory without {MANIFEST}, so not a module: {remedy}"),))


def _require_whole_spec(file: Path) -> None:
    if not file.exists():
        raise SpecError(str(file), (Fault("", "no such file or directory"),))
    if file.name in (MANIFEST, TEXT, EVALS) and (file.parent / MANIFEST).exists():
        message = f"is one file of a module: pass the directory {str(file.parent)!r}"
        raise SpecError(str(file), (Fault("", message),))


def _cases(entry: SpecFile) -> tuple[Placed[EvalCase], ...]:
    if isinstance(entry.evals, EvalTables):
        return (*cases_of_tables(entry.evals, "$.evals"), *cases_of_tables(entry, "$"))
    return (*cases_of_list(entry.evals, "$.evals"), *cases_of_tables(entry, "$"))
