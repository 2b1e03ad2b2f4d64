"""The components as tools: contract 4's names of components, actions and arguments."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest

from orchestrator.agent.ports import CallRequest, ToolOutcome
from orchestrator.testing import ScriptedGenerator
from orchestrator.workflow.components.bundle import WouldBlockError
from orchestrator.workflow.components.port import BudgetReachedError
from orchestrator.workflow.components.retry import Operation, OperationError
from orchestrator.workflow.components.testing import RecordingHost
from orchestrator.workflow.components.tools import ActionError, act, component_tools
from orchestrator_events.budget import Budget
from orchestrator_events.workflow import MetricRecorded

DONE = {"status": "success", "summary": "Done.", "files_changed": []}


def acted(host: RecordingHost, *values: object) -> list[Any]:
    """What the components answer to these actions of one phase."""

    async def phase() -> list[Any]:
        components = host.components()
        return [await act(components, value) for value in values]

    return asyncio.run(phase())


def test_the_contract_s_own_example_works_word_for_word() -> None:
    """Contract 4, component integration: spawn a subagent, record metrics, use the retry handler."""
    host = RecordingHost(
        generators={"one": ScriptedGenerator([json.dumps(DONE)])},
        operations={"test": Operation(lambda: "12 passed")},
    )

    subagent, count, retry = acted(
        host,
        {"subagent_spawner": {"action": "spawn", "subagent_type": "IMPLEMENTER", "context": {"story": "add"}}},
        {"metrics_collector": {"action": "record_count", "metric": "files_modified", "value": 2}},
        {"retry_handler": {"operation": "test", "max_retries": 3}},
    )

    assert (subagent["status"], subagent["type"], subagent["result"]) == ("success", "IMPLEMENTER", DONE)
    assert count == {"success": True}
    assert retry == {"success": True, "attempts": 1, "result": "12 passed"}
    assert [event.name for event in host.history] == [
        "subagent:spawned",
        "subagent:finished",
        "metric:recorded",
        "retry:attempted",
    ]


def test_an_operation_of_the_host_s_is_attempted_three_times_with_its_fix_between() -> None:
    """`operation: test, max_retries: 3` means three attempts, here as everywhere."""
    seen = list[str]()

    def attempt() -> None:
        seen.append("attempt")
        raise OperationError("2 failed")

    async def fix(_: object) -> str:
        seen.append("fix")
        return "patched"

    host = RecordingHost(operations={"test": Operation(attempt, fix)})

    (outcome,) = acted(host, {"retry_handler": {"operation": "test", "max_retries": 3}})

    assert seen == ["attempt", "fix", "attempt", "fix", "attempt"]
    assert outcome["escalation_required"] is True


def test_attempts_that_a_phase_made_itself_are_counted_the_same() -> None:
    """Without an operation of the host's the phase says how its attempt ended; the limit holds."""
    host = RecordingHost()
    failed = {"retry_handler": {"operation": "review", "success": False, "error": "no", "fix": "rewrote it"}}

    first, second, third = acted(host, failed, failed, failed)

    assert first == {"success": False, "attempts": 1, "attempts_left": 1, "escalation_required": False}
    assert (second["attempts"], second["escalation_required"], third) == (2, True, second)
    assert len(host.history) == 4  # two attempts, the learning record, the escalation


def test_the_contract_s_call_opens_an_operation_that_only_the_phase_can_attempt() -> None:
    """`retry_handler: {operation, max_retries}` is no mistake where nothing attempts it: it says how to go on."""
    host = RecordingHost()
    asked = {"retry_handler": {"operation": "test", "max_retries": 3}}
    failed = {"retry_handler": {**asked["retry_handler"], "success": False, "error": "1 failed", "fix": "the sign"}}

    first, noted, second, *_, third = acted(host, asked, failed, asked, failed, failed, asked)

    assert (first["attempts"], first["attempts_left"], second["attempts_left"]) == (0, 3, 2)
    assert first["next"] == (
        "attempt test yourself, and say after each attempt whether it succeeded: "
        '{"retry_handler": {"operation": "test", "max_retries": 3, "success": false, "error": "…", "fix": "…"}}'
    )
    assert noted == {"success": False, "attempts": 1, "attempts_left": 2, "escalation_required": False}
    assert (third["attempts"], third["escalation_required"]) == (3, True)
    assert len(host.history) == 5  # three attempts, the learning record, the escalation


def test_learnings_are_recorded_resolved_and_found() -> None:
    """The third failure like it says that a person should look for the cause."""
    host = RecordingHost()
    failed = {"learning_recorder": {"action": "record", "type": "test", "error": "KeyError: 'x'", "file": "a.py"}}

    *_, third, resolved, found, sums = acted(
        host,
        failed,
        failed,
        failed,
        {
            "learning_recorder": {
                "action": "resolve",
                "record_id": "lr-2026-01-01-001",
                "resolution": "checked the key",
                "success": True,
            }
        },
        {"learning_recorder": {"action": "find_similar", "type": "test", "error": "KeyError: 'y'"}},
        {"learning_recorder": {"action": "aggregate"}},
    )

    assert third == {"record_id": "lr-2026-01-01-003", "action": "pause_and_diagnose"}
    assert resolved["resolution"]["action"] == "checked the key"
    assert len(found["records"]) == 3
    assert (sums["records"], sums["resolved"]) == (3, 1)


def test_timers_tokens_and_summaries() -> None:
    """The other actions of the metrics collector."""
    host = RecordingHost()

    *_, stopped, _, summary = acted(
        host,
        {"metrics-collector": {"action": "start_timer", "timer_id": "t", "category": "chunk"}},
        {"metrics_collector": {"action": "stop_timer", "timer_id": "t"}},
        {
            "metrics_collector": {
                "action": "record_tokens",
                "metric": "search",
                "input_tokens": 3,
                "output_tokens": 4,
            }
        },
        {"metrics_collector": {"action": "get_summary"}},
    )

    assert stopped == {"success": True, "duration_ms": 0}
    assert (summary["timings"]["chunk"]["number"], summary["reported"]["input_tokens"]) == (1, 3)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (7, "ask one of subagent_spawner, metrics_collector"),
        ({}, "ask one of"),
        ({"retry_handler": {}, "metrics_collector": {}}, "and nothing else"),
        ({"state_manager": {"action": "write"}}, "no such component"),
        ({"metrics_collector": []}, "the arguments are an object"),
        ({"metrics_collector": {"action": "record_cout"}}, r"did you mean 'record_count'\?"),
        ({"metrics_collector": {"action": ["record_count"]}}, "no action"),
        ({"metrics_collector": {"metric": "x"}}, "no action"),
        (
            {"metrics_collector": {"action": "record_count", "metric": "bugs_found", "value": "2"}},
            "expected an integer",
        ),
        ({"metrics_collector": {"action": "record_count", "metric": "bugs_found", "value": -2}}, "whole number from 0"),
        ({"metrics_collector": {"action": "record_count", "metric": "bugs", "extra": 1}}, "unknown key"),
        ({"metrics_collector": {"action": "stop_timer", "timer_id": "t"}}, "does not run"),
        ({"subagent_spawner": {"action": "spawn", "subagent_type": "POET", "context": {}}}, "there is no role"),
        ({"subagent_spawner": {"action": "spawn", "subagent_type": "FIXER", "context": "all"}}, "expected a table"),
        ({"retry_handler": {"operation": "deploy", "success": True}}, "has no limit"),
        ({"retry_handler": {"operation": "test", "max_retries": 4, "success": False}}, "has at most 3 attempts"),
        ({"retry_handler": {"operation": "deploy", "max_retries": 999, "success": False}}, "has at most 10 attempts"),
        ({"learning_recorder": {"action": "record", "type": "x", "error": ""}}, "expected one of 'test'"),
        (
            {"learning_recorder": {"action": "resolve", "record_id": "1", "resolution": "", "success": True}},
            "no learning",
        ),
    ],
)
def test_what_can_be_put_right_is_told_and_changes_nothing(value: object, message: str) -> None:
    """A model's mistake is an error that says how to ask, never an event and never a crash."""
    host = RecordingHost()

    with pytest.raises(ActionError, match=message):
        acted(host, value)
    assert host.history == []


def test_what_asking_differently_does_not_put_right_ends_the_phase() -> None:
    """A budget that is used up is no mistake of the asker's."""
    host = RecordingHost(generators={"one": ScriptedGenerator([])}, budget=Budget(attempts=None, input_tokens=1))

    with pytest.raises(BudgetReachedError):
        acted(host, {"subagent_spawner": {"action": "spawn", "subagent_type": "FIXER", "context": {}}})


def test_an_agent_gets_the_components_as_its_tools() -> None:
    """Each has a name, a description and a valid schema; a mistake is a failed call that says how to ask."""
    host = RecordingHost()

    async def phase() -> list[ToolOutcome]:
        tools = component_tools(host.components())
        for tool in tools.values():
            assert tool.description
            jsonschema.Draft202012Validator.check_schema(tool.schema)
        request = {"action": "record_count", "metric": "bugs_found"}
        jsonschema.validate(request, dict(tools["metrics_collector"].schema))
        return [
            await tools["metrics_collector"].call(
                CallRequest(run_id="r", call_id="c", arguments=arguments, seconds=None)
            )
            for arguments in (request, {"action": "record_count"})
        ]

    done, failed = asyncio.run(phase())

    assert done == ToolOutcome(is_success=True, output='{"success":true}', data={"success": True})
    assert (failed.is_success, "metric" in failed.output) == (False, True)
    assert len(host.history) == 1


def test_a_sync_phase_waits_for_its_components_from_its_thread() -> None:
    """`components.wait` gives the result in a worker thread, and says what to do instead in the loop's own."""
    host = RecordingHost()

    async def phase() -> None:
        components = host.components()
        await asyncio.to_thread(lambda: components.wait(components.metrics.count("bugs_found")))
        with pytest.raises(WouldBlockError, match="write `await"):
            components.wait(components.metrics.count("bugs_found"))

    asyncio.run(phase())
    assert [type(event) for event in host.history] == [MetricRecorded]
