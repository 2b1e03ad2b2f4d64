"""What the rules of extraction promise."""

from __future__ import annotations

from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.candidate import Candidate
from orchestrator.extraction import EXTRACTIONS, Extracted, ExtractionRule, extract
from orchestrator.fences import FencedBlock, fenced_blocks


def test_without_a_rule_the_answer_is_the_candidate() -> None:
    """Byte for byte, fences and all."""
    answer = "```python\r\nx\r\n```\n"
    assert extract(answer, "none", "python") == Extracted(Candidate(answer), "none")
    assert get_args(ExtractionRule) == EXTRACTIONS


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("```\nx\n```", "x\n"),
        ("Here:\n\n```python\r\nx\r\n\r\n```\r\nDone.", "x\r\n\r\n"),
        ("~~~ python\nx\n~~~~~\n", "x\n"),
        ("```json\nx\n```", "x\n"),
        ("````\n```python\nx\n```\n````", "```python\nx\n```\n"),
        ("```\nx\n~~~\n    ```\n``` y\n```", "x\n~~~\n    ```\n``` y\n"),
        ("  ```\n  def f():\n      x\n y\n  ```", "def f():\n    x\ny\n"),
        ("```\nx\x0cy\u2028z\n```", "x\x0cy\u2028z\n"),
        ("Use ```x``` or\n    ```\nso\n```python\ny\n```", "y\n"),
    ],
)
def test_the_only_block_is_the_candidate_however_it_is_marked(answer: str, text: str) -> None:
    """By the rules of CommonMark; inline code and indented fences are no blocks."""
    assert extract(answer, "fenced", "python") == Extracted(Candidate(text), "fenced")


def test_of_several_blocks_the_last_that_is_marked_with_the_language_counts() -> None:
    """Models think first and answer last; the rule says how many there were."""
    answer = "```py\n1\n```\n```PYTHON {.x}\n2\n```\n```bash\n3\n```\n"
    assert extract(answer, "fenced", "Python") == Extracted(
        Candidate("2\n"), "fenced: the last of 2 marked Python, of 3 blocks"
    )


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("x = 1", "no fenced code block"),
        ("", "no fenced code block"),
        ("```\nx", "has no end"),
        ("```\nx\n```\n```python", "has no end"),
        ("```\n \n```", "is empty"),
        ("```\n```", "is empty"),
        ("```\nx\n```\n```rust\ny\n```", "holds 2 fenced code blocks and none is marked python"),
    ],
)
def test_an_answer_that_does_not_fit_is_refused_with_the_fix(answer: str, reason: str) -> None:
    """Nothing is guessed; the answer goes along with the reason."""
    with pytest.raises(GenerationError, match=reason) as caught:
        extract(answer, "fenced", "python")
    assert caught.value.answer == answer


@pytest.mark.parametrize(
    "head",
    [
        "```python pack/a.py",
        "```python:pack/a.py",
        '```python title="pack/a.py"',
        "```python {file=pack/a.py}",
        "```pack/a.py",
        "pack/a.py\n```python",
        "`pack/a.py`\n```",
        "### `pack/a.py`\n\n```python",
        "**pack/a.py**:\n```python",
        "**`pack/a.py`**\n```python",
        "File: pack/a.py\n```python",
        "Filename: `pack/a.py`:\n```python",
    ],
)
def test_files_are_named_beside_the_language_or_on_the_line_before(head: str) -> None:
    """Every way in which models name them."""
    answer = f"Two files.\n\n{head}\nx\n```\n\n```text b.txt\ny\n```\n"
    assert extract(answer, "files", "python") == Extracted(
        Candidate(files={"pack/a.py": "x\n", "b.txt": "y\n"}), "files"
    )


def test_blocks_without_a_path_are_left_out_and_counted() -> None:
    """How to install it is no file of the candidate."""
    answer = "Install it.\n```sh\npip\n```\n```python a.py\nx\n```\nThen:\n```sh\nrun\n```"
    assert extract(answer, "files", "python") == Extracted(
        Candidate(files={"a.py": "x\n"}), "files: 2 blocks without a path left out"
    )


@pytest.mark.parametrize(
    ("paths", "reason"),
    [
        (["../a.py"], "as a part of its path"),
        (["/etc/passwd"], "absolute path"),
        (["a/./b.py"], "as a part of its path"),
        (["a\\b.py"], "backslash"),
        (["con.py"], "reserved name"),
        (["a.py", "a.py"], "has the same path"),
        (["a.py", "A.py"], "has the same path"),
        (["a.b/c.py", "a.b"], "is a directory of"),
        ([f"{number}.py" for number in range(1_001)], "at most 1000 are taken"),
    ],
)
def test_unsafe_and_repeated_paths_are_refused(paths: list[str], reason: str) -> None:
    """Before anything is written anywhere."""
    answer = "".join(f"```python {path}\nx\n```\n" for path in paths)
    with pytest.raises(CandidateRefusedError, match=reason) as caught:
        extract(answer, "files", "python")
    assert caught.value.answer == answer


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("```python\nx\n```", "names its file"),
        ("See also.\n```python\nx\n```", "names its file"),
        ("```python a.py\nx", "has no end"),
        ("```python a.py\n```", "all files of the answer are empty"),
        ("none", "no fenced code block"),
    ],
)
def test_an_answer_without_files_is_refused(answer: str, reason: str) -> None:
    """With what to write instead."""
    with pytest.raises(GenerationError, match=reason):
        extract(answer, "files", "python")


@pytest.mark.parametrize("rule", ["fenced", "files"])
@pytest.mark.parametrize(
    "hostile",
    [
        "`" * 10_000_000,
        "```\n" * 1_000_001,
        "`" * 5_000_000 + "x`",
        " " * 5_000_000 + "```\n",
        "~`" * 3_000_000,
        "```\n" + "`` \n" * 1_000_000,
        "".join("`" * length + "\n" for length in range(3, 4_000)),
        "**" * 2_000_000 + "\n```\nx\n",
        "`a." * 1_000_000 + "\n```\nx\n",
    ],
    ids=range(9),
)
def test_a_hostile_answer_costs_linear_time(hostile: str, rule: Any) -> None:
    """Megabytes of fences, runs and marks end in a reason; anything quadratic would outlast the test run."""
    with pytest.raises(GenerationError):
        extract(hostile, rule, "python")


TEXTS = st.text(st.sampled_from("`~ \n\r\tx#:*/.\x0c\u2028"), max_size=60) | st.text(max_size=60)


@given(st.lists(TEXTS, min_size=1, max_size=5))
def test_what_is_fenced_comes_out_as_it_went_in(texts: list[str]) -> None:
    """With a fence longer than any run in the text, every text survives."""
    written = [text if text.endswith("\n") or not text else text + "\n" for text in texts]
    answer = "".join(f"Block.\n{'`' * 99}python f{n}.py\n{text}{'`' * 99}\n" for n, text in enumerate(written))
    assert fenced_blocks(answer) == tuple(
        FencedBlock(f"python f{n}.py", "Block.", text, is_closed=True) for n, text in enumerate(written)
    )
    if any(text.strip() for text in written):
        files = {f"f{n}.py": text for n, text in enumerate(written)}
        assert extract(answer, "files", "python").candidate == Candidate(files=files)


@given(TEXTS, st.sampled_from(EXTRACTIONS), st.sampled_from(["python", "c++", ""]))
def test_any_answer_gives_a_candidate_or_a_reason(answer: str, rule: ExtractionRule, language: str) -> None:
    """Nothing else is raised, and what comes out stood in the answer."""
    found = extracted(answer, rule, language)
    if isinstance(found, GenerationError):
        assert (bool(found.reason), found.answer) == (True, answer)
    else:
        texts = (found.candidate.text, *found.candidate.files.values())
        assert [line for text in texts for line in text.split("\n") if line not in answer] == []


def extracted(answer: str, rule: ExtractionRule, language: str) -> Extracted | GenerationError:
    """What a rule makes of an answer."""
    try:
        return extract(answer, rule, language)
    except GenerationError as error:
        return error
