"""The epic on disk: which stories it has, what each asks for, and the suites that judge them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import attrs

from orchestrator.documents import read_document, read_text
from orchestrator.errors import DocumentError
from orchestrator.faults import Fault
from orchestrator.spec import Constraint, MergedSpec, load_spec
from orchestrator.structuring import structure

__all__ = ["SHIPPED", "Epic", "load_epic"]

SHIPPED: Final = Path(__file__).parent / "epic"


@attrs.frozen(kw_only=True)
class EpicFile:
    """`epic.yaml`."""

    id: str
    title: str
    stories: tuple[str, ...]


@attrs.frozen(kw_only=True)
class Epic:
    """An epic: a directory with `epic.yaml`, `stories/NAME.toml` and `suites/test_NAME.py.txt`."""

    directory: Path
    id: str
    title: str
    stories: tuple[str, ...]

    def spec(self, story: str, notes: Iterable[str] = ()) -> MergedSpec:
        """What a story asks for, what a review found to be fixed as constraints beside its own."""
        spec = load_spec(self.directory / "stories" / f"{story}.toml")
        found = tuple(Constraint(f"review-{number}", note) for number, note in enumerate(notes, 1))
        return attrs.evolve(spec, constraints=(*spec.constraints, *found))

    def suite(self, story: str) -> dict[str, str]:
        """The files of a story's suite."""
        name = f"test_{story}.py"
        return {name: read_text(self.directory / "suites" / f"{name}.txt")}


def load_epic(path: str) -> Epic:
    """The epic in a directory, or the shipped one; DocumentError for one that is not whole."""
    directory = Path(path) if path else SHIPPED
    source = directory / "epic.yaml"
    file = structure(read_document(source), EpicFile, str(source))
    epic = Epic(directory=directory, **attrs.asdict(file))
    lacking = [
        Fault(f"$.stories[{index}]", f"{needed} is not there: write it, or leave the story out")
        for index, story in enumerate(epic.stories)
        for needed in (directory / "stories" / f"{story}.toml", directory / "suites" / f"test_{story}.py.txt")
        if not needed.is_file()
    ]
    if lacking or not epic.stories:
        raise DocumentError(str(source), tuple(lacking) or (Fault("$.stories", "is empty: name a story"),))
    return epic
