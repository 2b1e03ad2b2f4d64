"""Merged specs as files: one meaning in every format, and clear words for a wrong path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.errors import SpecError
from orchestrator.spec import Constraint, EvalCase, EvalKind, Example, MergedSpec, load_spec
from orchestrator.spec.dumping import dump_spec

SPEC = MergedSpec(
    name="slug",
    version="1",
    intent="Turn a title into a slug.",
    constraints=(Constraint("ascii", "only ASCII"), Constraint("short", "80 letters")),
    threat_model="strangers",
    examples=(Example("simple", "`A B`"),),
    evals=(
        EvalCase(name="simple", input="A B", expect="a-b", verifies=("ascii",)),
        EvalCase(name="huge", kind=EvalKind.ADVERSARIAL, severity="critical"),
        EvalCase(name="hyphens", kind=EvalKind.GENERATOR_ADVERSARY),
    ),
)

JSON_LISTS = """{
  "name": "slug", "version": "1", "intent": "Turn a title into a slug.", "threat-model": "strangers",
  "constraints": [{"id": "ascii", "text": "only ASCII"}, {"id": "short", "text": "80 letters"}],
  "examples": [{"name": "simple", "text": "`A B`"}],
  "evals": [
    {"name": "simple", "kind": "functional", "input": "A B", "expect": "a-b", "verifies": ["ascii"]},
    {"name": "huge", "kind": "adversarial", "severity": "critical"},
    {"name": "hyphens", "kind": "generator_adversary"}
  ]
}"""

TOML_TABLES = """
name = "slug"
version = "1"
intent = "Turn a title into a slug."
threat_model = "strangers"
[constraints]
short = "80 letters"
ascii = "only ASCII"
[examples]
simple = "`A B`"
[[cases]]
name = "simple"
input = "A B"
expect = "a-b"
verifies = ["ascii"]
[[adversarial]]
name = "huge"
severity = "critical"
[[generator_adversary]]
name = "hyphens"
"""

YAML_NESTED = """
name: slug
version: "1"
intent: Turn a title into a slug.
threat-model: strangers
constraints: {ascii: only ASCII, short: 80 letters}
examples:
  - {name: simple, text: "`A B`"}
evals:
  cases:
    - {name: simple, input: A B, expect: a-b, verifies: [ascii]}
  adversarial:
    - {name: huge, severity: critical}
  generator-adversary:
    - name: hyphens
"""


@pytest.mark.parametrize(
    ("name", "text"), [("spec.json", JSON_LISTS), ("spec.toml", TOML_TABLES), ("spec.yaml", YAML_NESTED)]
)
def test_every_format_and_form_gives_the_same_spec(tmp_path: Path, name: str, text: str) -> None:
    """Lists and tables, nested or at the top, in JSON, TOML and YAML: one spec, one digest."""
    file = tmp_path / name
    file.write_text(text)
    spec = load_spec(file)
    assert (spec, spec.digest) == (SPEC, SPEC.digest)


def test_a_dumped_spec_loads_as_itself(tmp_path: Path) -> None:
    """The dump is the file format: writing it as JSON and loading it gives an equal spec."""
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(dump_spec(SPEC)))
    assert load_spec(file) == SPEC


def test_the_canonical_text_is_a_spec_file(tmp_path: Path) -> None:
    """What the digest is taken over can be stored, loaded and gives the same digest."""
    file = tmp_path / "spec.json"
    file.write_text(SPEC.canonical)
    assert load_spec(file).digest == SPEC.digest


def test_faults_of_a_file_have_the_paths_of_that_file(tmp_path: Path) -> None:
    """Broken rules are named where the file breaks them, whichever form it uses."""
    file = tmp_path / "spec.toml"
    broken = TOML_TABLES.replace('["ascii"]', '["asci"]').replace('short = "80', '"too short" = "80')
    file.write_text(broken.replace('"huge"', '"simple"'))
    with pytest.raises(SpecError) as caught:
        load_spec(file)
    assert str(caught.value).splitlines() == [
        f"{file}: $.constraints['too short']: expected one word without ':', found 'too short'",
        f"{file}: $.adversarial[0].name: 'simple' is given twice: rename one",
        f"{file}: $.cases[0].verifies[0]: no constraint has the id 'asci' (did you mean 'ascii'?)",
    ]


def test_shape_faults_come_all_at_once(tmp_path: Path) -> None:
    """Unknown keys, missing keys and wrong kinds of value are one error."""
    file = tmp_path / "spec.yaml"
    file.write_text("intnet: x\nconstraints: ascii\nevals:\n- {name: a}\n- {name: b, kind: functonal}\n")
    with pytest.raises(SpecError) as caught:
        load_spec(file)
    kinds = "'functional', 'adversarial', 'generator_adversary'"
    assert [str(fault) for fault in caught.value.faults] == [
        "$.intnet: unknown key (did you mean 'intent'?)",
        "$.constraints: expected an array or a table, found a string 'ascii'",
        "$.evals[0].kind: required key is missing",
        f"$.evals[1].kind: expected one of {kinds}, found a string 'functonal' (did you mean 'functional'?)",
        "$.intent: required key is missing",
    ]


def test_a_wrong_path_is_told_what_to_pass(tmp_path: Path) -> None:
    """A missing path, a directory that is no module, and one file of a module each get their remedy."""
    (tmp_path / "empty").mkdir()
    (tmp_path / "slug").mkdir()
    for name in ("commonsformat.toml", "evals.toml"):
        (tmp_path / "slug" / name).write_text("")
    found = {}
    for name in ("missing", ".", "empty", "slug/evals.toml"):
        with pytest.raises(SpecError) as caught:
            load_spec(tmp_path / name)
        found[name] = [str(fault) for fault in caught.value.faults]
    no_module = "is a directory without commonsformat.toml, so not a module:"
    assert found == {
        "missing": ["no such file or directory"],
        ".": [f"{no_module} pass one of its modules: slug"],
        "empty": [f"{no_module} pass a module or a merged-spec file"],
        "slug/evals.toml": [f"is one file of a module: pass the directory {str(tmp_path / 'slug')!r}"],
    }
