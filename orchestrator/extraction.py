"""What of a chat answer is the candidate: an explicit rule, applied before the candidate is recorded.

`none`: the answer is the candidate, byte for byte. `fenced`: the one fenced code block, or the last of several
that is marked with the target language. `files`: every fenced block that names a path. A rule that does not
fit the answer refuses it with a reason; it never falls back to another rule and never repairs anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import attrs

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.candidate import Candidate
from orchestrator.excerpt import excerpt
from orchestrator.fences import FencedBlock, fenced_blocks
from orchestrator.paths import refuse_unsafe_paths

__all__ = ["EXTRACTIONS", "INSTRUCTIONS", "Extracted", "ExtractionRule", "extract"]

ExtractionRule: TypeAlias = Literal["none", "fenced", "files"]

EXTRACTIONS: Final[tuple[ExtractionRule, ...]] = ("none", "fenced", "files")

INSTRUCTIONS: Final = MappingProxyType(
    {
        "none": "",
        "fenced": "Answer with the complete implementation in one fenced code block (between ``` lines) and no other.",
        "files": (
            "Answer with the complete implementation, each file whole in a fenced code block of its own (between ``` "
            "lines) with its path behind the language, as in ```python package/module.py."
        ),
    }
)
"""How a prompt asks for what each rule takes; nothing to say where the answer is the candidate."""

_OTHER_NAMES: Final = MappingProxyType(
    {
        "c#": ("csharp", "cs"),
        "c++": ("cpp", "cc", "cxx"),
        "go": ("golang",),
        "javascript": ("js", "jsx", "mjs"),
        "python": ("py", "python3"),
        "ruby": ("rb",),
        "rust": ("rs",),
        "shell": ("sh", "bash"),
        "typescript": ("ts", "tsx"),
    }
)
"""How models also mark a block of a language."""

_PATH = r"[^\s`*\"'<>|:{}()\[\]]+"
_ATTRIBUTE: Final = re.compile(rf"(?:title|file|filename|path|name)=(?:\"({_PATH})\"|'({_PATH})'|({_PATH}))")
_CAPTION: Final = re.compile(
    rf"(?:#{{1,6}} +)?(?:(?:file|filename|path) *: *)?(?:`({_PATH})`|\*\*`?({_PATH}?)`?:?\*\*|({_PATH})) *:?",
    re.IGNORECASE,
)
_LONGEST_LINE: Final = 2_000
"""Longest info string or caption that is searched for a path, characters."""


@attrs.frozen
class Extracted:
    """A candidate, and the rule that took it from the answer with what it left out, in words."""

    candidate: Candidate
    rule: str


def extract(answer: str, rule: ExtractionRule, language: str) -> Extracted:
    """The candidate in a chat answer by the rule; pure.

    Raises GenerationError, which carries the answer, with a reason that a prompt can show; among them
    CandidateRefusedError for paths that cannot be written safely or are given twice.
    """
    if rule == "none":
        return Extracted(Candidate(answer), rule)
    try:
        blocks = _closed(fenced_blocks(answer))
        return _one(blocks, language) if rule == "fenced" else _several(blocks)
    except GenerationError as error:
        error.answer = answer
        raise


def _closed(blocks: tuple[FencedBlock, ...]) -> tuple[FencedBlock, ...]:
    if not blocks:
        raise GenerationError("the answer holds no fenced code block: put the code between ``` lines")
    if not blocks[-1].is_closed:
        raise GenerationError("the last fenced code block of the answer has no end: the answer may be cut off")
    return blocks


def _one(blocks: Sequence[FencedBlock], language: str) -> Extracted:
    chosen, rule = blocks[-1], "fenced"
    if len(blocks) > 1:
        marked = [block for block in blocks if _is_marked(block, language)]
        if not marked:
            raise GenerationError(
                f"the answer holds {len(blocks)} fenced code blocks and none is marked {language}: "
                f"give one block, or mark the one that counts with ```{language}"
            )
        chosen, rule = marked[-1], f"fenced: the last of {len(marked)} marked {language}, of {len(blocks)} blocks"
    if not chosen.text.strip():
        raise GenerationError("the fenced code block of the answer is empty")
    return Extracted(Candidate(chosen.text), rule)


def _is_marked(block: FencedBlock, language: str) -> bool:
    first = re.split(r"[\s:{,]", block.info[:_LONGEST_LINE], maxsplit=1)[0].casefold()
    wanted = language.casefold()
    return first == wanted or first in _OTHER_NAMES.get(wanted, ())


def _several(blocks: Sequence[FencedBlock]) -> Extracted:
    named = [(path, block.text) for block in blocks if (path := _path(block))]
    if not named:
        raise GenerationError(
            "no fenced code block of the answer names its file: write the path behind the language, "
            "as in ```python package/module.py, or alone on the line before the block"
        )
    refuse_unsafe_paths(path for path, _ in named)
    if not any(text.strip() for _, text in named):
        raise CandidateRefusedError("all files of the answer are empty")
    left_out = len(blocks) - len(named)
    rule = f"files: {left_out} blocks without a path left out" if left_out else "files"
    return Extracted(Candidate(files=dict(named)), rule)


def _path(block: FencedBlock) -> str:
    return _path_in_info(block.info[:_LONGEST_LINE]) or _path_in_caption(block.caption[:_LONGEST_LINE])


def _path_in_info(info: str) -> str:
    """`python a/b.py`, `python:a/b.py`, `python title="a/b.py"`, or the path alone."""
    named = _ATTRIBUTE.search(info)
    if named:
        return next(part for part in named.groups() if part)
    words = info.split()
    if len(words) == 1:
        language, colon, path = info.partition(":")
        return path if colon else language if _looks_like_path(language) else ""
    return words[1] if len(words) == 2 and _looks_like_path(words[1]) else ""  # noqa: PLR2004 -- language and path


def _path_in_caption(caption: str) -> str:
    """A line that is nothing but a path: plain, as a heading, in backticks or bold, perhaps with a colon."""
    found = _CAPTION.fullmatch(excerpt(caption))
    path = next((part for part in found.groups() if part), "") if found else ""
    return path if _looks_like_path(path) else ""


def _looks_like_path(word: str) -> bool:
    return "/" in word.strip("/") or "." in word.strip(".")
