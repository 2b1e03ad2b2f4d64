"""Text that a record names by its digest instead of carrying it."""

from __future__ import annotations

from hashlib import sha256

import attrs

from orchestrator_events.errors import EventError

__all__ = ["Blob"]


@attrs.define(eq=False, repr=False)
class Blob:
    """A text and, computed on first use, its size and SHA-256.

    Records carry `{"bytes": …, "sha256": …}`; the journal stores the text beside them in the same
    transaction. A blob read from a record alone (an export without its blobs) has `text` None.
    """

    text: str | None
    known_digest: str | None = None
    known_size: int | None = None
    encoded: bytes | None = attrs.field(init=False, default=None)
    named: str | None = attrs.field(init=False, default=None)
    free_of: object | None = attrs.field(init=False, default=None)
    """The stamp of the secrets that it was last looked through for: none of them is in it."""

    @property
    def data(self) -> bytes:
        """The UTF-8 bytes; raises EventError when only the digest is known, or for a lone surrogate."""
        if self.encoded is None:
            if self.text is None:
                message = f"the text of blob {self.known_digest} was not loaded: read it from its journal"
                raise EventError(message)
            try:
                self.encoded = self.text.encode()
            except UnicodeEncodeError as error:
                message = f"a text holds a lone surrogate at character {error.start}: decode text strictly"
                raise EventError(message) from error
        return self.encoded

    @property
    def digest(self) -> str:
        """Lower-case hexadecimal SHA-256 of the bytes."""
        if self.known_digest is None:
            self.known_digest = sha256(self.data).hexdigest()
        return self.known_digest

    @property
    def size(self) -> int:
        """Length in bytes."""
        return len(self.data) if self.known_size is None else self.known_size

    @property
    def reference(self) -> str:
        """What a record holds of it; made once, since a conversation names each of its messages again and again."""
        if self.named is None:
            self.named = f'{{"bytes":{self.size},"sha256":"{self.digest}"}}'
        return self.named

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Blob):
            return NotImplemented
        if self.text is not None and other.text is not None:
            return self.text == other.text
        return self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        return f"Blob({self.digest[:12]}, {self.size} bytes)"
