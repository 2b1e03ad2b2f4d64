"""Subagents side by side: no file belongs to two of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import pytest

from orchestrator.adapter_errors import GeneratorUnavailableError
from orchestrator.ports import Request
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow.components.fileclaims import FileConflictError, FileOverlapError
from orchestrator.workflow.components.settings import ComponentSettings, SubagentSettings
from orchestrator.workflow.components.subagentresult import ParallelResult
from orchestrator.workflow.components.subagents import SubagentTask, UnknownRoleError
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator_events.workflow import SubagentFinished


def task(number: int, *files: str) -> SubagentTask:
    """An implementer's task with files of its own."""
    return SubagentTask(role="IMPLEMENTER", context={"number": number}, files=files)


def output(*files: str, status: str = "success") -> str:
    """An implementer's output."""
    return json.dumps({"status": status, "summary": "x", "files_changed": list(files)})


def run(host: RecordingHost, tasks: Sequence[SubagentTask]) -> ParallelResult:
    """What a phase gets that spawns tasks side by side."""

    async def phase() -> ParallelResult:
        return await host.components().subagents.spawn_parallel(tasks)

    return asyncio.run(phase())


def host_with(*answers: object, parallel: int = 4) -> RecordingHost:
    """A host whose generator gives these answers."""
    settings = ComponentSettings(subagent_spawner=SubagentSettings(parallel=parallel))
    return RecordingHost(generators={"one": ScriptedGenerator(answers)}, settings=settings)


def test_tasks_with_files_of_their_own_run_and_answer_in_order() -> None:
    """Results stand in the order of the tasks; partial where one did not succeed."""
    host = host_with(output("a.py"), output(status="failure"))

    both = run(host, [task(1, "a.py"), task(2, "b.py")])

    assert (both.status, [result.status for result in both.results]) == ("partial", ["success", "failure"])


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (2, 2)])
def test_as_many_run_at_once_as_the_domain_approves(parallel: int, most: int) -> None:
    """One after the other unless the domain approves more."""
    under_way, seen = 0, list[int]()

    async def work(_: Request) -> str:
        nonlocal under_way
        under_way += 1
        seen.append(under_way)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        under_way -= 1
        return output()

    run(host_with(*[work] * 4, parallel=parallel), [task(number, f"{number}.py") for number in range(4)])

    assert (max(seen), len(seen)) == (most, 4)


@pytest.mark.parametrize(
    ("first", "second"), [("a.py", "a.py"), ("src/A.py", "src/a.py"), ("src", "src/a.py"), ("é.py", "e\u0301.py")]
)
def test_tasks_that_name_the_same_file_are_refused_before_anything_is_spent(first: str, second: str) -> None:
    """Also where the paths are one only on some file systems, or one is a directory of the other."""
    host = host_with(output())

    with pytest.raises(FileOverlapError, match="tasks 1 and 2 cannot run side by side") as caught:
        run(host, [task(1, first), task(2, second)])

    assert (caught.value.path, caught.value.tasks, host.history) == (second, (1, 2), [])


@pytest.mark.parametrize(
    ("declared", "changed"),
    [
        ([["a.py"], ["b.py"]], [["a.py"], ["A.PY"]]),
        ([[], []], [["c.py"], ["c.py"]]),
        ([["a.py"], []], [[], ["a.py"]]),
    ],
)
def test_the_same_file_in_two_outputs_is_fatal(declared: list[list[str]], changed: list[list[str]]) -> None:
    """Or a file in one output that is another task's: the phase ends with an error that names it, all recorded."""
    host = host_with(*(output(*files) for files in changed))

    with pytest.raises(FileConflictError, match="subagents 1 and 2 both changed"):
        run(host, [task(number, *files) for number, files in enumerate(declared)])

    assert sum(isinstance(event, SubagentFinished) for event in host.history) == 2


def test_one_that_cannot_go_on_ends_all_and_leaves_no_hold() -> None:
    """The others are cancelled, charged in full, and nothing stays reserved."""

    async def work(request: Request) -> str:
        if '"number": 1' in request.prompt:
            raise GeneratorUnavailableError("gone")
        await asyncio.sleep(60)
        return output()

    host = host_with(work, work, work)

    with pytest.raises(GeneratorUnavailableError):
        run(host, [task(number) for number in (0, 1, 2)])

    ends = [event for event in host.history if isinstance(event, SubagentFinished)]
    assert sorted(event.error[:15] for event in ends) == ["GeneratorUnavai", "outcome unknown", "outcome unknown"]
    assert host.ledger.holds == {}


def test_every_task_is_looked_at_before_the_first_one_starts() -> None:
    """A role that does not exist or a path that is unsafe costs nothing."""
    host = host_with(output())

    with pytest.raises(UnknownRoleError):
        run(host, [task(1), SubagentTask(role="POET", context={})])
    with pytest.raises(ValueError, match=r"task 2: the task's file '\.\./x' has '\.\.' as a part of its path"):
        run(host, [task(1), task(2, "../x")])
    assert host.history == []
