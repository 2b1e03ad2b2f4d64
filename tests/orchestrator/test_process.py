"""What `run_process` promises whatever the program does."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import random
import resource
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import pytest

from orchestrator.environment import clean_environment
from orchestrator.process import Completed, Launcher, run_process
from orchestrator.sandbox.port import Launch, Start
from orchestrator.sessions import session_members
from orchestrator_events.isolation import UNKNOWN, Isolation

SHORT = 0.3


async def run_python(
    program: str,
    *arguments: str,
    stdin: bytes = b"",
    seconds: float | None = 20,
    limit: int = 1_000_000,
) -> Completed:
    """Run a Python program given as text, in the current directory."""
    return await run_process(
        [sys.executable, "-c", program, *arguments],
        stdin=stdin,
        cwd=Path.cwd(),
        environment=clean_environment(),
        seconds=seconds,
        stdout_limit=limit,
        stderr_limit=limit,
    )


def is_gone(process: int) -> bool:
    """Whether the process does not exist or is dead but not yet reaped."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return status.rpartition(")")[2].split()[0] in "ZX"


def wait_until(condition: Callable[[], bool]) -> bool:
    """Watch a condition that another process brings about, for at most five seconds."""
    end = time.monotonic() + 5
    while not condition():
        if time.monotonic() > end:
            return False
        os.sched_yield()
    return True


def open_files() -> set[str]:
    """The descriptors of this process."""
    return set(os.listdir("/proc/self/fd"))


def test_a_program_that_ends_gives_its_status_and_both_streams() -> None:
    """Standard input arrives whole, both streams come back byte for byte, the status is the program's own."""
    program = "import sys; sys.stdout.write(sys.stdin.read()[::-1]); sys.stderr.write('no'); sys.exit(3)"
    completed = asyncio.run(run_python(program, stdin=b"abc"))
    assert attrs.evolve(completed, duration_us=0) == Completed(
        returncode=3, stdout=b"cba", stderr=b"no", exceeded="", timed_out=False, duration_us=0
    )
    assert completed.duration_us > 0


def test_standard_input_can_be_opened_by_name() -> None:
    """Programs that open /dev/stdin, as many scripts do, read the same input."""
    completed = asyncio.run(run_python("print(open('/dev/stdin').read())", stdin=b"abc"))
    assert completed.stdout == b"abc\n"


def test_a_signal_is_a_negative_status() -> None:
    """A crash is told apart from an exit."""
    completed = asyncio.run(run_python("import os; os.abort()"))
    assert (completed.returncode, completed.timed_out) == (-6, False)


def test_programs_leave_no_core_dumps() -> None:
    """The limit is set as soon as the program runs, so it is looked at until it is."""
    program = "import resource\nwhile (found := resource.getrlimit(4)) != (0, 0): pass\nprint(found)"
    assert asyncio.run(run_python(program)).stdout == b"(0, 0)\n"


def test_a_program_that_hangs_is_killed_at_its_deadline() -> None:
    """Nothing outlasts `seconds`; what was written until then is kept."""
    began = time.monotonic()
    completed = asyncio.run(run_python("import time; print('begun', flush=True); time.sleep(60)", seconds=SHORT))
    assert (completed.timed_out, completed.returncode, completed.stdout) == (True, -15, b"begun\n")
    assert time.monotonic() - began < 5


def test_a_program_that_ignores_every_signal_is_killed() -> None:
    """SIGTERM is a courtesy; what ignores it gets SIGKILL."""
    program = (
        "import signal, time\n"
        "for number in range(1, 32):\n"
        "    if number not in (9, 19): signal.signal(number, signal.SIG_IGN)\n"
        "time.sleep(60)"
    )
    completed = asyncio.run(run_python(program, seconds=SHORT))
    assert (completed.timed_out, completed.returncode) == (True, -9)


def test_a_program_that_stops_itself_is_killed() -> None:
    """SIGSTOP cannot be used to outlive the deadline."""
    completed = asyncio.run(run_python("import os; os.kill(os.getpid(), 19)", seconds=SHORT))
    assert (completed.timed_out, completed.returncode) == (True, -9)


@pytest.mark.parametrize(("stream", "number"), [("stdout", 1), ("stderr", 2)])
def test_a_flood_stops_at_the_cap(stream: str, number: int) -> None:
    """Output is cut while it is read: no more is kept than allowed, the flood is named and killed."""
    program = f"import os\nwhile True: os.write({number}, b'x' * 65536)"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    completed = asyncio.run(run_python(program, limit=100_000))
    grown_kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    kept = completed.stdout if number == 1 else completed.stderr
    assert (completed.exceeded, len(kept), completed.timed_out) == (stream, 100_000, False)
    assert grown_kilobytes < 20_000


def test_output_of_exactly_the_limit_is_no_flood() -> None:
    """The limit itself is allowed."""
    completed = asyncio.run(run_python("print('x' * 99, flush=True)", limit=100))
    assert (completed.exceeded, len(completed.stdout), completed.returncode) == ("", 100, 0)


@pytest.mark.parametrize(
    "program",
    ["pass", "import os, time; os.close(0); time.sleep(0.05)", "import sys; sys.stdin.buffer.read(10)"],
    ids=["never reads", "closes early", "reads a little"],
)
def test_input_that_is_not_read_harms_nobody(program: str) -> None:
    """A long prompt that the program does not read neither blocks nor fails the call."""
    completed = asyncio.run(run_python(program, stdin=b"x" * 200_000))
    assert (completed.returncode, completed.stderr, completed.timed_out) == (0, b"", False)


def test_a_program_that_closes_its_streams_is_still_bounded() -> None:
    """The end of the output is not the end of the program."""
    program = "import os, time\nfor number in (0, 1, 2): os.close(number)\ntime.sleep(60)"
    completed = asyncio.run(run_python(program, seconds=SHORT))
    assert (completed.timed_out, completed.returncode) == (True, -15)


def test_a_grandchild_that_holds_the_output_is_not_waited_for() -> None:
    """Once the program has ended its output is read a moment longer; then its session is killed."""
    program = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print(child.pid)"
    )
    began = time.monotonic()
    completed = asyncio.run(run_python(program, seconds=None))
    assert completed.returncode == 0
    assert time.monotonic() - began < 5
    assert wait_until(lambda: is_gone(int(completed.stdout)))


def test_the_whole_session_is_killed_whatever_group_a_process_is_in() -> None:
    """Children in process groups of their own, which ignore SIGTERM, die with the program."""
    program = (
        "import os, signal, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0:\n"
        "        os.setpgid(0, 0)\n"
        "        signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "        os.write(1, f'{os.getpid()}\\n'.encode())\n"
        "        time.sleep(60)\n"
        "time.sleep(60)"
    )
    completed = asyncio.run(run_python(program, seconds=SHORT))
    children = [int(line) for line in completed.stdout.split()]
    assert len(children) == 3
    assert wait_until(lambda: all(is_gone(child) for child in children))


def test_a_daemon_in_a_session_of_its_own_is_out_of_reach_and_holds_nothing_up() -> None:
    """Containment is no sandbox: a daemon survives it, but the call returns and its pipes are closed."""
    program = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    os.write(1, f'{os.getpid()}\\n'.encode())\n"
        "    time.sleep(60)\n"
        "time.sleep(0.1)"
    )
    completed = asyncio.run(run_python(program))
    daemon = int(completed.stdout)
    survived = not is_gone(daemon)
    os.kill(daemon, 9)
    assert (completed.returncode, survived) == (0, True)


def test_a_cancelled_call_kills_the_program_before_it_ends(tmp_path: Path) -> None:
    """When the cancellation reaches the caller, no process of the session lives."""
    channel = tmp_path / "channel"
    os.mkfifo(channel)
    program = "import os, sys, time; open(sys.argv[1], 'w').write(str(os.getpid())); time.sleep(60)"

    async def cancel() -> list[int]:
        task = asyncio.create_task(run_python(program, str(channel)))
        process = int(await asyncio.to_thread(channel.read_text))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return list(session_members(process))

    assert asyncio.run(cancel()) == []


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5])
def test_a_call_that_is_cancelled_while_it_starts_leaves_nothing(turns: int) -> None:
    """Early and repeated cancellations are as clean as late ones."""

    async def cancel() -> None:
        task = asyncio.create_task(run_python("import time; time.sleep(60)"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    before = open_files()
    asyncio.run(cancel())
    assert open_files() == before
    assert not children_of_this_process()


def test_a_loop_that_ends_while_programs_start_ends_at_once() -> None:
    """However early the host's own work fails, every program it was starting is gone, and nothing hangs."""

    class HostError(Exception):
        """What the host's own code raises."""

    async def fail_early(delay: float) -> None:
        started = [asyncio.create_task(run_python("import time; time.sleep(60)")) for _ in range(4)]
        await asyncio.wait(started, timeout=delay)
        raise HostError

    def many_times() -> None:
        delays = random.Random(1)
        for _ in range(50):
            with pytest.raises(HostError):
                asyncio.run(fail_early(delays.uniform(0, 0.03)))
        done.append(children_of_this_process())

    before = open_files()
    done: list[list[int]] = []
    thread = threading.Thread(target=many_times, daemon=True)
    thread.start()
    thread.join(30)
    assert done == [[]]
    assert open_files() == before


def test_a_loop_that_is_closed_under_a_call_leaves_nothing() -> None:
    """A host that just closes its loop and drops the call leaves no program, no zombie, no open file."""

    async def begin() -> None:
        call.send(None)

    before = open_files()
    call = run_python("import time; time.sleep(60)")
    asyncio.run(begin())
    was_running = bool(children_of_this_process())
    call.close()
    assert was_running
    assert wait_until(lambda: not children_of_this_process())
    assert open_files() == before


def test_programs_are_attended_where_the_kernel_does_not_watch_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without process descriptors (an old kernel, a strict container) every promise holds as well."""

    def refuse(process: int, flags: int = 0) -> int:  # noqa: ARG001 -- the system call's shape
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    async def several() -> list[tuple[int, bool, str]]:
        sleeping = asyncio.create_task(run_python("import time; time.sleep(60)"))
        programs = ["import sys; sys.exit(3)", "import os; os.abort()", "import time; time.sleep(60)"]
        ended = await asyncio.gather(*(run_python(program, seconds=SHORT) for program in programs))
        sleeping.cancel()
        await asyncio.wait({sleeping})
        return [(completed.returncode, completed.timed_out, completed.exceeded) for completed in ended]

    monkeypatch.setattr(os, "pidfd_open", refuse)
    before = open_files()
    assert asyncio.run(several()) == [(3, False, ""), (-6, False, ""), (-15, True, "")]
    assert open_files() == before
    assert not children_of_this_process()


def test_a_program_is_stopped_in_time_while_no_file_can_be_opened() -> None:
    """A host that has used up its descriptors still gets its program back, dead."""

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def run_dry() -> Completed:
        running = asyncio.create_task(run_python("import time; time.sleep(60)", seconds=SHORT))
        await asyncio.sleep(0)
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
        try:
            return await running
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    completed = asyncio.run(run_dry())
    assert (completed.timed_out, completed.returncode) == (True, -15)


def children_of_this_process() -> list[int]:
    """Living or dead processes that this one has started."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found += [int(child) for child in (task / "children").read_text().split()]
    return found


def test_nothing_is_left_behind() -> None:
    """No open file, no zombie, no pending task, no warning of an unclosed transport."""

    async def several() -> None:
        programs = ["pass", "import time; time.sleep(60)", "while True: print('x' * 9999)"]
        await asyncio.gather(*(run_python(program, seconds=SHORT) for program in programs * 3))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    before = open_files()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asyncio.run(several())
        gc.collect()
    assert open_files() == before
    assert not children_of_this_process()


def test_it_works_in_a_loop_of_another_thread() -> None:
    """A host that runs its loop in a worker thread can start programs from it."""
    results: list[Completed] = []
    thread = threading.Thread(target=lambda: results.append(asyncio.run(run_python("print(1)"))))
    thread.start()
    thread.join()
    assert [result.stdout for result in results] == [b"1\n"]


def test_a_program_that_cannot_be_started_is_an_os_error(tmp_path: Path) -> None:
    """Not found, not executable and a missing directory are the caller's to explain."""

    async def start(command: list[str], directory: Path) -> Completed:
        return await run_process(command, cwd=directory, environment={}, seconds=5, stdout_limit=9, stderr_limit=9)

    (tmp_path / "data").write_text("x")
    with pytest.raises(FileNotFoundError):
        asyncio.run(start(["no-such-program-here"], tmp_path))
    with pytest.raises(PermissionError):
        asyncio.run(start([str(tmp_path / "data")], tmp_path))
    with pytest.raises(FileNotFoundError):
        asyncio.run(start([sys.executable], tmp_path / "absent"))


@attrs.frozen
class Prefixing:
    """A launcher that starts every command through env(1)."""

    python: str = sys.executable
    collects: bool = False
    isolation: Isolation = UNKNOWN

    @contextmanager
    def prepared(self, launch: Launch) -> Iterator[Start]:
        """The command behind a prefix."""
        yield Start(
            command=("/usr/bin/env", f"SEEN={launch.place.directory}", *launch.command),
            directory=launch.place.directory,
            environment=launch.environment,
        )


def test_a_launcher_decides_what_is_started(tmp_path: Path) -> None:
    """The place where a sandbox goes sees the command and its directory."""
    launcher: Launcher = Prefixing()
    completed = asyncio.run(
        run_process(
            [sys.executable, "-c", "import os; print(os.environ['SEEN'])"],
            cwd=tmp_path,
            environment={},
            seconds=20,
            stdout_limit=1000,
            stderr_limit=1000,
            launcher=launcher,
        )
    )
    assert completed.stdout.decode().strip() == str(tmp_path)


async def run_reporting(program: str, *arguments: str, limit: int = 1000, inherit: Sequence[int] = ()) -> Completed:
    """Run a Python program that may write a report."""
    return await run_process(
        [sys.executable, "-c", program, *arguments],
        cwd=Path.cwd(),
        environment=clean_environment(),
        seconds=20,
        stdout_limit=1000,
        stderr_limit=10_000,
        inherit=inherit,
        report_limit=limit,
    )


def test_a_report_comes_by_a_pipe_of_its_own() -> None:
    """`{report}` in any word is its path, the variable its number; what is written to both arrives in order."""
    program = (
        "import os, sys\n"
        "with open(sys.argv[1].partition('=')[2], 'w') as file: file.write('by path, ')\n"
        "os.write(int(os.environ['ORCHESTRATOR_REPORT_FD']), b'by number')\n"
        "print('chatter')"
    )
    completed = asyncio.run(run_reporting(program, "--out={report}"))
    assert (completed.report, completed.stdout, completed.exceeded) == (b"by path, by number", b"chatter\n", "")


def test_a_report_is_capped_while_it_is_written() -> None:
    """A flood of a report is stopped and named like one of the other streams."""
    program = "import sys\nwith open(sys.argv[1], 'wb') as file:\n    while True: file.write(b'x' * 65536)"
    completed = asyncio.run(run_reporting(program, "{report}"))
    assert (completed.exceeded, len(completed.report), completed.returncode < 0) == ("report", 1000, True)


def test_descriptors_are_passed_on_under_the_same_number() -> None:
    """What is named reaches the program, and nothing else does."""
    reading, writing = os.pipe()
    try:
        program = (
            f"import os; os.write({writing}, b'seen')\n"
            f"try: os.fstat({reading})\nexcept OSError: os.write({writing}, b', the other not')"
        )
        completed = asyncio.run(run_reporting(program, inherit=[writing]))
        assert (os.read(reading, 100), completed.returncode) == (b"seen, the other not", 0)
    finally:
        os.close(reading)
        os.close(writing)


def test_nothing_is_asked_for_without_a_limit(tmp_path: Path) -> None:
    """Without a report the word stays as it is and no variable is set."""
    program = "import os, sys; print(sys.argv[1], 'ORCHESTRATOR_REPORT_FD' in os.environ)"
    completed = asyncio.run(run_python(program, "{report}"))
    assert (completed.stdout, completed.report, list(tmp_path.iterdir())) == (b"{report} False\n", b"", [])


def test_only_allowed_variables_reach_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets of the host stay with the host unless they are named."""
    for name in os.environ:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PATH", "/bin")
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("API_KEY", "secret")
    assert clean_environment() == {"PATH": "/bin", "LC_ALL": "C"}
    assert clean_environment(["API_*"], {"A": "1"}) == {"API_KEY": "secret", "A": "1"}
