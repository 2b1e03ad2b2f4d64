"""Signals at the real command, in each state: the run ends in order, and the command it prints goes on with it."""

from __future__ import annotations

import shlex
import signal
import subprocess
from contextlib import suppress
from random import Random
from typing import Any

import pytest

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}
PLACES = ("generating-1", "evaluating-2", "generating-2", "evaluating-1")
GO_ON = "go on with it: orchestrator "


def resume_command(err: str) -> list[str]:
    """The arguments of the command that a stopped run told its user to go on with."""
    (line,) = (line for line in err.splitlines() if line.startswith(GO_ON))
    return shlex.split(line.removeprefix(GO_ON))


def finished(bench: Any, *arguments: str) -> tuple[int, str, list[tuple[int, list[str]]], int]:
    """Run a command; its status, and what came of the run: status, verdicts, attempts."""
    code = bench(*arguments).code
    told = bench.result()
    return code, told["status"], [(each["attempt"], each["passed"]) for each in told["history"]], told["attempts"]


PASSED = (0, "passed", [(1, ["names_red"]), (2, ["names_red", "names_green"])], 2)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("number", CODES)
def test_first_signal(bench: Any, alive: Any, is_long: bool, number: signal.Signals, place: str) -> None:
    """Status 128 and the signal's number; programs gone, end markers written; the printed command finishes the run."""
    if not is_long and place not in PLACES[:2]:
        pytest.skip("the other attempt's states are in the long mode: ORCHESTRATOR_FAULTS=long")
    bench.pause_at(place)
    process = bench.start(*bench.run_arguments)
    programs = bench.inside()
    process.send_signal(number)
    ended = bench.end(process)
    assert (ended.code, alive(programs)) == (CODES[number], [])
    assert bench.result()["state"] == place.partition("-")[0]
    names = bench.names()
    assert (names[-2:], names.count("execution:end")) == (["orchestrator:complete", "execution:end"], 1)
    assert finished(bench, *resume_command(ended.err)) == PASSED
    lost = [int(place[-1])] if place.startswith("generating") else []
    assert sorted(bench.calls) == sorted([1, 2, *lost])


@pytest.mark.parametrize("place", PLACES[:2])
def test_second_signal(bench: Any, alive: Any, place: str) -> None:
    """A second SIGINT does not wait for the first to do its work; nothing is left running and resume still works."""
    bench.pause_at(place)
    process = bench.start(*bench.run_arguments)
    programs = bench.inside()
    process.send_signal(signal.SIGSTOP)  # both are then there before the process can act on either
    for number in (signal.SIGINT, signal.SIGTERM):
        process.send_signal(number)
    process.send_signal(signal.SIGCONT)
    ended = bench.end(process)
    assert ended.code in CODES.values()
    assert alive(programs) == []
    assert finished(bench, "resume", bench.run_id, "--runs", "runs") == PASSED


def test_signal_while_the_first_is_acted_on(bench: Any, alive: Any) -> None:
    """Said to end in order and told again, the process ends at once, its programs with it, and resume works."""
    bench.pause_at("generating-1")
    process = bench.start(*bench.run_arguments)
    programs = bench.inside()
    process.send_signal(signal.SIGINT)
    assert any("SIGINT: ending the run in order" in line for line in process.stderr)
    process.send_signal(signal.SIGINT)
    ended = bench.end(process)
    assert (ended.code, alive(programs)) == (130, [])
    assert finished(bench, "resume", "last", "--runs", "runs") == PASSED


def test_signal_during_a_resume(bench: Any, alive: Any) -> None:
    """A resumed run is stopped and resumed like any other: three invocations, each closed once."""
    for place in ("generating-1", "evaluating-2"):
        bench.pause_at(place)
        command = ("resume", "last") if place == "evaluating-2" else bench.run_arguments
        process = bench.start(*command)
        programs = bench.inside()
        process.send_signal(signal.SIGTERM)
        assert (bench.end(process).code, alive(programs)) == (143, [])
    assert finished(bench, "resume", "last") == PASSED
    names = bench.names()
    ends = [name for name in names if name in ("execution:start", "orchestrator:complete", "execution:end")]
    assert ends == ["execution:start", "orchestrator:complete", "execution:end"] * 3


def test_signal_at_any_moment(bench: Any, is_long: bool) -> None:
    """Wherever a signal falls, resume makes of the run what it would have been, or finds that it is that already."""
    random = Random(9)
    for _ in range(60 if is_long else 2):
        number = random.choice(list(CODES))
        process = bench.start(*bench.run_arguments)
        run_id = process.stderr.readline().split()[1]  # it is under way: its first record is shown
        with suppress(subprocess.TimeoutExpired):
            process.wait(random.uniform(0, 0.25))
        process.send_signal(number)
        ended = bench.end(process)
        assert ended.code in (0, CODES[number], -number)
        resumed = bench("resume", run_id)
        assert resumed.code == 0 or (resumed.code == 7 and "it passed: there is nothing left to do" in resumed.err)
        assert "conforms after 2 attempts" in bench("show", run_id).out.splitlines()
