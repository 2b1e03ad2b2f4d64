"""What bubblewrap, as we start it, promises whatever runs inside."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from orchestrator.environment import clean_environment
from orchestrator.process import Completed
from orchestrator.sandbox.bubblewrap import Bubblewrap
from orchestrator.sandbox.port import EVAL, GENERATOR, Limits, Place, Profile, SandboxError

Run = Callable[..., Completed]


def python(program: str) -> list[str]:
    """The command that runs a Python program given as text."""
    return [sys.executable, "-c", program]


def narrow(profile: Profile, **limits: int) -> Profile:
    """The profile with other limits."""
    return attrs.evolve(profile, limits=attrs.evolve(profile.limits, **limits))


def is_gone(pipe: int, within_ms: int = 100) -> bool:
    """Whether every process that held the other end of a pipe is gone."""
    import select

    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(within_ms))


@pytest.mark.parametrize(
    ("program", "returncode"),
    [
        ("pass", 0),
        ("raise SystemExit(3)", 3),
        ("raise SystemExit(139)", 139),
        ("import os; os.abort()", -6),
        ("import os; os.kill(os.getpid(), 9)", -9),
        ("import os, signal; signal.signal(13, signal.SIG_DFL); os.kill(os.getpid(), 13)", -13),
    ],
)
def test_the_end_of_a_program_is_told_as_it_was(run: Run, profile: Profile, program: str, returncode: int) -> None:
    """A signal is told apart from the status that a shell would make of it."""
    assert run(python(program), profile).returncode == returncode


def test_input_output_and_report_go_through(run: Run, profile: Profile) -> None:
    """All streams and the report pipe work by number and by name, byte for byte."""
    program = (
        "import sys\n"
        "text = open('/dev/stdin').read()\n"
        "open('/dev/stdout', 'w').write(text[::-1]); open('/dev/stderr', 'w').write('no')\n"
        "open(sys.argv[1], 'w').write('done')"
    )
    completed = run([*python(program), "{report}"], profile, stdin=b"abc", report_limit=100)
    found = (completed.stdout, completed.stderr, completed.report, completed.returncode)
    assert found == (b"cba", b"no", b"done", 0)


def test_programs_see_signals_as_they_are_by_default(run: Run) -> None:
    """What the interpreter of the inner step ignores is not ignored by what it starts."""
    ignored = int(run(["grep", "SigIgn", "/proc/self/status"]).stdout.split()[1], 16)
    assert ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0


@pytest.mark.parametrize(
    ("command", "error"),
    [(["no-such-program"], FileNotFoundError), (["/etc/passwd"], PermissionError), (["/no/such"], FileNotFoundError)],
)
def test_a_program_that_cannot_be_started_is_an_os_error(run: Run, command: list[str], error: type[OSError]) -> None:
    """It is the error that starting it outside would raise."""
    with pytest.raises(error) as caught:
        run(command)
    assert caught.value.filename == command[0]


def test_a_sandbox_that_cannot_be_set_up_says_why(run: Run) -> None:
    """What worked when it was probed may fail later; then bubblewrap's own words are told."""
    with pytest.raises(SandboxError, match=r"could not be set up: bwrap: .*/proc/absent"):
        run(["true"], environment={**clean_environment(), "HOME": "/proc/absent"})


def test_a_directory_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    """Nothing is started where nothing is."""
    with pytest.raises(FileNotFoundError, match="absent"):
        run(["true"], place=Place(directory=tmp_path / "absent", profile=EVAL))


def test_only_what_is_allowed_is_visible(run: Run, profile: Profile, tmp_path: Path) -> None:
    """The host's files, its home and its processes are not there; what is readable is, and its neighbours are not."""
    shown, hidden = tmp_path / "shown", tmp_path / "hidden"
    for file in (shown, hidden):
        file.write_text("secret")
    tmp_path.chmod(0o755)
    program = (
        "import os, sys\n"
        "print([os.path.exists(path) for path in sys.argv[1:]])\n"
        "print(sorted(os.listdir('/etc/ssl')), len([name for name in os.listdir('/proc') if name.isdecimal()]) < 6)\n"
        "print(os.path.exists('/etc/shadow'), os.path.exists('/sys'), os.path.exists('/var/run'))"
    )
    seen = attrs.evolve(profile, readable=(shown,))
    completed = run(
        ["env", "A=1", *python(program), f"./../{shown.name}", str(hidden)[1:]],
        seen,
        place=Place(directory=tmp_path / "work", profile=seen),
    )
    assert completed.stdout.decode().splitlines()[0] == "[True, False]"
    assert completed.stdout.decode().splitlines()[2] == "False False False"


def test_nothing_of_the_host_can_be_written(run: Run, profile: Profile, tmp_path: Path) -> None:
    """Not the working directory, not the interpreter, not the system; /tmp, home and /dev/shm are its own."""
    targets = [tmp_path / "work", Path(sys.prefix), Path("/usr"), Path("/etc"), Path("/"), Path("/dev"), Path("/proc")]
    program = (
        "import os, sys\n"
        "def writes(folder):\n"
        "    try: os.close(os.open(folder + '/canary', os.O_CREAT | os.O_WRONLY))\n"
        "    except OSError: return False\n"
        "    return True\n"
        "print([folder for folder in sys.argv[1].split(':') if writes(folder)])"
    )
    own = ["/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~")]
    completed = run([*python(program), ":".join([*map(str, targets), *own])], profile)
    assert completed.stdout.decode().strip() == repr(own)
    assert not any(Path(folder, "canary").exists() for folder in [*map(str, targets), *own])


def test_secrets_are_in_no_command_line(run: Run) -> None:
    """Variables go by the environment, which only their owner can read."""
    completed = run(
        ["sh", "-c", "cat /proc/[0-9]*/cmdline | tr -d '\\0' | grep -c \"[m]$KEY\"; echo m$KEY"],
        environment={"PATH": "/usr/bin:/bin", "KEY": "y-secret"},
    )
    assert completed.stdout == b"0\nmy-secret\n"


def test_scratch_space_is_capped(run: Run) -> None:
    """Filling it up hurts nobody else, and the host sees none of it."""
    profile = narrow(EVAL, scratch_bytes=4 << 20, file_bytes=64 << 20)
    program = (
        "import errno, os\n"
        "for folder in ('/tmp', '/dev/shm', os.path.expanduser('~')):\n"
        "    try:\n"
        "        with open(folder + '/x', 'wb', 0) as file:\n"
        "            while file.write(b'x' * 65536) == 65536: pass\n"
        "    except OSError as error: assert error.errno == errno.ENOSPC, error\n"
        "    print(os.path.getsize(folder + '/x'))"
    )
    assert run(python(program), profile).stdout.split() == [b"4194304", b"1048576", b"1048576"]


def test_a_copy_can_be_written_beside_and_leaves_the_original_alone(run: Run, tmp_path: Path) -> None:
    """Files, folders, modes and links are there; what is collected comes out as a tar stream."""
    work = tmp_path / "work"
    (work / "deep").mkdir(parents=True)
    (work / "deep" / "tool").write_text("#!/bin/sh\necho made > made\nrm data\n")
    (work / "deep" / "tool").chmod(0o700)
    (work / "data").write_text("x")
    (work / "link").symlink_to("data")
    place = Place(directory=work, work="scratch", collects=".")
    completed = run(["./deep/tool"], place=place, report_limit=100_000)
    with tarfile.open(fileobj=io.BytesIO(completed.report)) as archive:
        assert sorted(archive.getnames()) == ["deep", "deep/tool", "link", "made"]
    assert sorted(os.listdir(work)) == ["data", "deep", "link"]


def test_the_number_of_processes_is_bounded(run: Run) -> None:
    """A fork bomb hits the limit, whatever else the user runs; where the probe says so."""
    program = (
        "import os, time\n"
        "count = 0\n"
        "try:\n"
        "    while count < 200:\n"
        "        if os.fork() == 0: time.sleep(60)\n"
        "        count += 1\n"
        "except BlockingIOError: pass\n"
        "print(count)"
    )
    assert 10 < int(run(python(program), narrow(EVAL, processes=32)).stdout) < 32


@pytest.mark.parametrize(
    ("program", "limits"),
    [
        ("x = bytearray(1 << 30)", {"memory_bytes": 512 << 20}),
        ("open('/tmp/x', 'wb').write(b'x' * (2 << 20))", {"file_bytes": 1 << 20}),
        ("import os; [os.dup(0) for _ in range(64)]", {"open_files": 32}),
    ],
)
def test_each_process_has_limits(run: Run, program: str, limits: dict[str, int]) -> None:
    """Memory, file size and descriptors are refused beyond them, inside, where the program can see it."""
    completed = run(python(program), narrow(EVAL, **limits))
    assert (completed.returncode, b"Error" in completed.stderr) == (1, True)


@pytest.mark.parametrize("ends", ["sleeps", "ends"])
def test_a_daemon_dies_with_the_sandbox(run: Run, profile: Profile, ends: str) -> None:
    """What left its session and closed everything is gone 100 ms after the call, with and without a deadline."""
    reading, writing = os.pipe()
    program = (
        "import os, signal, time\n"
        "for number in range(1, 32):\n"
        "    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork(): os._exit(0)\n"
        "    for number in (0, 1, 2): os.close(number)\n"
        "    time.sleep(60)\n"
        f"time.sleep({60 if ends == 'sleeps' else 0})"
    )
    began = time.monotonic()
    try:
        completed = run(python(program), profile, inherit=[writing], seconds=0.4 if ends == "sleeps" else 20)
    finally:
        os.close(writing)
    took = time.monotonic() - began
    gone = is_gone(reading)
    os.close(reading)
    assert (completed.timed_out, gone, took < 5) == (ends == "sleeps", True, True)


def test_a_sandbox_dies_with_its_host(run: Run, profile: Profile, tmp_path: Path) -> None:
    """A host that is killed leaves nothing behind."""
    host = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from orchestrator.process import run_process\n"
        "from orchestrator.sandbox.port import EVAL, GENERATOR, Place\n"
        "from orchestrator.sandbox.ladder import best_sandbox\n"
        f"profile, pipe, place = {profile.name.upper()}, int(sys.argv[1]), Path(sys.argv[2])\n"
        "command = ['sh', '-c', f'echo started >/dev/fd/{pipe}; sleep 60 & sleep 60']\n"
        "asyncio.run(run_process(command, cwd=place, environment={'PATH': '/usr/bin:/bin'}, seconds=None,\n"
        "    stdout_limit=9, stderr_limit=999, launcher=best_sandbox(profile, backend='bubblewrap'),\n"
        "    place=Place(directory=place, profile=profile), inherit=[pipe]))"
    )
    run(["true"], profile)
    reading, writing = os.pipe()
    os.fchmod(writing, 0o622)
    process = subprocess.Popen([sys.executable, "-c", host, str(writing), str(tmp_path / "work")], pass_fds=[writing])
    os.close(writing)
    started = os.read(reading, 100)
    process.kill()
    process.wait()
    gone = is_gone(reading)
    os.close(reading)
    assert (started, gone) == (b"started\n", True)


def test_a_flood_stays_within_the_cap(run: Run) -> None:
    """A gigabyte of output costs us about what is kept of it."""
    run(["true"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    completed = run(["head", "-c", "1000000000", "/dev/zero"], stdout_limit=1_000_000)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert (completed.exceeded, len(completed.stdout), grown < 20_000_000) == ("stdout", 1_000_000, True)


def test_a_home_that_is_the_working_directory_shows_nothing(run: Run, tmp_path: Path) -> None:
    """Who works at home does not show it to a generator by that alone."""
    (tmp_path / "key").write_text("secret")
    place = Place(directory=tmp_path, profile=GENERATOR)
    completed = run(["ls", "-A"], place=place, environment={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    assert (completed.stdout, completed.returncode) == (b"", 0)


def test_old_versions_are_started_without_what_they_lack(tmp_path: Path) -> None:
    """No size of scratch space before 0.7, no refusal of nested user namespaces before 0.8."""
    from orchestrator.sandbox.port import Launch

    launch = Launch(command=("true",), place=Place(directory=tmp_path, profile=GENERATOR), status=9)
    words = {}
    for version in ((0, 5), (0, 8)):
        with Bubblewrap("bwrap", version).prepared(launch) as start:
            words[version] = {"--size", "--disable-userns"} & set(start.command)
    assert words == {(0, 5): set(), (0, 8): {"--size", "--disable-userns"}}


def test_limits_of_none_are_none(run: Run) -> None:
    """Where a limit is lifted, the host's own holds."""
    limits = Limits(processes=None, memory_bytes=None, file_bytes=None, open_files=None)
    program = "import resource; print(resource.getrlimit(resource.RLIMIT_AS)[0])"
    assert run(python(program), attrs.evolve(EVAL, limits=limits)).stdout == b"-1\n"
