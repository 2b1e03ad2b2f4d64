"""Reading files: three formats, one kind of data, and every refusal names its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.documents import MAXIMUM_BYTES, parse_document, read_document
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault

TEXTS = {
    ".json": '{"a": {"b": [1, 2.5, true, null, "é"]}}',
    ".yaml": "a:\n  b: [1, 2.5, true, null, é]\n",
    ".yml": "a: {b: [1, 2.5, true, ~, 'é']}\n",
}

INEXACT = "integer beyond 2**53 - 1, which JSON does not hold exactly: quote it"
ANCHORED = "anchors are not accepted: write the value where it is used"


def _faults_of(text: str, suffix: str) -> tuple[Fault, ...]:
    with pytest.raises(DocumentError) as caught:
        parse_document(text, suffix, "file")
    return caught.value.faults


@pytest.mark.parametrize("suffix", sorted(TEXTS))
def test_formats_give_the_same_data(tmp_path: Path, suffix: str) -> None:
    """JSON and YAML give the same data for the same content."""
    file = tmp_path / f"file{suffix}"
    file.write_text(TEXTS[suffix])
    assert read_document(file) == {"a": {"b": [1, 2.5, True, None, "é"]}}


def test_toml_gives_plain_data(tmp_path: Path) -> None:
    """TOML gives tables, arrays, numbers and strings; the suffix may be in capitals."""
    file = tmp_path / "file.TOML"
    file.write_text('[a]\nb = [1, 2.5, true, "é"]\n')
    assert read_document(str(file)) == {"a": {"b": [1, 2.5, True, "é"]}}


@pytest.mark.parametrize(
    ("suffix", "text", "fault"),
    [
        (".json", '{"a": 1]', Fault("line 1, column 8", "Expecting ',' delimiter")),
        (".json", '{"a": {"b": 1, "b": 2}}', Fault("$.a", "key 'b' is given more than once: keep one")),
        (".json", "9007199254740992", Fault("$", INEXACT)),
        (".json", "1" * 5000, Fault("$", INEXACT)),
        (".json", "[" * 100_000, Fault("", "nested deeper than 64 levels: flatten it")),
        (".toml", "a = 1\nb =\n", Fault("line 2, column 4", "Invalid value")),
        (".toml", 'a = "', Fault("end of document", "Unterminated string")),
        (".toml", "a = 1979-05-27", Fault("$.a", "date is not a JSON value: write it as a quoted string")),
        (".toml", f"a = {'1' * 5000}", Fault("", "an integer has thousands of digits: quote it")),
        (".toml", f"a = {'[' * 5000}", Fault("", "nested deeper than 64 levels: flatten it")),
        (".yaml", "a:\nb:\na:\n", Fault("line 3, column 1", "key 'a' is given more than once: keep one")),
        (".yaml", "a: &x 1\n", Fault("line 1, column 4", ANCHORED)),
        (".yaml", "a: *x\n", Fault("line 1, column 4", "aliases are not accepted: write the value out")),
        (".yaml", "<<: {}\n", Fault("line 1, column 1", "merge keys are not accepted: write the keys out")),
        (".yaml", "1: a", Fault("line 1, column 1", "a key must be a string: quote it")),
        (".yaml", "? [a]\n: b\n", Fault("line 1, column 3", "a key must be a string: quote it")),
        (".yaml", "a: !!set {}\n", Fault("line 1, column 4", "tags are not accepted: write plain values")),
        (".yaml", "[" * 100_000, Fault("line 1, column 65", "nested deeper than 64 levels: flatten it")),
        (".yaml", f"a: {'1' * 5000}\n", Fault("", "an integer has thousands of digits: quote it")),
        (".yaml", "\x01", Fault("character 0", "special characters are not allowed")),
        (
            ".yaml",
            "a: 1\n---\nb: 2\n",
            Fault("line 2, column 1", "expected a single document in the stream, but found another document"),
        ),
    ],
)  # fmt: skip
def test_refusals_name_their_place(suffix: str, text: str, fault: Fault) -> None:
    """What is not plain data is refused with its line or its path, whatever its size."""
    assert _faults_of(text, suffix) == (fault,)


def test_all_values_that_are_not_json_are_named_at_once() -> None:
    """NaN, infinity, an overflowing number and a lone surrogate are each named by path."""
    faults = _faults_of('{"a": NaN, "b": [Infinity, 1e999], "c d": "\\ud800"}', ".json")
    assert [fault.path for fault in faults] == ["$.a", "$.b[0]", "$.b[1]", "$['c d']"]


def test_depth_limit_is_exact() -> None:
    """64 levels are accepted in every format, 65 in none."""
    assert parse_document("[" * 64 + "]" * 64, ".json", "file") == parse_document("[" * 64 + "]" * 64, ".yaml", "file")
    assert _faults_of("[" * 65 + "]" * 65, ".json")[0].message == _faults_of("[" * 65 + "]" * 65, ".yaml")[0].message


@pytest.mark.parametrize(
    "text",
    [
        f"{'a.' * 400_000}a = 1",
        f"{'a . ' * 65}a = 1",
        f'x = {{ y = """z""""", {"b." * 400_000}b = 1 }}',
        "x = '\\'\n[" + '"a.b".' * 100_000 + "c]",
    ],
    ids=["bare key", "spaced key", "inline table", "table header"],
)
def test_toml_keys_cannot_eat_the_memory(text: str) -> None:
    """A key of very many dots is refused before the parser multiplies it, wherever it stands."""
    assert _faults_of(text, ".toml") == (Fault("", "nested deeper than 64 levels: flatten it"),)


def test_dots_in_toml_strings_are_no_depth() -> None:
    """Only keys nest: dots in strings, comments and numbers are free."""
    dots = "a." * 200
    text = f"""
    a.b = "{dots}" # {dots}
    c = '{dots}'
    d = \'\'\'
    {dots}\'\'\'
    e = [{"1.5, " * 200}]
    """
    expected = {"a": {"b": dots}, "c": dots, "d": f"    {dots}", "e": [1.5] * 200}
    assert parse_document(text, ".toml", "file") == expected


def test_yaml_words_are_strings_unless_json_has_them() -> None:
    """The words that YAML 1.1 turns into something else stay strings."""
    text = "a: no\nb: on\nc: 1:30\nd: 010\ne: 2024-01-01\nf: .inf\ng: 0x10\nh: 1_000\nyes: '<<'\n"
    expected = {
        "a": "no",
        "b": "on",
        "c": "1:30",
        "d": "010",
        "e": "2024-01-01",
        "f": ".inf",
        "g": "0x10",
        "h": "1_000",
        "yes": "<<",
    }
    assert parse_document(text, ".yaml", "file") == expected


def test_yaml_numbers_and_constants_are_those_of_json() -> None:
    """JSON's numbers, true, false and null are what they are in JSON, also in the Python spelling."""
    data = parse_document("[0, -1, 1.5, -2.5e-3, 1e3, true, False, null, ~, ]", ".yaml", "file")
    assert data == [0, -1, 1.5, -0.0025, 1000.0, True, False, None, None]


def test_unusable_files_are_named_with_the_reason(tmp_path: Path) -> None:
    """A missing file, a directory, a strange suffix, bytes that are no text and a large file are errors."""
    (tmp_path / "directory.json").mkdir()
    (tmp_path / "latin.json").write_bytes(b'"\xe9"')
    (tmp_path / "large.json").write_bytes(b'"' + b"a" * MAXIMUM_BYTES + b'"')
    found = {}
    for name in ("missing.json", "directory.json", "latin.json", "large.json", "file.tml"):
        with pytest.raises(DocumentError) as caught:
            read_document(tmp_path / name)
        found[name] = str(caught.value).removeprefix(f"{tmp_path / name}: ")
    assert found == {
        "missing.json": "no such file",
        "directory.json": "is a directory, expected a file",
        "latin.json": "not UTF-8: byte 1 cannot be decoded; save the file as UTF-8",
        "large.json": "larger than 1000000 bytes: split it",
        "file.tml": "unknown kind of file '.tml': name it with one of .json, .toml, .yaml, .yml "
        "(did you mean '.toml'?)",
    }


def test_error_lists_every_fault_on_a_line_of_its_own() -> None:
    """The text of an error is one line per fault: source, place, message, suggestion."""
    error = DocumentError("loop.toml", (Fault("$.a", "unknown key", "b"), Fault("", "empty")))
    assert str(error) == "loop.toml: $.a: unknown key (did you mean 'b'?)\nloop.toml: empty"
