"""Which groups count as handed over to this process, in hierarchies that are plain files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from orchestrator.sandbox.cgroup import usable_groups
from orchestrator.sandbox.delegation import MEMORY, PROCESSES, Ground, grounds

IS_ROOT = os.geteuid() == 0
BOTH = (MEMORY, PROCESSES)


def mounted(tmp_path: Path, *hierarchies: tuple[str, str, str]) -> Path:
    """A process's view: for each hierarchy the root that is mounted, its type and its options."""
    lines = [
        f"{number} 1 0:{number} {root} {tmp_path / options} rw,relatime shared:7 - {kind} {kind} rw,{options}"
        for number, (root, kind, options) in enumerate(hierarchies, 30)
    ]
    (tmp_path / "mountinfo").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def group_of_two(directory: Path, controllers: str = "cpu memory pids", switched_on: str = "memory pids") -> Path:
    """A group of version 2."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "cgroup.controllers").write_text(f"{controllers}\n")
    (directory / "cgroup.subtree_control").write_text(f"{switched_on}\n")
    return directory


def marked(directory: Path) -> Path:
    """The directory with systemd's mark of a delegated unit, where the file system of the tests takes marks."""
    try:
        os.setxattr(directory, "user.delegate", b"1")
    except OSError as error:
        pytest.skip(f"no extended attributes in {directory}: {error}")
    return directory


def test_the_top_of_what_is_seen_is_handed_over(tmp_path: Path) -> None:
    """In a container with a hierarchy of its own nobody else makes groups there."""
    proc = mounted(tmp_path, ("/", "cgroup2", "nsdelegate"))
    (proc / "cgroup").write_text("0::/\n")
    directory = group_of_two(tmp_path / "nsdelegate")
    assert grounds(proc) == (Ground(version=2, directory=directory, controllers=BOTH),)


def test_a_container_sees_its_own_group_as_the_top(tmp_path: Path) -> None:
    """Without a namespace of groups the path is long, but what is mounted begins there."""
    proc = mounted(tmp_path, ("/docker/1", "cgroup", "memory"), ("/docker/1", "cgroup", "pids"))
    (proc / "cgroup").write_text("4:pids:/docker/1\n3:memory:/docker/1\n")
    for name in BOTH:
        (tmp_path / name).mkdir()
    assert grounds(proc) == tuple(Ground(version=1, directory=tmp_path / name, controllers=(name,)) for name in BOTH)


@pytest.mark.skipif(not IS_ROOT, reason="another user than root owns the directories of its tests: run as root")
def test_what_root_can_write_to_is_not_its_own_by_that(tmp_path: Path) -> None:
    """A group that a supervisor put this process into stays the supervisor's; the other hierarchy serves."""
    proc = mounted(tmp_path, ("/", "cgroup", "memory"), ("/", "cgroup", "pids"), ("/", "cgroup2", "two"))
    (proc / "cgroup").write_text("4:pids:/\n3:memory:/supervisor/7\n0::/system.slice/some.service\n")
    (tmp_path / "memory" / "supervisor" / "7").mkdir(parents=True)
    (tmp_path / "pids").mkdir()
    group_of_two(tmp_path / "two" / "system.slice" / "some.service")
    assert grounds(proc) == (Ground(version=1, directory=tmp_path / "pids", controllers=(PROCESSES,)),)


def test_a_marked_group_is_handed_over(tmp_path: Path) -> None:
    """Its parent, which the manager keeps for itself, is not touched."""
    proc = mounted(tmp_path, ("/", "cgroup2", "two"))
    (proc / "cgroup").write_text("0::/some.slice/unit.service\n")
    directory = marked(group_of_two(tmp_path / "two" / "some.slice" / "unit.service"))
    group_of_two(tmp_path / "two" / "some.slice")
    assert grounds(proc) == (Ground(version=2, directory=directory, controllers=BOTH),)


def test_the_marked_parent_serves_a_process_in_a_subgroup(tmp_path: Path) -> None:
    """That is what DelegateSubgroup= makes; our own group has no controllers to give."""
    proc = mounted(tmp_path, ("/", "cgroup2", "two"))
    (proc / "cgroup").write_text("0::/unit.service/engine\n")
    directory = marked(group_of_two(tmp_path / "two" / "unit.service"))
    group_of_two(directory / "engine", controllers="")
    assert grounds(proc) == (Ground(version=2, directory=directory, controllers=BOTH),)


def test_what_is_switched_off_is_asked_for(tmp_path: Path) -> None:
    """The request is one word; where it changes nothing, nothing is claimed."""
    proc = mounted(tmp_path, ("/", "cgroup2", "two"))
    (proc / "cgroup").write_text("0::/\n")
    directory = group_of_two(tmp_path / "two", controllers="memory", switched_on="")
    assert (grounds(proc), (directory / "cgroup.subtree_control").read_text()) == ((), "+memory")


@pytest.mark.parametrize(
    "cgroup",
    ["", "nonsense\n", "0::/../../elsewhere\n", "0::/absent\n", "7:cpu:/\n", "0:\n"],
    ids=["nothing", "malformed", "outside of what is mounted", "absent", "other controllers", "cut off"],
)
def test_where_nothing_is_handed_over_there_is_no_ground(tmp_path: Path, cgroup: str) -> None:
    """Whatever the kernel says, this is an answer and no error."""
    proc = mounted(tmp_path, ("/", "cgroup2", "two"), ("/", "cgroup", "memory"))
    (proc / "cgroup").write_text(cgroup)
    assert (grounds(proc), grounds(tmp_path / "absent")) == ((), ())


def test_what_looks_handed_over_is_tried(tmp_path: Path) -> None:
    """Directories that take no limits are of no use, and nothing stays in them."""
    proc = mounted(tmp_path, ("/", "cgroup", "memory"), ("/", "cgroup", "pids"))
    (proc / "cgroup").write_text("4:pids:/\n3:memory:/\n")
    for name in BOTH:
        (tmp_path / name).mkdir()
    assert (len(grounds(proc)), usable_groups(proc)) == (2, None)
    assert [os.listdir(tmp_path / name) for name in BOTH] == [[], []]
