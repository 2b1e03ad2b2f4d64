"""The merged spec as a value: sections, digest, cases, rules."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from hashlib import sha256
from typing import Any

import attrs
import pytest

from orchestrator.errors import SpecError
from orchestrator.spec import Constraint, EvalCase, EvalKind, Example, MergedSpec, Section


def _slug_spec(**changes: Any) -> MergedSpec:
    parts: dict[str, Any] = {
        "name": "slug",
        "version": "1.0.0",
        "intent": "Turn a title\ninto a slug.\n",
        "constraints": (Constraint("lower-case", "no capitals"), Constraint("ascii", "only\n  ASCII")),
        "examples": (Example("simple", "`A B` is `a-b`"), Example("empty", "stays empty")),
        "evals": (
            EvalCase(name="simple", input={"b": 1, "a": [True, None]}, expect={"slug": "é"}, verifies=("ascii",)),
            EvalCase(name="bomb", kind=EvalKind.ADVERSARIAL, severity="critical"),
        ),
        "properties": {"idempotent": "slug(slug(x)) == slug(x)", "limit": [3, "é"]},
    }
    return MergedSpec(**parts | changes)


def test_sections_are_the_authors_text_in_the_contracts_order() -> None:
    """All six sections stand in order, empty ones say (none), and evals are in none of them."""
    assert _slug_spec().sections == (
        Section("Intent", "Turn a title\ninto a slug.\n"),
        Section("Constraints", "- lower-case: no capitals\n- ascii: only\n  ASCII"),
        Section("Avoid", "(none)"),
        Section("Interface", "(none)"),
        Section("Threat model", "(none)"),
        Section("Examples", "### simple\n`A B` is `a-b`\n\n### empty\nstays empty"),
        Section("Properties", '- idempotent: slug(slug(x)) == slug(x)\n- limit: [3, "é"]'),
    )


def test_references_come_after_the_six_sections() -> None:
    """References are a section of their own where the spec has any."""
    titles = [section.title for section in MergedSpec(intent="x", references="RFC 8785").sections]
    assert titles == ["Intent", "Constraints", "Avoid", "Interface", "Threat model", "Examples", "References"]


def test_digest_is_sha256_of_the_canonical_json() -> None:
    """Anyone can recompute the digest: RFC 8785 JSON, UTF-8, SHA-256."""
    canonical = '{"evals":[{"input":{"a":2,"b":1},"kind":"functional","name":"é"}],"intent":"x","name":"spec"}'
    spec = MergedSpec(intent="x", evals=(EvalCase(name="é", input={"b": 1, "a": 2}),))
    assert (spec.canonical, spec.digest) == (canonical, f"sha256:{sha256(canonical.encode()).hexdigest()}")


def test_equal_specs_are_equal_hash_equal_and_survive_copies() -> None:
    """A spec is a value: equality, hash, evolve, copy and pickle keep it, whatever its cases hold."""
    spec = _slug_spec()
    copies = [_slug_spec(), attrs.evolve(spec), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))]
    assert [(one, hash(one), one.digest) for one in copies] == [(spec, hash(spec), spec.digest)] * 4


def test_values_of_cases_cannot_be_changed_through_a_reader() -> None:
    """Whoever changes what it was given, before or after, changes neither the case nor its digest."""
    given = {"items": [1]}
    spec = MergedSpec(intent="x", evals=(EvalCase(name="a", input=given),), properties=given)
    digest = spec.digest
    given["items"].append(2)
    spec.evals[0].input["items"].append(3)
    assert (spec.evals[0].input, spec.properties, spec.digest) == ({"items": [1]}, {"items": [1]}, digest)


def test_true_and_one_are_different_expectations() -> None:
    """Python's True == 1 does not make two cases equal."""
    assert EvalCase(name="a", expect=True) != EvalCase(name="a", expect=1)


def test_expected_cases_and_severities() -> None:
    """The spec names the cases that must pass; one without evals names none."""
    spec = _slug_spec()
    assert spec.expected_cases == frozenset({"simple", "bomb"})
    assert MergedSpec(intent="x").expected_cases is None
    assert [spec.severity_of(case) for case in ("simple", "bomb", "unknown")] == ["", "critical", ""]


def test_broken_rules_are_all_named() -> None:
    """A spec that breaks rules is refused with every fault and what was probably meant."""
    with pytest.raises(SpecError) as caught:
        _slug_spec(
            name=" ",
            intent="\ud800",
            constraints=(Constraint("ascii", "x"), Constraint("ascii", "y"), Constraint("two words", "z")),
        )
    assert str(caught.value) == ("spec ' ': $.intent: holds a lone surrogate, which no UTF-8 text can carry: remove it")
    with pytest.raises(SpecError) as caught:
        _slug_spec(
            name=" ",
            constraints=(Constraint("asci", "x"), Constraint("asci", "y"), Constraint("two words", "z")),
            examples=(Example("a\nb", ""),),
            evals=(EvalCase(name="a", verifies=("ascii",), severity="grave"), EvalCase(name="a")),
        )
    assert [str(fault) for fault in caught.value.faults] == [
        "$.name: expected one line of text, found ' '",
        "$.constraints[1].id: 'asci' is given twice: rename one",
        "$.constraints[2].id: expected one word without ':', found 'two words'",
        "$.examples[0].name: expected one line of text, found 'a\\nb'",
        "$.evals[1].name: 'a' is given twice: rename one",
        "$.evals[0].severity: expected 'error', 'critical' or nothing, found 'grave'",
        "$.evals[0].verifies[0]: no constraint has the id 'ascii' (did you mean 'asci'?)",
    ]


@pytest.mark.parametrize("value", [float("nan"), {1: 2}, object(), "\udc00", 2**60])
def test_a_case_holds_json_only(value: object) -> None:
    """What JSON cannot carry is refused where the case is made."""
    with pytest.raises(SpecError):
        EvalCase(name="a", input=value)


def test_importing_specs_stays_light() -> None:
    """The libraries for files and digests are loaded by the first use, not by the import."""
    program = "import sys, orchestrator.spec; print(sorted({'yaml', 'cattrs', 'rfc8785'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
