"""Two processes and one run: whoever holds it goes on, the other is refused and writes nothing."""

from __future__ import annotations

import os
import select
import signal
import subprocess
from typing import Any

PATIENCE_S = 30
PASSED = ("passed", [1, 2], ["names_red", "names_green"])
MARKERS = ("execution:start", "execution:interrupted", "orchestrator:complete", "execution:end")


def standing(bench: Any) -> tuple[str, list[int], list[str]]:
    """Status, attempts and last verdict of the only run."""
    told = bench.result()
    return told["status"], [each["attempt"] for each in told["history"]], told["history"][-1]["passed"]


def cut_off(bench: Any, place: str) -> None:
    """Start the run and kill it at a place, and the programs it leaves with it."""
    bench.pause_at(place)
    process = bench.start(*bench.run_arguments)
    bench.inside()
    process.kill()
    assert bench.end(process).code == -signal.SIGKILL
    bench.end_programs()


def first_to_end(processes: list[subprocess.Popen[str]]) -> subprocess.Popen[str]:
    """Wait until one of some processes has ended."""
    watched = {os.pidfd_open(process.pid): process for process in processes}
    (ended, *_), _, _ = select.select(list(watched), [], [], PATIENCE_S)
    for each in watched:
        os.close(each)
    return watched[ended]


def test_two_resumes_at_once(bench: Any, is_long: bool) -> None:
    """Exactly one works; the other ends with status 7 while the first is inside a call, and nothing is doubled."""
    for _ in range(20 if is_long else 2):
        cut_off(bench, "generating-2")
        bench.pause_at("generating-2")
        both = [bench.start("resume", bench.run_id) for _ in range(2)]
        bench.inside()
        loser = first_to_end(both)
        (winner,) = (process for process in both if process is not loser)
        refused, recorded = bench.end(loser), bench.entries()
        assert (refused.code, refused.out) == (7, "")
        assert f"run {bench.run_id} is held by another process" in refused.err
        bench.let_go()
        assert bench.end(winner).code == 0
        assert bench.entries()[: len(recorded)] == recorded
        assert (standing(bench), bench.calls) == (PASSED, [1, 2, 2])
        names = [name for name in bench.names() if name in MARKERS]
        assert names == ["execution:start", "execution:start", "execution:interrupted", *MARKERS[2:]]
        bench.clear()


def test_a_stopped_process_still_holds_its_run(bench: Any) -> None:
    """SIGSTOP is not the end: resume is refused and writes nothing, until the process is killed."""
    bench.pause_at("evaluating-1")
    process = bench.start(*bench.run_arguments)
    bench.inside()
    process.send_signal(signal.SIGSTOP)
    recorded = bench.entries()
    refused = bench("resume", "last")
    assert (refused.code, refused.out, bench.entries()) == (7, "", recorded)
    assert f"run {bench.run_id} is held by another process" in refused.err
    process.kill()
    assert bench.end(process).code == -signal.SIGKILL
    assert (bench("resume", "last").code, standing(bench), bench.calls) == (0, PASSED, [1, 2])
    assert bench.entries()[: len(recorded)] == recorded


def test_a_stopped_process_that_goes_on(bench: Any) -> None:
    """Thawed, it finishes the run it held all the while, as if nothing had been."""
    bench.pause_at("generating-1")
    process = bench.start(*bench.run_arguments)
    bench.inside()
    process.send_signal(signal.SIGSTOP)
    assert bench("resume", "last").code == 7
    process.send_signal(signal.SIGCONT)
    bench.let_go()
    assert (bench.end(process).code, standing(bench), bench.calls) == (0, PASSED, [1, 2])
    assert [name for name in bench.names() if name in MARKERS] == ["execution:start", *MARKERS[2:]]
