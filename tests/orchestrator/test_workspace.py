"""What writing and reading files of untrusted programs promises."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from orchestrator.adapter_errors import CandidateRefusedError, GenerationError
from orchestrator.paths import LONGEST_NAME, MOST_FILES, refuse_unsafe_paths
from orchestrator.workspace import (
    UnsafeFileError,
    copy_directory,
    fresh_directory,
    read_files,
    read_regular_file,
    write_files,
)


def tree(directory: Path) -> dict[str, bytes]:
    """Every file below a directory."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_files_are_written_byte_for_byte(tmp_path: Path) -> None:
    """Directories are made, line ends and characters stay."""
    write_files({"a.py": "x\r\n", "deep/er/ä.txt": "ü\n"}, tmp_path)
    assert tree(tmp_path) == {"a.py": b"x\r\n", "deep/er/ä.txt": "ü\n".encode()}


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "../up",
        "a/../../up",
        "a//b",
        "./a",
        "a/",
        "a\\b",
        "nul\x00",
        "line\nfeed",
        "\x1b[2J",
        "C\x85",
        "CON",
        "sub/aux.txt",
        "\ud800",
        "n" * (LONGEST_NAME + 1),
        "d/" * 600 + "f",
    ],
)
def test_an_unsafe_path_is_refused_before_anything_is_written(path: str, tmp_path: Path) -> None:
    """Nothing of such a candidate reaches the disk, and the message can be shown anywhere."""
    inside = tmp_path / "inside"
    inside.mkdir()
    with pytest.raises(CandidateRefusedError) as caught:
        write_files({"good.py": "x", path: "x"}, inside)
    assert str(caught.value).isprintable()
    assert tree(tmp_path) == {}


@pytest.mark.parametrize(
    "paths",
    [
        ("a", "A"),
        ("Stra\u00dfe", "STRASSE"),
        ("\u00e9", "e\u0301"),
        ("a", "a/b"),
        ("a/b", "a"),
        ("d/x", "D/X"),
    ],
)
def test_paths_that_clash_somewhere_are_refused(paths: tuple[str, str]) -> None:
    """What is one file on some file system is one file here, and no file is a directory too."""
    with pytest.raises(CandidateRefusedError):
        refuse_unsafe_paths(paths)


def test_too_many_files_are_refused() -> None:
    """A candidate has at most a thousand files."""
    refuse_unsafe_paths(f"f{number}" for number in range(MOST_FILES))
    with pytest.raises(CandidateRefusedError, match="1001 files"):
        refuse_unsafe_paths(f"f{number}" for number in range(MOST_FILES + 1))


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    """Neither under the same name, nor under one that differs in case, nor by a link that waits there."""
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/Test.py").write_text("kept")
    os.symlink("/tmp/elsewhere", tmp_path / "link")
    for path in ("suite/Test.py", "Suite/test.PY", "suite", "suite/Test.py/x", "link", "link/x"):
        with pytest.raises(CandidateRefusedError):
            write_files({path: "new"}, tmp_path)
    assert tree(tmp_path) == {"suite/Test.py": b"kept"}


def test_text_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    """A lone surrogate is the candidate's fault."""
    with pytest.raises(CandidateRefusedError, match="lone surrogate"):
        write_files({"a": "fine", "b": "\ud800"}, tmp_path)
    assert tree(tmp_path) == {}


@given(some.lists(some.text(min_size=1, max_size=12), max_size=4))
def test_any_path_is_refused_or_stays_inside(paths: list[str]) -> None:
    """Whatever a generator names: it is refused, or exactly that file appears."""
    files = dict.fromkeys(paths, "x")
    with fresh_directory() as directory:
        try:
            write_files(files, directory)
        except CandidateRefusedError:
            files = {}
        assert set(tree(directory)) == set(files)


def test_what_a_generator_leaves_is_read_in_order(tmp_path: Path) -> None:
    """All regular files below the directory, empty ones too."""
    write_files({"b.py": "b", "a/x.py": "ü", "a/y.py": ""}, tmp_path)
    assert list(read_files(tmp_path, 100).items()) == [("b.py", "b"), ("a/x.py", "ü"), ("a/y.py", "")]


def make_socket(path: Path) -> None:
    """Leave a socket."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


@pytest.mark.parametrize(
    ("leave", "reason"),
    [
        (lambda path: os.symlink("/etc/passwd", path), "not a regular file"),
        (lambda path: os.symlink("/etc", path), "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (make_socket, "not a regular file"),
        (lambda path: path.symlink_to("absent"), "not a regular file"),
        (lambda path: os.link(path.parent / "good", path), "hard link"),
        (lambda path: path.write_bytes(b"\xff"), "not UTF-8 at byte 0"),
        (lambda path: path.write_bytes(b"x" * 101), "too large"),
        (lambda path: os.truncate(os.open(path, os.O_CREAT | os.O_RDWR), 10**12), "too large"),
    ],
    ids=["link", "folder link", "pipe", "socket", "dangling", "hard link", "bytes", "large", "sparse"],
)
def test_what_is_no_plain_text_file_is_refused(leave: Callable[[Path], object], reason: str, tmp_path: Path) -> None:
    """Nothing outside is read, nothing blocks, nothing large is loaded."""
    (tmp_path / "good").write_text("x")
    leave(tmp_path / "bad")
    with pytest.raises(GenerationError, match=reason):
        read_files(tmp_path, 100)


def test_all_files_together_have_one_limit(tmp_path: Path) -> None:
    """Many small files are as bounded as one large one."""
    write_files({"a": "x" * 60, "b": "x" * 60}, tmp_path)
    with pytest.raises(GenerationError, match="too large"):
        read_files(tmp_path, 100)


def test_no_link_is_followed_on_the_way_to_a_file(tmp_path: Path) -> None:
    """A directory that was replaced by a link leads nowhere."""
    write_files({"real/report": "x"}, tmp_path)
    os.symlink("real", tmp_path / "folder")
    assert read_regular_file(tmp_path, "real/report", 10) == b"x"
    with pytest.raises(OSError, match=r"Not a directory|symbolic links"):
        read_regular_file(tmp_path, "folder/report", 10)
    with pytest.raises(UnsafeFileError):
        read_regular_file(tmp_path, "folder", 10)
    with pytest.raises(FileNotFoundError):
        read_regular_file(tmp_path, "absent/report", 10)


def test_a_fresh_directory_is_removed_whatever_is_in_it() -> None:
    """Locked directories and links in it do not keep it; what links point to stays."""
    with fresh_directory() as outside, fresh_directory() as directory:
        (outside / "kept").write_text("x")
        locked = directory / "a/b"
        locked.mkdir(parents=True)
        (locked / "file").write_text("x")
        os.symlink(outside, directory / "link")
        locked.chmod(0)
        directory.chmod(0o500)
        inside = directory
    assert not inside.exists()
    assert not outside.exists()


def test_a_copied_directory_can_be_written_to(tmp_path: Path) -> None:
    """A suite that is read-only on disk still takes a candidate beside it."""
    source = tmp_path / "source"
    write_files({"tests/test_a.py": "x"}, source)
    (source / "tests").chmod(0o500)
    copy_directory(source, tmp_path / "copy")
    (source / "tests").chmod(0o700)
    modes = {(tmp_path / "copy" / name).stat().st_mode & 0o777 for name in (".", "tests")}
    assert (tree(tmp_path / "copy"), modes) == ({"tests/test_a.py": b"x"}, {0o700})
