"""Properties of specs: the file format loses nothing and the digest misses nothing."""

from __future__ import annotations

import json
from typing import Any

import attrs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.documents import parse_document
from orchestrator.errors import DocumentError
from orchestrator.spec import Constraint, EvalCase, EvalKind, Example, MergedSpec, load_spec
from orchestrator.spec.dumping import dump_spec

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LINES = st.from_regex(r"[A-Za-zé0-9]([A-Za-z0-9 :é-]{0,8}[A-Za-z0-9é])?", fullmatch=True)
WORDS = st.from_regex(r"[a-z0-9]+(-[a-z0-9]+){0,2}", fullmatch=True)
EXACT_INTEGERS = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBERS = EXACT_INTEGERS | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


@st.composite
def _specs(draw: st.DrawFn) -> MergedSpec:
    identifiers = draw(st.lists(WORDS, unique=True, max_size=3))
    example_names = draw(st.lists(LINES, unique=True, max_size=2))
    case_names = draw(st.lists(LINES, unique=True, max_size=3))
    verified = st.lists(st.sampled_from(identifiers), unique=True) if identifiers else st.just([])
    return MergedSpec(
        name=draw(LINES),
        version=draw(TEXTS),
        intent=draw(TEXTS),
        constraints=tuple(Constraint(identifier, draw(TEXTS)) for identifier in identifiers),
        avoid=draw(TEXTS),
        interface=draw(TEXTS),
        threat_model=draw(TEXTS),
        examples=tuple(Example(name, draw(TEXTS)) for name in example_names),
        references=draw(TEXTS),
        evals=tuple(
            EvalCase(
                name=name,
                kind=draw(st.sampled_from(EvalKind)),
                description=draw(TEXTS),
                category=draw(TEXTS),
                severity=draw(st.sampled_from(["", "error", "critical"])),
                input=draw(VALUES),
                expect=draw(VALUES),
                verifies=tuple(draw(verified)),
                tags=tuple(draw(st.lists(TEXTS, max_size=2))),
            )
            for name in case_names
        ),
        properties=draw(st.dictionaries(TEXTS, VALUES, max_size=2)),
    )


def _reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _reversed_keys(value[key]) for key in reversed(value)}
    return [_reversed_keys(item) for item in value] if isinstance(value, list) else value


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(spec=_specs())
def test_dump_and_load_are_inverse(spec: MergedSpec, tmp_path_factory: Any) -> None:
    """Any spec, dumped as JSON and loaded, is equal and has the same digest, whatever the key order."""
    file = tmp_path_factory.mktemp("spec") / "spec.json"
    file.write_text(json.dumps(_reversed_keys(dump_spec(spec))), encoding="utf-8")
    loaded = load_spec(file)
    assert (loaded, loaded.digest) == (spec, spec.digest)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(spec=_specs(), data=st.data())
def test_any_changed_field_changes_the_digest(spec: MergedSpec, data: st.DataObject) -> None:
    """No field of the spec or of a part of it can change without changing the digest."""
    changed = data.draw(st.sampled_from(list(_changes_of(spec))))
    assert changed.digest != spec.digest


def _changes_of(spec: MergedSpec) -> list[MergedSpec]:
    texts = ("name", "version", "intent", "avoid", "interface", "threat_model", "references")
    changed: list[dict[str, Any]] = [{name: f"{getattr(spec, name)}x"} for name in texts]
    changed.append({"properties": {**spec.properties, "a new property": None}})
    changed.append({"constraints": (*spec.constraints, Constraint("a-new-constraint", ""))})
    changed.append({"examples": (*spec.examples, Example("a new example", ""))})
    changed.append({"evals": (*spec.evals, EvalCase(name="a new case"))})
    for index, constraint in enumerate(spec.constraints):
        changed_part = attrs.evolve(constraint, text=f"{constraint.text}x")
        changed.append({"constraints": _replaced(spec.constraints, index, changed_part)})
    for index, example in enumerate(spec.examples):
        changed_example = attrs.evolve(example, name="a new name", text=f"{example.text}x")
        changed.append({"examples": _replaced(spec.examples, index, changed_example)})
    for index, case in enumerate(spec.evals):
        changed.extend({"evals": _replaced(spec.evals, index, part)} for part in _changes_of_case(case))
    return [attrs.evolve(spec, **change) for change in changed]


def _changes_of_case(case: EvalCase) -> list[EvalCase]:
    kinds = list(EvalKind)
    return [
        attrs.evolve(case, name="a new name"),
        attrs.evolve(case, kind=kinds[kinds.index(case.kind) - 1]),
        attrs.evolve(case, description=f"{case.description}x"),
        attrs.evolve(case, category=f"{case.category}x"),
        attrs.evolve(case, severity="" if case.severity else "error"),
        attrs.evolve(case, input=[case.input]),
        attrs.evolve(case, expect={"a": case.expect}),
        attrs.evolve(case, tags=(*case.tags, "")),
        attrs.evolve(case, verifies=case.verifies[1:] if case.verifies else ())
        if case.verifies
        else attrs.evolve(case, name="x y z"),
    ]


def _replaced(parts: tuple[Any, ...], index: int, part: object) -> tuple[Any, ...]:
    return (*parts[:index], part, *parts[index + 1 :])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    text=st.text(max_size=60) | st.text("{}[]:,&*!<>-#|'\"\n ab1?~", max_size=60),
    suffix=st.sampled_from([".json", ".toml", ".yaml"]),
)
def test_any_text_is_plain_data_or_a_document_error(text: str, suffix: str) -> None:
    """No text makes a reader raise anything but its own error, and what it gives is plain JSON data."""
    try:
        data = parse_document(text, suffix, "file")
    except DocumentError:
        return
    assert json.loads(json.dumps(data, allow_nan=False)) == data
