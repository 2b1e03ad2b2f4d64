"""Files below a root: nothing outside is touched, no link is followed, and a file is whole or as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.plan.rootfiles import LARGEST_FILE, RootDirectory, RootFileError


def test_write_and_read(tmp_path: Path) -> None:
    """A file is made with its directories, replaced whole, and no temporary file stays."""
    root = RootDirectory(tmp_path / "studio")
    assert (root.read("a/b.md"), root.names("a")) == (None, ())
    root.write("a/b.md", b"one")
    root.write("a/b.md", b"two")
    assert (root.read("a/b.md"), root.names("a")) == (b"two", ("b.md",))
    assert [root.create("a/b.md", b"three"), root.create("a/c.md", b"four")] == [False, True]
    assert (root.read("a/b.md"), root.names("a")) == (b"two", ("b.md", "c.md"))


@pytest.mark.parametrize("path", ["../a", "/a", "a//b", "a/../b", "", ".", "a\0", "con", "a/.b", "a\\b", "x" * 1_001])
def test_paths_that_lead_elsewhere(tmp_path: Path, path: str) -> None:
    """A path that is not plain is refused before anything is opened."""
    root = RootDirectory(tmp_path)
    with pytest.raises(RootFileError, match="is no path below the root"):
        root.read(path)
    with pytest.raises(RootFileError, match="is no path below the root"):
        root.write(path, b"")
    with pytest.raises(RootFileError, match="is no path below the root"):
        root.names(path)
    assert list(tmp_path.iterdir()) == []


def test_links_are_not_followed(tmp_path: Path) -> None:
    """A link on the way is refused; one in the place of the file is replaced and its target left alone."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("secret")
    studio = tmp_path / "studio"
    studio.mkdir()
    (studio / "RUNS").symlink_to(outside)
    (studio / "STATE.md").symlink_to(outside / "secret")
    root = RootDirectory(studio)
    with pytest.raises(RootFileError, match="cannot be written"):
        root.write("RUNS/new", b"x")
    for path in ("RUNS/secret", "STATE.md"):
        with pytest.raises(RootFileError):
            root.read(path)
    root.write("STATE.md", b"mine")
    assert (outside / "secret").read_text() == "secret"
    assert os.listdir(outside) == ["secret"]
    assert (studio / "STATE.md").read_text() == "mine"
    assert root.create("STATE.md", b"other") is False


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    """Pipes are not opened, directories are no files, and a file is read up to its limit."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "long").write_bytes(b"x" * 11)
    root = RootDirectory(tmp_path)
    for path in ("pipe", "folder"):
        with pytest.raises(RootFileError, match="not a regular file"):
            root.read(path)
    with pytest.raises(RootFileError, match="too large"):
        root.read("long", limit=10)
    with pytest.raises(RootFileError, match="cannot be written"):
        root.write("folder", b"x")
    assert sorted(os.listdir(tmp_path)) == ["folder", "long", "pipe"]


def test_what_could_not_be_read_is_not_written(tmp_path: Path) -> None:
    """A file that is too large is refused whole, and what was there stays."""
    root = RootDirectory(tmp_path)
    root.write("a", b"before")
    with pytest.raises(RootFileError, match="at most 16000000 are kept"):
        root.write("a", bytes(LARGEST_FILE + 1))
    assert root.read("a") == b"before"


def test_text(tmp_path: Path) -> None:
    """What is no UTF-8 is said to be none."""
    (tmp_path / "a").write_bytes(b"ab\xff")
    with pytest.raises(RootFileError, match="is not UTF-8 at byte 2"):
        RootDirectory(tmp_path).read_text("a")
