"""Markdown: a report for people, in which no text of others does anything."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from markdown_it import MarkdownIt

from orchestrator.excerpt import excerpt
from orchestrator.exports.inertmarkdown import block, span
from orchestrator.exports.markdown import export_markdown
from orchestrator.run import Run

REPORT = """\
# Run `7f3a`: exhausted

This is a workflow result; not a verification for deployment.

- Spec: `colours`, `sha256:DIGEST`
- Generator: `NAME`
- Evaluator: `NAME`
- Strategy: `failure-feedback`
- Language: `python`
- Started 2026-01-01T00:00:00.000Z, last record 2026-01-01T00:00:06.000Z

## Outcome

The limit `attempts` was reached after 3 attempts: `3 of 3 attempts used`

## Isolation

- Required: `none`
- Generator: `none (in-process)`; nothing holds it
  - Not enforced: `files`, `network`, `memory`, `processes`, `environment`, `end of a call that hangs`
- Evaluator: `none (in-process)`; nothing holds it
  - Not enforced: `files`, `network`, `memory`, `processes`, `environment`, `end of a call that hangs`

Integrity: host; the evaluator does not say who held the judge.

## Budget

| limit | used | of |
| --- | ---: | ---: |
| attempts | 3 | 3 |
| active time | 6.0s | unlimited |
| tokens | 54 | unlimited |
| input tokens | 33 | unlimited |
| output tokens | 21 | unlimited |
| money | 0.000009 | unlimited |
| repeats in a row | 0 | 3 |

## Attempts

| attempt | prompt | answer | candidate | generation | evaluation | passed | not passed | integrity | |
| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | --- | --- |
| 1 | `DIGEST` |  | `DIGEST` | 2.0s | <1ms | 1 | 2 | host | closest |
| 2 | `DIGEST` |  | `DIGEST` | 2.0s | <1ms | 1 | 2 | host |  |
| 3 | `DIGEST` |  | `DIGEST` | 2.0s | <1ms | 1 | 2 |  | same as attempt 1 |

## Cases that attempt 1 did not pass

- `palette::green` failed:

```
no
not so
```

- `only` failed:

```
no
not so
```

## Candidate of attempt 1

SHA-256 `DIGEST`

```python
red blue
```

## Record

- COUNT records, the last with digest `DIGEST`
- Lifecycle `run`, table digest `DIGEST`

Keep number and digest: whoever holds them can tell whether the record was cut or rewritten.
"""


def test_a_report_in_full(run_called: Callable[[str], Run]) -> None:
    """Outcome, budget, attempts, failing cases, candidate and record, in this order."""
    text = export_markdown(run_called("exhausted"))
    text = re.sub(r"\b[0-9a-f]{64}\b|`[0-9a-f]{12}`", lambda found: "`DIGEST`" if "`" in found[0] else "DIGEST", text)
    text = re.sub(r"(Generator|Evaluator): `[^`(]+`", r"\1: `NAME`", text)
    assert re.sub(r"\d+ records", "COUNT records", text) == REPORT


def test_every_ending_is_told(ended: Run) -> None:
    """Every ending gives a report that ends in a newline and begins with the run and its state."""
    text = export_markdown(ended)
    assert text.startswith(f"# Run `7f3a`: {ended.state}\n")
    assert text.endswith("rewritten.\n")


def test_hostile_texts_stay_texts(run_called: Callable[[str], Run]) -> None:
    """Nothing that others wrote becomes HTML, a link, a picture or a heading; all of it is code."""
    text = export_markdown(run_called("hostile"))
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    kinds = {token.type for token in (*tokens, *inline)}
    assert kinds & {"html_block", "html_inline", "link_open", "image", "s_open", "em_open"} == set()
    plain = [child.content for child in inline if child.type == "text"]
    assert [each for each in plain if re.search(r"[<>@]|://|www|script", each.replace("<1ms", ""))] == []
    headings = [tokens[index + 1].content for index, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == [
        "Run `7f3a`: exhausted", "Outcome", "Isolation", "Budget", "Attempts", "Cases that attempt 1 did not pass",
        "Candidate of attempt 1", "Record",
    ]  # fmt: skip
    assert [each for each in "\x1b\x00\x08\u202e" if each in text] == []


def test_the_candidate_is_whole(run_called: Callable[[str], Run], hostile_text: str) -> None:
    """The closest candidate stands in one fenced block, whatever fences it holds."""
    tokens = MarkdownIt("commonmark").parse(export_markdown(run_called("hostile")))
    blocks = [token.content for token in tokens if token.type == "fence" and token.info == "python"]
    assert blocks == [excerpt(hostile_text) + "\n"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", ""),
        ("plain", "`plain`"),
        ("two\n on\u2028one", "`two on one`"),
        ("a ` b", "``a ` b``"),
        ("`a``", "``` `a`` ```"),
        ("x" * 20, "`xxxxxxxxx…`"),
    ],
)
def test_spans(text: str, written: str) -> None:
    """A span is one line, bounded, with more backticks around it than in it."""
    assert span(text, 10) == written


def test_blocks() -> None:
    """A block's fence is longer than any in it, and its language is one word."""
    assert block("a\n````\nb", "c++ <b>\n") == "`````c++b\na\n````\nb\n`````\n"
    assert block("") == "```\n```\n"
