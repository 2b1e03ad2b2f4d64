"""Runs a command as root on a kernel of its own: an emulated machine that reads the files of this one.

    python emulated.py KERNEL GROUPS command …

KERNEL is where a kernel package was unpacked (`apt-get download linux-image-…; dpkg -x … KERNEL`), `/` for an
installed one; GROUPS is the version of control groups that is mounted there, 1 or 2. What the command says comes out
on standard output, the exit status is its own. Needs qemu-system-x86_64 and a static busybox. Nothing is hurt by what
runs inside: its root is read-only, its memory is 1 GiB, it has no network, and no group of this machine is touched.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

SECONDS = 500
"""How long the machine may run, by the clock of this one; a call in it takes some twenty times longer than here."""
PROGRAMS = ("qemu-system-x86_64", "busybox")
MODULES = (
    "drivers/virtio/virtio_ring", "drivers/virtio/virtio", "drivers/virtio/virtio_pci_modern_dev",
    "drivers/virtio/virtio_pci_legacy_dev", "drivers/virtio/virtio_pci", "fs/netfs/netfs", "fs/fscache/fscache",
    "net/9p/9pnet", "net/9p/9pnet_virtio", "fs/9p/9p",
)  # fmt: skip
"""What reads the files of this machine, each after what it needs; one that is not there is built in."""
BEGIN = """#!/bin/busybox sh
/bin/busybox mkdir /host
for module in {modules}; do /bin/busybox insmod /$module || exit; done
/bin/busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144,cache=loose,ro host /host || exit
for place in tmpfs:run proc:proc sysfs:sys devtmpfs:dev; do
    /bin/busybox mount -t ${{place%:*}} none /host/${{place#*:}} || exit
done
/bin/busybox mv /command /host/run/command
exec /bin/busybox switch_root /host /bin/sh /run/command
"""
GROUPS = {
    1: "mount -t tmpfs none /sys/fs/cgroup && cd /sys/fs/cgroup && mkdir memory pids && "
    "mount -t cgroup -o memory none memory && mount -t cgroup -o pids none pids",
    2: "mount -t cgroup2 none /sys/fs/cgroup",
}
COMMAND = """mkdir -p /dev/shm /run/home /run/tmp && mount -t tmpfs none /dev/shm
{groups}
ip link set lo up 2>/dev/null
cd {directory} && env -i {environment} {command} </dev/null
echo "{mark} $?"
sync; echo o >/proc/sysrq-trigger; sleep 60
"""
MARK = "the-command-ended-with"


def lacking(kernel: Path) -> str:
    """What is missing here for such a machine; empty for nothing."""
    missing = [f"no {program} on PATH" for program in PROGRAMS if shutil.which(program) is None]
    missing += [] if images(kernel) else [f"no boot/vmlinuz-… in {kernel} that can be read"]
    return ", ".join(missing)


def images(kernel: Path) -> list[Path]:
    """The kernels in a package that can be read, the latest last."""
    return sorted(path for path in kernel.glob("boot/vmlinuz-*") if os.access(path, os.R_OK))


def main(kernel: Path, version: int, command: list[str]) -> int:
    """Start the machine, show what it says, and end as the command did."""
    image = images(kernel)[-1]
    modules = kernel / "lib/modules" / image.name.removeprefix("vmlinuz-") / "kernel"
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "initrd")
        archive.write_bytes(b"".join(archived(contents(modules, version, command))))
        machine = ["qemu-system-x86_64", *options(image, archive)]
        said = subprocess.run(machine, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=SECONDS, check=True)
    shown, _, status = said.stdout.decode(errors="replace").replace("\r\n", "\n").rpartition(MARK)
    sys.stdout.write(shown or status)
    ended = re.match(r" (\d+)\n", status)
    return int(ended[1]) if ended else 125


def options(image: Path, archive: Path) -> Iterator[str]:
    """The machine: emulated, since a machine that is itself a virtual one seldom offers more.

    Its clock counts its own instructions, so that no deadline passes in it because this machine is slow or busy.
    """
    yield from ("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio")
    yield from ("-accel", "tcg", "-cpu", "max", "-icount", "shift=0", "-m", "1024")
    yield from ("-kernel", str(image), "-initrd", str(archive), "-append", "console=ttyS0 quiet panic=-1")
    yield from ("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap")


def contents(modules: Path, version: int, command: list[str]) -> Mapping[str, bytes]:
    """The files that the machine begins with."""
    found = [path for name in MODULES if (path := modules / f"{name}.ko").exists()]
    places = {"HOME": "/run/home", "TMPDIR": "/run/tmp", "PATH": os.environ["PATH"]}
    environment = {
        **places,
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "ORCHESTRATOR_SANDBOX": "required",
    }
    inside = COMMAND.format(
        groups=GROUPS[version],
        directory=shlex.quote(os.getcwd()),
        environment=shlex.join(f"{name}={value}" for name, value in environment.items()),
        command=shlex.join(command),
        mark=MARK,
    )
    return {
        "bin/busybox": Path(shutil.which("busybox") or "").read_bytes(),
        "init": BEGIN.format(modules=" ".join(path.name for path in found)).encode(),
        "command": inside.encode(),
        **{path.name: path.read_bytes() for path in found},
    }


def archived(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """The files as the kernel unpacks them, all executable (the format is in its buffer-format.rst)."""
    folders = sorted({str(folder) for name in files for folder in Path(name).parents} - {"."})
    entries = [*((name, 0o040755, b"") for name in folders), *((name, 0o100755, files[name]) for name in files)]
    for number, (name, mode, data) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
        path = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + path
        yield head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]))
