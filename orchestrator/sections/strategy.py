"""`[strategy]` and `[augmentations]`: what changes from attempt to attempt, and what stands beside the spec."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import attrs

from orchestrator.documents import read_text
from orchestrator.prompt import Augmentations, CodeSeed
from orchestrator.spec import Example

__all__ = ["AugmentationsSection", "StrategySection"]


@attrs.frozen(kw_only=True)
class StrategySection:
    """`[strategy]`, or one of several `[[strategy]]` that are combined."""

    kind: Literal["failure-feedback", "naive-retry", "parameter-variation", "seed-mixing"] = "failure-feedback"
    values: dict[str, tuple[Any, ...]] = attrs.field(factory=dict[str, tuple[Any, ...]])
    """Of parameter-variation: each parameter with the values it takes in turn."""
    labels: tuple[str, ...] = attrs.field(default=())
    """Of seed-mixing: the code seeds to take in turn; by default all."""

    @values.validator
    def _belongs_to_variation(self, _attribute: object, values: Mapping[str, Any]) -> None:
        if self.kind == "parameter-variation" and not (values and all(values.values())):
            raise ValueError("parameter-variation needs parameters, each with at least one value")
        if self.kind != "parameter-variation" and values:
            raise ValueError(f"{self.kind} takes no values: they belong to parameter-variation")

    @labels.validator
    def _belongs_to_mixing(self, _attribute: object, labels: tuple[str, ...]) -> None:
        if self.kind != "seed-mixing" and labels:
            raise ValueError(f"{self.kind} takes no labels: they belong to seed-mixing")


@attrs.frozen(kw_only=True)
class AugmentationsSection:
    """`[augmentations]`: context beside the spec, as files."""

    examples: tuple[Path, ...] = ()
    """One example a file, called by the file's name without its suffix."""
    style: tuple[Path, ...] = ()
    """Style preferences, one a line; a leading `- ` is left out."""
    seeds: tuple[Path, ...] = ()
    """One code seed a file, labelled by the file's name without its suffix."""

    def augmentations(self) -> Augmentations:
        """The files' texts; raises DocumentError for one that cannot be read."""
        lines = [line.strip() for path in self.style for line in read_text(path).splitlines()]
        examples = [Example(path.stem, read_text(path)) for path in self.examples]
        seeds = [CodeSeed(path.stem, read_text(path)) for path in self.seeds]
        style = [line.removeprefix("- ") for line in lines if line]
        return Augmentations(examples=tuple(examples), style=tuple(style), seeds=tuple(seeds))
