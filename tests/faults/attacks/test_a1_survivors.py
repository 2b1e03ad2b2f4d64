"""A1: programs that multiply, leave their session or outlive the call."""

from __future__ import annotations

import os
import select
import time
from pathlib import Path
from typing import Any

import pytest

GONE_WITHIN_S = 0.1
LIFETIME_S = 0.9
"""How long what re-forks goes on where nothing stops it, seconds."""
DAEMONS = "processes that leave the session"
BOMB = """
import json, os, sys, time
settings = json.loads(sys.argv[1])
count, is_refused = 1, False
while not is_refused and count < settings['most']:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
    except OSError:
        is_refused = True
print(count, flush=True)
while is_refused:
    try:
        if os.fork() == 0:
            time.sleep(60)
    except OSError:
        pass
time.sleep(settings['stays'])
"""
LEAVE = """
import json, os, sys, time
settings = json.loads(sys.argv[1])
until = time.monotonic() + settings['lives']
def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.closerange(0, settings['keeps'])
            os.closerange(settings['keeps'] + 1, 256)
            return True
        os._exit(0)
    os.wait()
"""
DAEMON = f"""{LEAVE}
if leave():
    time.sleep(settings['lives'])
    os._exit(0)
time.sleep(settings['stays'])
"""
HYDRA = f"""{LEAVE}
if leave():
    while time.monotonic() < until:
        if os.fork() == 0:
            os.setsid()
        else:
            time.sleep(0.001)
            os._exit(0)
    os._exit(0)
time.sleep(settings['stays'])
"""
HEARTBEAT = f"""{LEAVE}
if leave():
    while time.monotonic() < until:
        os.write(settings['keeps'], b'x')
        time.sleep(0.002)
    os._exit(0)
time.sleep(max(settings['stays'], 0.1))
"""
ENDINGS = [pytest.param(0, id="it ends"), pytest.param(60, id="it hangs")]


@pytest.mark.parametrize("stays", ENDINGS)
def test_a1_no_daemon_is_alive_after_the_call(ground: Any, stays: int) -> None:
    """A hundred milliseconds after it nothing runs any more, at a level that does not say it cannot hold daemons."""
    settings = {"lives": LIFETIME_S, "stays": stays, "keeps": 256}
    completed = ground.run(DAEMON, settings, seconds=0.4 if stays else 20)
    left = ground.survivors()
    assert (completed.timed_out, bool(left)) == (stays > 0, ground.declares(DAEMONS))
    assert not (ground.is_strong and left)


@pytest.mark.parametrize("stays", ENDINGS)
def test_a1_no_hydra_is_alive_after_the_call(ground: Any, stays: int) -> None:
    """What is another process each millisecond shows by a pipe that its children get before it dies."""
    reading, writing = os.pipe()
    settings = {"lives": LIFETIME_S, "stays": stays, "keeps": writing}
    try:
        completed = ground.run(HYDRA, settings, seconds=0.4 if stays else 20, inherit=[writing])
        os.close(writing)
        lives = not is_over(reading, GONE_WITHIN_S)
        assert (completed.timed_out, lives) == (stays > 0, ground.declares(DAEMONS))
        assert not (ground.is_strong and lives)
        assert is_over(reading, 5)
    finally:
        os.close(reading)


@pytest.mark.parametrize("stays", ENDINGS)
def test_a1_no_heart_beats_after_the_call(ground: Any, stays: int, tmp_path: Path) -> None:
    """A file of the host, which the program was handed open, is changed no more."""
    heart = tmp_path / "heart"
    with heart.open("wb") as file:
        settings = {"lives": LIFETIME_S, "stays": stays, "keeps": file.fileno()}
        ground.run(HEARTBEAT, settings, seconds=0.4 if stays else 20, inherit=[file.fileno()])
        ground.survivors()
    beats = heart.stat().st_size
    time.sleep(0.1)
    later = heart.stat().st_size
    assert (beats > 0, later > beats) == (True, ground.declares(DAEMONS))
    assert not (ground.is_strong and later > beats)


def test_a1_a_fork_bomb_is_bounded_and_ends_with_the_call(ground: Any) -> None:
    """It gets no more processes than it may have, or the level says so; and none of them stays."""
    completed = ground.run(BOMB, {"most": 60, "stays": 60}, seconds=0.5, limits={"processes": 24})
    left = ground.survivors()
    count = int(completed.stdout)
    assert ground.holds(10 < count <= 24, "number of processes"), count
    assert (completed.timed_out, left) == (True, [])
    assert not (ground.is_strong and ground.profile.owns_files and count > 24)


def is_over(pipe: int, seconds: float) -> bool:
    """Whether nobody holds the other end of a pipe any more, at most that much later."""
    poll = select.poll()
    poll.register(pipe, 0)  # that it ends is told in any case
    return bool(poll.poll(seconds * 1000))
