"""What a control group promises whatever is started in it, on a kernel of plain files and on the real one."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from orchestrator.process import Completed
from orchestrator.sandbox.bubblewrap import Bubblewrap
from orchestrator.sandbox.cgroup import Groups, usable_groups
from orchestrator.sandbox.delegation import MEMORY, PROCESSES, Ground
from orchestrator.sandbox.ladder import best_sandbox
from orchestrator.sandbox.port import EVAL, GENERATOR, Limits, Profile

Run = Callable[..., Completed]
MEBIBYTE = 1 << 20
LIMITS = Limits(processes=7, memory_total_bytes=512 * MEBIBYTE)
FILES = {
    1: ("cgroup.procs", "pids.max", "memory.limit_in_bytes", "memory.failcnt", "memory.oom_control"),
    2: (
        "cgroup.procs",
        "cgroup.kill",
        "pids.max",
        "memory.max",
        "memory.swap.max",
        "memory.oom.group",
        "memory.events",
    ),
}


@attrs.define(eq=False)
class FakeKernel:
    """Gives a new group its files, and keeps one that is in use; a kill empties it."""

    version: int
    refusals: int = 0
    """How often a group is still in use after all in it were killed."""
    removed: list[dict[str, str]] = attrs.Factory(list[dict[str, str]])
    """What was in the files of each group when it was removed."""

    def make(self, folder: Path) -> None:
        """Make a group."""
        folder.mkdir()
        for name in FILES[self.version]:
            (folder / name).touch()

    def remove(self, folder: Path) -> None:
        """Remove a group that is empty."""
        files = {path.name: path.read_text() for path in folder.iterdir()}
        if files.get("cgroup.procs") and not files.get("cgroup.kill"):
            raise OSError(errno.EBUSY, "in use")
        if files.get("cgroup.procs") and self.refusals:
            self.refusals -= 1
            raise OSError(errno.EBUSY, "still in use")
        self.removed.append({name: text for name, text in files.items() if text})
        shutil.rmtree(folder)


def groups_of(kernel: FakeKernel, directory: Path) -> Groups:
    """Both controllers: in one directory, or with version 1 in one each."""
    folders = [directory / name if kernel.version == 1 else directory for name in (MEMORY, PROCESSES)]
    for folder in folders:
        folder.mkdir(exist_ok=True)
    memory, processes = (
        Ground(version=kernel.version, directory=folder, controllers=(name,))
        for folder, name in zip(folders, (MEMORY, PROCESSES), strict=True)
    )
    return Groups(memory=memory, processes=processes, make=kernel.make, remove=kernel.remove)


def settled() -> None:
    """Wait for what is removed in the background."""
    for thread in threading.enumerate():
        if thread.name == "orchestrator-group":
            thread.join()


@pytest.fixture
def groups() -> Groups:
    """The real ones, or a skipped test."""
    found = usable_groups()
    if found is None:
        pytest.skip("no control group is handed over to this process: start it as root, or with Delegate=yes")
    return found


def left(groups: Groups) -> list[str]:
    """Names of all groups that any engine of ours has at the moment and that are of no process that lives."""
    grounds = [ground for ground in (groups.memory, groups.processes) if ground is not None]
    names = [name for ground in grounds for name in os.listdir(ground.directory) if name.startswith("orchestrator-")]
    own = str(os.getpid())
    return [name for name in names if name.split("-")[2] == own or not Path("/proc", name.split("-")[2]).exists()]


def test_a_group_of_version_2_has_its_limits(tmp_path: Path) -> None:
    """No swap, and one that is over its limit ends as a whole; with the context it is gone."""
    kernel = FakeKernel(2)
    with groups_of(kernel, tmp_path).opened(LIMITS) as group:
        os.write(group.doors[0], b"")
    limits = {"memory.max": str(512 * MEBIBYTE), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "7"}
    assert (kernel.removed, os.listdir(tmp_path), len(group.doors)) == ([limits], [], 1)


def test_groups_of_version_1_have_one_limit_each(tmp_path: Path) -> None:
    """There are two to enter; swap is bounded where the kernel counts it."""
    kernel = FakeKernel(1)
    with groups_of(kernel, tmp_path).opened(LIMITS) as group:
        assert len(group.doors) == 2
    limits = [{"pids.max": "7"}, {"memory.limit_in_bytes": str(512 * MEBIBYTE)}]
    assert (kernel.removed, [os.listdir(tmp_path / name) for name in (MEMORY, PROCESSES)]) == (limits, [[], []])


def test_limits_of_none_are_not_set(tmp_path: Path) -> None:
    """What is started is in a group all the same, by which it can be ended."""
    kernel = FakeKernel(2)
    with groups_of(kernel, tmp_path).opened(Limits(processes=None, memory_total_bytes=None)) as group:
        said = group.overuse()
    assert (kernel.removed, said) == ([{}], "")


@pytest.mark.parametrize(
    ("version", "files", "is_told"),
    [
        (2, {"memory.events": "low 0\nmax 31\noom 2\noom_kill 1\noom_group_kill 1\n"}, True),
        (2, {"memory.events": "low 0\nmax 31\noom 0\noom_kill 1\n"}, False),
        (2, {"memory.events": "low 0\nmax 31\noom 1\noom_kill 0\n"}, False),
        (1, {"memory.failcnt": "12\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, True),
        (1, {"memory.failcnt": "0\n", "memory.memsw.failcnt": "9\n", "memory.oom_control": "oom_kill 2\n"}, True),
        (1, {"memory.failcnt": "0\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"}, False),
        (1, {"memory.failcnt": "12\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"}, False),
    ],
)
def test_a_kill_for_the_limit_is_told_apart(tmp_path: Path, version: int, files: dict[str, str], is_told: bool) -> None:
    """It is not one when the machine ran out of memory, nor when memory was merely refused or reclaimed."""
    with groups_of(FakeKernel(version), tmp_path).opened(LIMITS) as group:
        assert group.memory is not None
        for name, text in files.items():
            (group.memory / name).write_text(text)
        said = group.overuse()
    assert said == ("used more than 512 MiB of memory together" if is_told else "")


def test_a_group_in_use_is_emptied_and_removed(tmp_path: Path) -> None:
    """However often the kernel says that it is busy; the caller is not held up by that."""
    kernel = FakeKernel(2, refusals=3)
    with groups_of(kernel, tmp_path).opened(LIMITS) as group:
        assert group.memory is not None
        (group.memory / "cgroup.procs").write_text("4000001\n0\n")
    settled()
    assert (len(kernel.removed), kernel.removed[0]["cgroup.kill"], os.listdir(tmp_path)) == (1, "1", [])


def test_a_group_that_cannot_be_limited_is_not_entered(tmp_path: Path) -> None:
    """The error names the file; nothing stays."""
    kernel = FakeKernel(2)

    def make(folder: Path) -> None:
        kernel.make(folder)
        (folder / "pids.max").unlink()

    with pytest.raises(FileNotFoundError, match=r"pids\.max"):  # noqa: SIM117 -- what raises is the opening
        with attrs.evolve(groups_of(kernel, tmp_path), make=make).opened(LIMITS):
            pytest.fail("it was opened")
    assert os.listdir(tmp_path) == []


def test_only_groups_of_dead_engines_are_swept(tmp_path: Path) -> None:
    """Neither those of engines that live, nor those of other process spaces, nor what has any other name."""
    kernel = FakeKernel(2)
    groups = groups_of(kernel, tmp_path)
    with groups.opened(LIMITS) as group:
        assert group.memory is not None
        space, process, began, token = group.memory.name.split("-")[1:]
        dead = {
            f"orchestrator-{space}-{process}-{int(began) + 1}-{token}",
            f"orchestrator-{space}-999999999-{began}-{token}",
        }
        kept = {
            group.memory.name,
            f"orchestrator-1-{process}-1-{token}",
            f"orchestrator-{space}-999999999-{began}-short",
            "user.slice",
        }
        for name in (dead | kept) - {group.memory.name}:
            kernel.make(tmp_path / name)
        groups.sweep()
        settled()
        assert (set(os.listdir(tmp_path)), len(kernel.removed)) == (kept, len(dead))


@pytest.mark.parametrize(
    ("memory", "processes", "label"),
    [(2, 2, "control group v2"), (None, 1, "control group v1 for processes"), (2, None, "control group v2 for memory")],
)
def test_the_label_says_what_is_used(memory: int | None, processes: int | None, label: str, tmp_path: Path) -> None:
    """Who reads it is not told of a group for memory where there is none."""
    made = [
        None if version is None else Ground(version=version, directory=tmp_path, controllers=(name,))
        for version, name in ((memory, MEMORY), (processes, PROCESSES))
    ]
    assert Groups(memory=made[0], processes=made[1]).label == label


def test_a_program_is_in_its_group_and_has_no_way_in(groups: Groups, run: Run) -> None:
    """Nothing that it starts is outside, and no descriptor of a group is left open; afterwards the group is gone."""
    launcher = best_sandbox(GENERATOR)
    if not isinstance(launcher, Bubblewrap) or launcher.groups is None:
        pytest.skip("no control group is needed here: its processes are bounded without")
    completed = run(["sh", "-c", "ls /proc/self/fd | wc -l; cat /proc/self/cgroup"], GENERATOR)
    lines = completed.stdout.decode().splitlines()
    used = [ground for ground in (groups.memory, groups.processes) if ground is not None]
    names = [PROCESSES if ground is groups.processes else MEMORY for ground in used if ground.version == 1] or [""]
    paths = {name: path for line in lines[1:] for _, name, path in [line.split(":", 2)]}
    settled()
    assert (lines[0], [paths[name].startswith("/orchestrator-") for name in names]) == ("4", [True] * len(names))
    assert left(groups) == []


def test_a_fork_bomb_is_bounded_whoever_starts_it(groups: Groups, run: Run, profile: Profile) -> None:
    """Of root too, whose processes the kernel does not count otherwise; none of it is left after the deadline."""
    if groups.processes is None:
        pytest.skip("no control group for processes is handed over to this process here")
    bomb = (
        "import os, sys, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 200:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        count += 1\n"
        "except BlockingIOError: pass\n"
        "print(count, flush=True)\n"
        "time.sleep(60)"
    )
    narrow = attrs.evolve(profile, limits=attrs.evolve(profile.limits, processes=24))
    completed = run([sys.executable, "-c", bomb], narrow, seconds=1)
    settled()
    assert (10 < int(completed.stdout) < 24, completed.timed_out, left(groups)) == (True, True, [])


@pytest.mark.parametrize("kind", [EVAL, GENERATOR], ids=lambda kind: kind.name)
def test_memory_in_all_is_bounded_and_the_kill_is_told(groups: Groups, run: Run, kind: Profile) -> None:
    """Three times 60 MB do not fit into 100, and that is told as what it was."""
    if groups.memory is None:
        pytest.skip(
            "no control group for memory is handed over to this process here: start it with Delegate=yes, "
            "or set ORCHESTRATOR_KERNEL, with which test_emulated.py runs this on a kernel of its own"
        )
    program = (
        "import os\n"
        "reading, writing = os.pipe()\n"
        "back, go = os.pipe()\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.close(go)\n"
        "        held = bytearray(60_000_000); held[::4096] = b'x' * len(held[::4096])\n"
        "        os.write(writing, b'x'); os.close(writing); os.read(back, 1); os._exit(0)\n"
        "os.close(writing)\n"
        "raise SystemExit(0 if sum(len(os.read(reading, 1)) for _ in range(3)) == 3 else 1)"
    )
    narrow = attrs.evolve(kind, limits=attrs.evolve(kind.limits, memory_total_bytes=100 * MEBIBYTE))
    completed = run([sys.executable, "-c", program], narrow)
    settled()
    found = (completed.returncode != 0, completed.overuse, left(groups))
    assert found == (True, "used more than 100 MiB of memory together", [])


def test_what_a_killed_engine_leaves_is_swept_by_the_next(groups: Groups) -> None:
    """The group of an engine that got SIGKILL is gone when groups are next looked for, with all that was in it."""
    engine = (
        "import os, subprocess, sys, time\n"
        "from orchestrator.sandbox.cgroup import usable_groups\n"
        "from orchestrator.sandbox.port import Limits\n"
        "with usable_groups().opened(Limits()) as group:\n"
        "    enter = 'import os, sys, time; [os.write(int(door), b\"0\") for door in sys.argv[1:]]; '\n"
        "    enter += 'print(os.getpid(), flush=True); time.sleep(60)'\n"
        "    command = [sys.executable, '-c', enter, *map(str, group.doors)]\n"
        "    subprocess.Popen(command, pass_fds=group.doors, start_new_session=True)\n"
        "    time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", engine], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        member = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        stayed = [len(left(groups)) > 0, Path(f"/proc/{member}").exists()]
        assert usable_groups() == groups
        settled()
        ends = process.stdout.read()
    assert (stayed, ends, left(groups)) == ([True, True], "", [])
