"""Module directories: what a well-formed one gives, and how a broken one is answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.errors import SpecError, UnmergedSpecError
from orchestrator.spec import Constraint, EvalCase, EvalKind, Example, MergedSpec, load_spec

MANIFEST = """
commonsformat = "0.2"
name = "slug"
version = "1.0.0"
description = "Makes slugs."
license = "MIT"
authors = [{ name = "A. Author", url = "https://example.org" }]
keywords = ["text"]
verifies = "./evals.toml"
"""

TEXT = """# slug

For people: <intent> in running text is text.

<intent>
Turn a title into a slug.

It is shown in a URL.
</intent>

<constraints>
- lower-case: every letter is lower case
- one-hyphen: words are separated
  by one hyphen

- `ascii`: only ASCII
</constraints>

<avoid>Back-tracking: a < b.</avoid>

<interface>
<div>shown as it is</div>
```
<intent>
</interface>
```
    <avoid>
</interface>

<threat-model>
Titles come from strangers.
</threat-model>

<example name="two > one">
`A B` is `a-b`
</example>

<constraints>
- short: at most 80 letters
</constraints>
<example name='empty'></example>
"""

EVALS = """
commonsformat_evals = "0.2"
target = "slug"
target_version = "^1.0.0"

[[cases]]
name = "simple"
description = "Two words"
category = "functional"
input = { title = "A B" }
expect = { slug = "a-b" }
verifies = ["lower-case", "one-hyphen"]
tags = ["upstream:x"]

[[adversarial]]
name = "huge"
category = "resource"
severity = "critical"
input = { title = "fixture://huge" }
expect = { crashed = false }
verifies = ["short", "ascii"]

[[generator_adversary]]
name = "only-hyphens"
severity = "error"
input = { title = "- -" }
expect = { slug = "" }

[adversarial_coverage]
categories = ["resource"]

[properties]
idempotent = "slug(slug(x)) == slug(x)"
"""

SLUG = MergedSpec(
    name="slug",
    version="1.0.0",
    intent="Turn a title into a slug.\n\nIt is shown in a URL.",
    constraints=(
        Constraint("lower-case", "every letter is lower case"),
        Constraint("one-hyphen", "words are separated\n  by one hyphen"),
        Constraint("ascii", "only ASCII"),
        Constraint("short", "at most 80 letters"),
    ),
    avoid="Back-tracking: a < b.",
    interface="<div>shown as it is</div>\n```\n<intent>\n</interface>\n```\n    <avoid>",
    threat_model="Titles come from strangers.",
    examples=(Example("two > one", "`A B` is `a-b`"), Example("empty", "")),
    evals=(
        EvalCase(
            name="simple",
            description="Two words",
            category="functional",
            input={"title": "A B"},
            expect={"slug": "a-b"},
            verifies=("lower-case", "one-hyphen"),
            tags=("upstream:x",),
        ),
        EvalCase(
            name="huge",
            kind=EvalKind.ADVERSARIAL,
            category="resource",
            severity="critical",
            input={"title": "fixture://huge"},
            expect={"crashed": False},
            verifies=("short", "ascii"),
        ),
        EvalCase(
            name="only-hyphens",
            kind=EvalKind.GENERATOR_ADVERSARY,
            severity="error",
            input={"title": "- -"},
            expect={"slug": ""},
        ),
    ),
    properties={"idempotent": "slug(slug(x)) == slug(x)"},
)

NAME_FORM = "lower-case letters, digits and hyphens with no hyphen at either end"
CONSTRAINT_FORM = "write '- identifier: text' with an identifier of lower-case letters, digits and hyphens"
UNCLOSED_IN_FENCE = "<references> is never closed: add </references>; the code fence of line 42 is still open"
SEVERITY_FORM = "expected one of '', 'error', 'critical', found a string 'eror' (did you mean 'error'?)"


def _module(directory: Path, manifest: str = MANIFEST, text: str | None = TEXT, evals: str | None = EVALS) -> Path:
    for name, content in (
        ("commonsformat.toml", manifest),
        ("commonsformat.md", text),
        ("evals.toml", evals),
    ):
        if content is not None:
            (directory / name).write_bytes(content.encode())
    return directory


def _faults_of(directory: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_spec(directory)
    assert caught.value.source == str(directory)
    return [str(fault) for fault in caught.value.faults]


def test_a_module_becomes_a_spec(tmp_path: Path) -> None:
    """Manifest, tagged text and eval suite become one spec; text stays byte for byte."""
    assert load_spec(_module(tmp_path)) == SLUG


def test_line_ends_inside_a_section_are_kept(tmp_path: Path) -> None:
    """A text written with CRLF keeps its line ends inside sections."""
    spec = load_spec(_module(tmp_path, text=TEXT.replace("\n", "\r\n")))
    assert spec.intent == "Turn a title into a slug.\r\n\r\nIt is shown in a URL."
    assert spec.constraints[0] == Constraint("lower-case", "every letter is lower case")


def test_a_module_without_evals_names_no_cases(tmp_path: Path) -> None:
    """The eval suite is optional as long as the manifest names none."""
    manifest = MANIFEST.replace('verifies = "./evals.toml"', "")
    assert load_spec(_module(tmp_path, manifest, evals=None)).expected_cases is None


def test_all_faults_of_all_files_come_at_once(tmp_path: Path) -> None:
    """One error names what is wrong in each of the three files, with path or line."""
    manifest = MANIFEST.replace('version = "1.0.0"', 'verson = "1.0"').replace('"slug"', '"Slug-"')
    text = TEXT.replace("- short: at", "- Too Short: at").replace("<avoid>Back", "<avoidd>Back")
    evals = EVALS.replace('severity = "error"', 'severity = "eror"').replace("tags = [", "tgas = [")
    assert _faults_of(_module(tmp_path, manifest, text, evals)) == [
        "commonsformat.toml: $.verson: unknown key (did you mean 'version'?)",
        "commonsformat.toml: $.version: required key is missing",
        f"commonsformat.toml: $.name: expected {NAME_FORM}, found 'Slug-'",
        "commonsformat.md: line 19: unknown tag <avoidd> (did you mean 'avoid'?)",
        f"commonsformat.md: line 39: not a constraint: {CONSTRAINT_FORM}",
        "evals.toml: $.cases[0].tgas: unknown key (did you mean 'tags'?)",
        f"evals.toml: $.generator_adversary[0].severity: {SEVERITY_FORM}",
    ]


def test_names_that_do_not_meet_are_found_across_files(tmp_path: Path) -> None:
    """A case that verifies an unknown constraint, and names given twice, are faults of their own file."""
    text = TEXT.replace("- short: at", "- ascii: at").replace('name="two > one"', 'name="empty"')
    evals = EVALS.replace('"huge"\ncategory', '"simple"\ncategory').replace('"lower-case"', '"asci"')
    assert _faults_of(_module(tmp_path, text=text, evals=evals)) == [
        "commonsformat.md: line 39: 'ascii' is given twice: rename one",
        "commonsformat.md: line 41: 'empty' is given twice: rename one",
        "evals.toml: $.adversarial[0].name: 'simple' is given twice: rename one",
        "evals.toml: $.cases[0].verifies[0]: no constraint has the id 'asci' (did you mean 'ascii'?)",
        "evals.toml: $.adversarial[0].verifies[0]: no constraint has the id 'short'",
    ]


@pytest.mark.parametrize(
    ("old", "new", "faults"),
    [
        ("</threat-model>", "", [
            "line 34: <example> opens inside <threat-model> of line 30: close <threat-model> first",
        ]),
        ("</avoid>", "", [
            "line 21: <interface> opens inside <avoid> of line 19: close <avoid> first",
        ]),
        ("</threat-model>", "</avoid>\n</threat-model>", [
            "line 32: </avoid> closes what is not open: <threat-model> of line 30 is",
        ]),
        ("<avoid>Back", "</intent>\n<avoid>Back", ["line 19: </intent> closes what is not open: nothing is"]),
        ("<threat-model>", "<intent></intent>\n<threat-model>", [
            "line 30: a second <intent>: a module has one",
        ]),
        ("Titles come", "<avoid>\nx\n</avoid>\nTitles come", [
            "line 31: <avoid> opens inside <threat-model> of line 30: close <threat-model> first",
        ]),
        ("<example name='empty'></example>", "<example>x</example>", [
            'line 41: an example without a name: write <example name="…">',
        ]),
        ("<example name='empty'></example>", "<references>\n```\n</references>", [
            f"line 41: {UNCLOSED_IN_FENCE}",
        ]),
        ("- short: at most 80 letters", "Keep it short:\n- short:", [
            f"line 39: text before the first constraint: {CONSTRAINT_FORM}",
            "line 40: constraint 'short' has no text",
        ]),
    ],
)  # fmt: skip
def test_malformed_text_is_refused_with_its_line(tmp_path: Path, old: str, new: str, faults: list[str]) -> None:
    """Tags that are unclosed, nested, stray, doubled or unnamed are each one fault with a line."""
    found = _faults_of(_module(tmp_path, text=TEXT.replace(old, new, 1)))
    assert found == [f"commonsformat.md: {fault}" for fault in faults]


@pytest.mark.parametrize(
    ("addition", "place"),
    [
        (
            '[[depends_on]]\nspec = "example.org/o/r/m"\nversion = "^0.2.0"\noverrides = { x = "ignore" }',
            "$.depends_on: not merged with example.org/o/r/m",
        ),
        ('extends = "example.org/o/r/parent"', "$.extends: not merged with example.org/o/r/parent"),
    ],
)
def test_a_module_that_needs_merging_is_refused(tmp_path: Path, addition: str, place: str) -> None:
    """A module with dependencies or a parent is not run half; the error names the remedy."""
    with pytest.raises(UnmergedSpecError) as caught:
        load_spec(_module(tmp_path, MANIFEST + addition))
    remedy = "run the resolver and pass the merged spec, or a closed module"
    assert str(caught.value) == f"{tmp_path}: commonsformat.toml: {place}: {remedy}"


@pytest.mark.parametrize(
    ("manifest", "evals", "fault"),
    [
        ('target = "slug"', 'target = "slig"', "$.target: targets another module than this one, 'slug'"),
        ('"^1.0.0"', '"soon"', "$.target_version: expected a version constraint"),
        ('"0.2"', '"0.9"', "$.commonsformat_evals: expected a format version that is"),
        ('"functional"', '"functional"\nseverity = "error"', "$.cases[0].severity: unknown key"),
    ],
)  # fmt: skip
def test_the_suite_must_fit_the_module(tmp_path: Path, manifest: str, evals: str, fault: str) -> None:
    """The header of a suite and the fields of its cases are checked like everything else."""
    (found,) = _faults_of(_module(tmp_path, evals=EVALS.replace(manifest, evals, 1)))
    assert found.startswith(f"evals.toml: {fault}")


def test_an_eval_pack_has_no_functional_cases(tmp_path: Path) -> None:
    """A module that contributes only adversarial cases may target another module, but fill no other table."""
    manifest = MANIFEST + 'contributes_only = ["adversarial"]'
    assert _faults_of(_module(tmp_path, manifest, evals=EVALS.replace('"slug"', '"other"', 1))) == [
        "evals.toml: $.cases: the manifest's contributes_only leaves no room for these cases",
        "evals.toml: $.generator_adversary: the manifest's contributes_only leaves no room for these cases",
    ]


def test_a_suite_outside_of_the_module_is_not_read(tmp_path: Path) -> None:
    """The manifest cannot point at files elsewhere."""
    manifest = MANIFEST.replace("./evals.toml", "../evals.toml")
    assert _faults_of(_module(tmp_path, manifest)) == [
        "commonsformat.toml: $.verifies: '../evals.toml' lies outside of the module"
    ]


def test_missing_files_are_faults_beside_the_others(tmp_path: Path) -> None:
    """A module without its text and its suite is told of both."""
    assert _faults_of(_module(tmp_path, text=None, evals=None)) == [
        "commonsformat.md: no such file",
        "evals.toml: no such file",
    ]
