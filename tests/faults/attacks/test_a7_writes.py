"""A7: changes to the host's files, and results that are no plain files."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from orchestrator import Budget, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.generators.command import CommandGenerator
from orchestrator.process import Launcher

FILES = "files of the user"
HOST = (
    "/",
    "/etc",
    "/usr",
    "/usr/local/bin",
    "/tmp",
    "/dev/shm",
    "/var/tmp",
    "/run",
    "/var",
    "/opt",
    "/proc/sys",
    "/dev",
)
RESULTS = {
    "symlink": "os.symlink(SECRET, 'result')",
    "symlink out": "os.symlink('../secret', 'result')",
    "linked directory": "os.symlink(os.path.dirname(SECRET), 'folder')",
    "fifo": "os.mkfifo('result')",
    "socket": "import socket; socket.socket(socket.AF_UNIX).bind('result')",
    "device": "os.mknod('result', 0o20666, os.makedev(1, 5))",
    "hard link": "open('first', 'w').write('x'); os.link('first', 'result')",
    "hard link out": "os.link(SECRET, 'result')",
    "huge": "open('result', 'w').truncate(200 << 20)",
    "large": "open('result', 'w').write('x' * 2_000_000)",
    "many": "[open(f'{number}', 'w').write('x') for number in range(1001)]",
    "not UTF-8": "open('result', 'wb').write(b'\\xff')",
    "name that is not UTF-8": "open(b'\\xff', 'w').write('x')",
    "reserved name": "open('aux.txt', 'w').write('x')",
    "same name": "open('A', 'w').write('x'); open('a', 'w').write('x')",
}
FORGED_ARCHIVE = """
import io, os, signal, stat, tarfile
out = io.BytesIO()
with tarfile.open(fileobj=out, mode='w') as archive:
    for name, kind, target in MEMBERS:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, target
        archive.addfile(member)
if os.readlink('/proc/self/ns/pid') == NAMESPACE:
    raise SystemExit('these are the processes of the host')
own = {os.stat(f'/proc/self/fd/{number}').st_ino for number in (0, 1, 2)}
for number in range(3, 64):
    path = f'/proc/{os.getppid()}/fd/{number}'
    try:
        found = os.stat(path)
        if stat.S_ISFIFO(found.st_mode) and found.st_ino not in own:
            os.write(os.open(path, os.O_WRONLY | os.O_NONBLOCK), out.getvalue())
    except OSError:
        pass
open('honest', 'w').write('x')
"""
MEMBERS = [
    [("../escaped", b"0", "")],
    [("/tmp/escaped", b"0", "")],
    [("folder", b"2", "/etc"), ("folder/passwd", b"0", "")],
    [("link", b"1", "/etc/passwd")],
    [("device", b"3", "")],
]


@pytest.fixture(params=["read-only", "scratch"])
def work(request: pytest.FixtureRequest) -> str:
    """Both ways to see the working directory."""
    return str(request.param)


def test_a7_nothing_of_the_host_is_written(ground: Any, work: str) -> None:
    """No new file anywhere, no change to one that is there; a weaker level says that it holds none of this.

    There only directories of the test's own are tried.
    """
    file = ground.work / "file"
    file.write_text("as it was")
    file.chmod(0o644)
    roundabout = ["..", ".", f"{ground.work}/..", "/proc/self/cwd/..", "./../work/.."]
    host = [*HOST, os.path.expanduser("~"), sys.prefix, str(Path(__file__).parent)] if ground.is_strong else []
    for folder in (ground.work, ground.parent):
        folder.chmod(0o777)
    settings = {"folders": [*roundabout, *host, str(ground.parent)], "token": ground.token, "file": str(file)}
    ground.attempted("writes", settings, work=work)
    left = {folder for folder in (*host, str(ground.work), str(ground.parent)) if has(folder, ground.token)}
    is_as_it_was = file.exists() and (file.read_text(), file.stat().st_mode & 0o777) == ("as it was", 0o644)
    if ground.is_strong:
        assert (left, is_as_it_was, os.listdir(ground.work)) == (set(), True, ["file"])
    else:
        assert (left, is_as_it_was) == ({str(ground.work), str(ground.parent)}, False)
        assert ground.declares(FILES)


@pytest.mark.parametrize("name", RESULTS)
def test_a7_what_is_no_plain_file_is_no_candidate(name: str, launcher: Launcher, tmp_path: Path) -> None:
    """It is refused with a reason, followed nowhere, and the call does not hang on it."""
    secret = tmp_path / "secret"
    secret.write_text("a secret of the host")
    program = f"import os\nSECRET = {str(secret)!r}\n{RESULTS[name]}"
    error = refused(program, launcher)
    assert "a secret of the host" not in error
    assert any(word in error for word in ("left", "ended with status 1", "wrote too much", "candidate", "nothing")), (
        error
    )


@pytest.mark.parametrize("members", MEMBERS, ids=["parent", "absolute", "symlink", "hard link", "device"])
def test_a7_a_forged_archive_leads_nowhere(
    members: list[tuple[str, bytes, str]], tmp_path: Path, sandboxed: Any
) -> None:
    """A program that finds the pipe its files leave by, and writes to it before, is checked member by member."""
    namespace = repr(os.readlink("/proc/self/ns/pid"))
    program = FORGED_ARCHIVE.replace("MEMBERS", repr(members)).replace("NAMESPACE", namespace)
    refused(program, sandboxed("generator", tmp_path).launcher)
    assert not any(Path(path).exists() for path in ("/tmp/escaped", tmp_path / "escaped"))


def refused(program: str, launcher: Launcher) -> str:
    """Why a run whose generator does this, leaving files, had no candidate."""
    command = [sys.executable, "-I", "-S", "-c", program]
    generator = CommandGenerator(command, name="hostile", output="files", launcher=launcher)
    orchestrator = Orchestrator(generator=generator, evaluator=never, budget=Budget(attempts=1, seconds=20))
    (error,) = orchestrator.run(MergedSpec(name="spec", intent="Do it.")).as_json()["errors"]
    return str(error)


def never(_: Submission) -> Verdict:
    """Nothing hostile gets as far as an evaluation."""
    pytest.fail("there was a candidate")


def has(folder: str, name: str) -> bool:
    """Whether a file is there; it is removed, since it must not be."""
    try:
        os.unlink(os.path.join(folder, name))
    except OSError:
        return False
    return True
