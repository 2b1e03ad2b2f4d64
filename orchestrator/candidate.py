"""A candidate: what the generator made, one text or several files, never altered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from orchestrator_events.blob import Blob

__all__ = ["FILES", "TEXT", "Candidate"]

TEXT = "text"
FILES = "files"


set_field = object.__setattr__
NO_FILES: Mapping[str, str] = MappingProxyType({})


@attrs.frozen(eq=False, init=False)
class Candidate:
    """One text, or `files` (relative POSIX path to text); exactly as generated (contract 1)."""

    text: str = ""
    files: Mapping[str, str] = NO_FILES

    def __init__(self, text: str = "", files: Mapping[str, str] = NO_FILES) -> None:
        if files:
            if text:
                raise ValueError("a candidate is one text or several files, not both")
            files = MappingProxyType(dict(sorted(files.items())))
        set_field(self, "text", text)
        set_field(self, "files", files)

    @property
    def form(self) -> str:
        """`text` or `files`."""
        return FILES if self.files else TEXT

    @property
    def blob(self) -> Blob:
        """What the journal stores: the text, or a JSON object of path to text."""
        if not self.files:
            return Blob(self.text)
        return Blob(json.dumps(dict(self.files), ensure_ascii=False, separators=(",", ":")))

    @property
    def digest(self) -> str:
        """Lower-case hexadecimal SHA-256 of the stored form."""
        return self.blob.digest

    @classmethod
    def from_blob(cls, blob: Blob, form: str) -> Candidate:
        """The candidate that a record names."""
        text = blob.data.decode() if blob.text is None else blob.text
        return cls(files=json.loads(text)) if form == FILES else cls(text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Candidate) and (self.text, self.files) == (other.text, other.files)

    def __hash__(self) -> int:
        return hash((self.text, *self.files.items()))
