"""A4: programs that misuse their standard streams to be waited for."""

from __future__ import annotations

from typing import Any

import pytest

PROMPT = b"x" * 1_000_000
AT_ONCE_US = 5_000_000
"""Far less than the sixty seconds that each of them sleeps, on a machine under load, microseconds."""
SLEEPER = """
import os, sys, time
reading, writing = os.pipe()
if os.fork() == 0:
    if {leaves}:
        os.setsid()
    os.write(writing, b'x')
    time.sleep({sleeps})
    os._exit(0)
os.read(reading, 1)
print('ended')
"""


@pytest.mark.parametrize("leaves", [False, True], ids=["child", "daemon"])
def test_a4_a_grandchild_that_holds_the_pipes_is_not_waited_for(ground: Any, leaves: bool) -> None:
    """What was written arrives, and the call ends soon after the program does."""
    completed = ground.run(SLEEPER.format(leaves=leaves, sleeps=8), stdin=PROMPT)
    held = completed.duration_us < AT_ONCE_US
    assert (completed.returncode, completed.stdout, completed.timed_out, held) == (0, b"ended\n", False, True)


@pytest.mark.parametrize(
    "program",
    [
        "print('ended')",
        "import os; os.close(0); print('ended')",
        "import os; os.read(0, 10); os.close(0); print('ended')",
        "import os; os.read(0, 0); os.lseek(0, 0, 2); os.dup2(os.open('/dev/null', 0), 0); print('ended')",
    ],
    ids=["never reads", "closes it early", "reads a little", "turns away"],
)
def test_a4_a_prompt_that_is_not_read_harms_nobody(ground: Any, program: str) -> None:
    """A megabyte of it neither blocks nor breaks the engine."""
    completed = ground.run(program, stdin=PROMPT)
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, b"ended\n", b"")


@pytest.mark.parametrize("numbers", ["range(3)", "range(256)"], ids=["standard streams", "everything"])
def test_a4_a_program_that_closes_everything_is_still_bounded(ground: Any, numbers: str) -> None:
    """It counts as running until its time is over, and is gone then."""
    program = f"import os, time\nfor number in {numbers}:\n    try: os.close(number)\n    except OSError: pass\n"
    completed = ground.run(f"{program}time.sleep(60)", stdin=PROMPT, seconds=0.3, report_limit=100)
    assert (completed.timed_out, completed.duration_us < 900_000, ground.survivors()) == (True, True, [])


def test_a4_input_cannot_be_made_to_grow(ground: Any) -> None:
    """The file in memory that input is given as cannot be written to, which would fill the engine's machine."""
    program = (
        "import errno, os\n"
        "def refused(act):\n"
        "    try: act()\n"
        "    except OSError as error: return errno.errorcode[error.errno]\n"
        "print(refused(lambda: os.write(os.open('/dev/stdin', os.O_RDWR), b'x')),"
        " refused(lambda: os.ftruncate(0, 1 << 20)))"
    )
    said = ground.run(program, stdin=b"prompt").stdout.split()
    assert b"None" not in said, said
