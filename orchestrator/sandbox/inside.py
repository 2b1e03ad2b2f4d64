"""The step inside a sandbox: sets the limits, starts the program, tells how it ended and brings out what it left.

Where there are control groups it enters its own before anything else. Its text is run by a bare interpreter
(`python -I -S -c`), so it imports nothing but what is built in. Bubblewrap alone would report a program that a
signal ended as one that ended with status 128 + n.
"""

from __future__ import annotations

import os
import resource
import signal
import stat

COMMAND_MISSING = 127


def run(settings: dict[str, object], words: list[str]) -> int:
    """Start the program and wait for it; its status goes to the status pipe, in words."""
    status, report, directory = settings["status"], settings["report"], settings["directory"]
    assert isinstance(status, int)
    assert isinstance(directory, str)
    os.set_inheritable(status, False)
    enter(settings["doors"])
    become(settings["user"])
    os.write(status, b"ready\n")
    for number, value in settings["limits"]:  # type: ignore[attr-defined] # plain values, written by the host
        confine(number, value)
    if isinstance(report, int) and settings["collects"]:
        os.set_inheritable(report, False)
    if settings["origin"]:
        copy(str(settings["origin"]), directory)
    os.chdir(directory)
    try:
        child = os.posix_spawnp(words[0], words, os.environ, setsigdef=[signal.SIGPIPE, signal.SIGXFSZ])
    except OSError as error:
        os.write(status, b"errno %d\n" % (error.errno or 2))
        return COMMAND_MISSING
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if isinstance(report, int) and settings["collects"]:
        code = bring_out(directory, str(settings["collects"]), report) or code
    os.write(status, b"exit %d\n" % code if code >= 0 else b"signal %d\n" % -code)
    return code if code >= 0 else 128 - code


def enter(doors: object) -> None:
    """Be in the control groups that are entered by these descriptors, and keep nobody else's way in."""
    assert isinstance(doors, tuple)
    for door in doors:
        os.write(door, b"0")
        os.close(door)


def become(user: object) -> None:
    """Go on as a user that owns nothing; its privileges go with it."""
    if isinstance(user, int):
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)


def confine(number: int, value: int) -> None:
    """Set one limit, or leave a stricter one that is in force."""
    hard = resource.getrlimit(number)[1]
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(number, (least, least))


def copy(source: str, target: str) -> None:
    """Copy a directory's files, folders and links into a directory that exists."""
    with os.scandir(source) as entries:
        for entry in entries:
            place = f"{target}/{entry.name}"
            if entry.is_symlink():
                os.symlink(os.readlink(entry.path), place)
            elif entry.is_dir():
                os.mkdir(place, 0o700)
                copy(entry.path, place)
            else:
                copy_file(entry.path, place)


def copy_file(source: str, target: str) -> None:
    """Copy one file, and whether it can be executed; what is written to it stays in the copy."""
    with open(source, "rb", 0) as reader:
        mode = stat.S_IMODE(os.fstat(reader.fileno()).st_mode) | stat.S_IRUSR | stat.S_IWUSR
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb", 0) as writer:
            while data := reader.read(1 << 20):
                writer.write(data)


def bring_out(directory: str, name: str, descriptor: int) -> int:
    """Write one file, or with `.` all of them, as a tar stream; not 0 when one cannot be read."""
    import tarfile

    with open(descriptor, "wb", closefd=False) as pipe, tarfile.open(fileobj=pipe, mode="w|") as archive:
        for path in [name] if name != "." else sorted(os.listdir(directory)):
            try:
                if os.path.lexists(os.path.join(directory, path)):
                    archive.add(os.path.join(directory, path), arcname=path)
            except OSError as error:
                os.write(2, f"what was left cannot be read: {error}\n".encode(errors="replace"))
                return 1
    return 0
