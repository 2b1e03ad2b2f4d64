"""Where paths lie, judged by their text alone: nothing here looks at a file system."""

from __future__ import annotations

import posixpath

__all__ = ["absolute", "is_within", "normal"]


def absolute(path: str, start: str) -> str:
    """The path from the root, without `.` and `..`; a relative one is taken from `start`, which is absolute."""
    return normal(posixpath.join(start, path))


def normal(path: str) -> str:
    """The path without `.`, `..` where they can be taken out, and repeated slashes."""
    # POSIX lets two leading slashes mean something of their own; on the systems we run on, they do not.
    plain = posixpath.normpath(path)
    return plain[1:] if plain.startswith("//") else plain


def is_within(path: str, root: str) -> bool:
    """Whether a normal, absolute path is `root` or below it; `/application` is not below `/app`."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")
