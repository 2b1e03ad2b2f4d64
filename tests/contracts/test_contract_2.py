"""Contract 2, an orchestrator of Amplifier: protocol, flow, context, providers, configuration, on the real kernel."""

from __future__ import annotations

import asyncio
import inspect
import logging
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest

from orchestrator.amplifier import MODULE_ID, ConformanceLoop, mount
from orchestrator.journal.sqlite import SqliteJournal
from orchestrator.testing.kernel import (
    AnsweringHooks,
    FunctionTool,
    ListContext,
    ScriptedChat,
    calling,
    kernel_host,
    saying,
)

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")
session_module = pytest.importorskip("amplifier_core.session")

BOTH_KERNELS = pytest.mark.parametrize(
    "kind", [session_module.AmplifierSession, core.AmplifierSession], ids=["python", "rust"]
)


def echo(name: str = "echo") -> FunctionTool:
    """A tool that says what it was given."""
    return FunctionTool(name, lambda given: core.ToolResult(success=True, output=given))


def call(name: str = "echo", identity: str = "c1", **arguments: Any) -> Any:
    """An answer with one tool call."""
    return calling((identity, name, arguments))


def executed(config: dict[str, Any] | None = None, **parts: Any) -> tuple[str, AnsweringHooks, ListContext]:
    """One prompt given to a bare loop, without a coordinator unless one is given."""
    hooks, context = parts.pop("hooks", None) or AnsweringHooks(), parts.pop("context", None) or ListContext()
    prompt, providers, tools = parts.pop("prompt", "Go."), parts.pop("providers"), parts.pop("tools", {})
    answer = asyncio.run(ConformanceLoop(config).execute(prompt, context, providers, tools, hooks, **parts))
    return answer, hooks, context


def test_execute_has_the_signature_of_the_protocol() -> None:
    """`async def execute(self, prompt, context, providers, tools, hooks, **kwargs) -> str`."""
    signature = inspect.signature(ConformanceLoop.execute)
    named = [(each.name, each.kind.name) for each in signature.parameters.values()]
    assert named == [
        *((name, "POSITIONAL_OR_KEYWORD") for name in ("self", "prompt", "context", "providers", "tools", "hooks")),
        ("kwargs", "VAR_KEYWORD"),
    ]
    assert inspect.iscoroutinefunction(ConformanceLoop.execute)


def test_the_protocol_has_no_parameter_that_we_lack() -> None:
    """The real kernel's protocol and ours name the same parameters."""
    theirs = inspect.signature(core.Orchestrator.execute).parameters
    assert list(theirs) == list(inspect.signature(ConformanceLoop.execute).parameters)


@BOTH_KERNELS
def test_the_kernel_finds_mounts_and_executes_us(kind: type[Any]) -> None:
    """The entry point of pyproject.toml is what the mount plan names; the coordinator is passed by keyword."""

    async def scenario() -> tuple[str, bool, list[str]]:
        async with kernel_host(kind, providers=[ScriptedChat(["Hello."])]) as host:
            answer = await host.session.execute("Hi.")
            is_ours = isinstance(host.coordinator.get("orchestrator"), ConformanceLoop)
            return answer, is_ours, [message["role"] for message in host.context.messages]

    assert asyncio.run(scenario()) == ("Hello.", True, ["user", "assistant"])


def test_the_entry_point_is_mount() -> None:
    """`[project.entry-points."amplifier.modules"]`."""
    (found,) = [each for each in entry_points(group="amplifier.modules") if each.name == MODULE_ID]
    assert found.load() is mount


def test_mount_returns_a_cleanup_callable() -> None:
    """Returns: orchestrator instance, cleanup callable, or None; we return the second, which may be called twice."""

    async def scenario() -> tuple[bool, int]:
        coordinator = core.MockCoordinator()
        cleanup = await mount(coordinator, {})
        assert cleanup is not None
        await cleanup()
        await cleanup()
        contributed = await coordinator.collect_contributions("observability.events")
        return isinstance(coordinator.get("orchestrator"), ConformanceLoop), len(contributed)

    assert asyncio.run(scenario()) == (True, 1)


@pytest.mark.parametrize(
    ("config", "faults"),
    [
        ({"max_iteration": 5}, ["$.max_iteration", "did you mean 'max_iterations'"]),
        ({"max_iterations": -1, "seconds": "soon"}, ["$.max_iterations", "above 0", "$.seconds"]),
        ({"max_iterations": None}, ["$.max_iterations"]),
        ({"max_iterations": True}, ["$.max_iterations"]),
        ({"retries": {"first": 1}, "tokens": 0}, ["$.retries.first", "$.tokens"]),
        ({"harness": {"rules": ["no-such-rule"]}}, ["no-such-rule"]),
        ({"journal": "/nowhere/at/all/runs.sqlite"}, ["/nowhere/at/all/runs.sqlite"]),
        (["max_iterations"], ["loop-conformance"]),
    ],
)
def test_a_bad_config_degrades_to_none(config: Any, faults: list[str], caplog: pytest.LogCaptureFixture) -> None:
    """None for graceful degradation: nothing is mounted, and one log line names every fault with its path."""

    async def scenario() -> tuple[object, object]:
        coordinator = core.MockCoordinator()
        return await mount(coordinator, config), coordinator.get("orchestrator")

    with caplog.at_level(logging.ERROR, "orchestrator"):
        assert asyncio.run(scenario()) == (None, None)
    (record,) = [each for each in caplog.records if each.name == "orchestrator.amplifier"]
    assert [fault for fault in faults if fault not in record.getMessage()] == []


def test_the_example_of_the_contract_runs_as_printed() -> None:
    """Use test utilities from amplifier_core/testing.py: a bare registry, a mock context and a mock tool."""

    class MockProvider:
        name = "test"

        async def complete(self, _request: object, **_: object) -> Any:
            return type("Response", (), {"content": "Fine."})()

    async def test_orchestrator_basic() -> None:
        orchestrator = ConformanceLoop(config={})
        context = core.MockContextManager()
        providers = {"test": MockProvider()}
        tools = {"test_tool": core.MockTool()}
        hooks = core.HookRegistry()

        result = await orchestrator.execute(
            prompt="Test prompt",
            context=context,
            providers=providers,
            tools=tools,
            hooks=hooks,
        )

        assert isinstance(result, str)
        assert len(context.messages) > 0
        assert result == "Fine."

    asyncio.run(test_orchestrator_basic())


def test_the_event_recorder_will_do_as_hooks() -> None:
    """EventRecorder has `emit` and nothing else, and answers without data."""

    async def scenario() -> tuple[str, list[str]]:
        recorder = core.EventRecorder()
        provider = ScriptedChat([call(), "Done."])
        tools = {"echo": core.MockTool("echo")}
        answer = await ConformanceLoop().execute("Go.", ListContext(), {"p": provider}, tools, recorder)
        return answer, [name for name, _ in recorder.events if name.startswith(("execution", "orchestrator"))]

    assert asyncio.run(scenario()) == ("Done.", ["execution:start", "orchestrator:complete", "execution:end"])


@BOTH_KERNELS
def test_the_flow_has_its_eight_steps_in_order(kind: type[Any]) -> None:
    """The diagram "Execution Flow", 1 to 8, with the user's message before and the final text after them."""
    steps: list[str] = []

    class Context(ListContext):
        async def add_message(self, message: dict[str, Any]) -> None:
            steps.append(f"add {message['role']}")
            await super().add_message(message)

    def complete(answer: Any) -> Callable[[Any], Any]:
        def answered(_request: Any) -> Any:
            steps.append("complete")
            return answer

        return answered

    def execute(_input: dict[str, Any]) -> Any:
        steps.append("execute")
        return core.ToolResult(success=True, output="ok")

    async def note(event: str, _data: dict[str, Any]) -> Any:
        steps.append(event)
        return core.HookResult(action="continue")

    async def scenario() -> str:
        provider = ScriptedChat([complete(call("act")), complete(saying("Done."))])
        tool, context = FunctionTool("act", execute), Context()
        async with kernel_host(kind, providers=[provider], tools=[tool], context=context) as host:
            for event in ("provider:request", "provider:response", "tool:pre", "tool:post"):
                host.hook(event, note, name="note")
            return str(await host.session.execute("Go."))

    assert asyncio.run(scenario()) == "Done."
    assert steps == [
        "add user",
        "provider:request",  # 1
        "complete",  # 2
        "provider:response",  # 3
        "add assistant",  # 4
        "tool:pre",  # 5
        "execute",  # 6
        "tool:post",  # 7
        "add tool",  # 8
        "provider:request",
        "complete",
        "provider:response",
        "add assistant",
    ]


def test_unknown_arguments_are_accepted() -> None:
    """Additional kernel-injected arguments come by keyword; one of tomorrow's kernel does no harm."""
    answer, _, _ = executed(providers={"p": ScriptedChat(["Fine."])}, tomorrow=object(), coordinator=None)
    assert answer == "Fine."


def test_messages_are_stored_in_the_shapes_of_the_contract() -> None:
    """Context Management: user, assistant and tool messages; each tool message names the call it answers."""
    provider = ScriptedChat([calling(("c1", "echo", {"a": 1}), ("c2", "echo", {}), text="Let me look."), "Done."])
    _, _, context = executed(providers={"p": provider}, tools={"echo": echo()})
    assert context.messages == [
        {"role": "user", "content": "Go."},
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Let me look."},
                {"type": "tool_call", "id": "c1", "name": "echo", "input": {"a": 1}},
                {"type": "tool_call", "id": "c2", "name": "echo", "input": {}},
            ],
            "tool_calls": [
                {"id": "c1", "tool": "echo", "arguments": {"a": 1}},
                {"id": "c2", "tool": "echo", "arguments": {}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "name": "echo", "content": '{"a": 1}'},
        {"role": "tool", "tool_call_id": "c2", "name": "echo", "content": "{}"},
        {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
    ]


def test_every_request_reads_the_messages_from_the_context_for_its_provider() -> None:
    """The context handles compaction internally: messages are read for each request, and never kept."""

    class Forgetful(ListContext):
        async def get_messages_for_request(
            self, token_budget: int | None = None, provider: object = None
        ) -> list[dict[str, Any]]:
            found = await super().get_messages_for_request(token_budget, provider)
            return [{"role": "user", "content": f"{len(found)} so far"}]

        async def get_messages(self) -> list[dict[str, Any]]:
            raise AssertionError("the loop reads in one way only")

    provider, context = ScriptedChat([call(), "Done."]), Forgetful()
    executed(providers={"p": provider}, tools={"echo": echo()}, context=context)
    sent = [[message.content for message in request.messages] for request in provider.requests]
    assert (sent, context.readers) == ([["1 so far"], ["3 so far"]], [provider, provider])


def test_a_request_offers_the_tools_with_their_schemas() -> None:
    """What `provider.complete` gets is the kernel's ChatRequest."""
    provider = ScriptedChat(["Fine."])
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tool = FunctionTool("look", str, description="Looks.", input_schema=schema)
    executed({"model": "m1", "parameters": {"temperature": 0.5}}, providers={"p": provider}, tools={"look": tool})
    (request,) = provider.requests
    (spec,) = request.tools
    assert isinstance(request, core.ChatRequest)
    assert (spec.name, spec.description, spec.parameters) == ("look", "Looks.", schema)
    assert (request.model, request.temperature) == ("m1", 0.5)


@pytest.mark.parametrize(
    ("config", "options", "priorities", "chosen"),
    [
        ({}, {}, (None, None, None), "a"),
        ({}, {}, (None, 50, 20), "c"),
        ({"default_provider": "b"}, {}, (None, None, 1), "b"),
        ({"default_provider": "b"}, {"request_options": {"provider": "a"}}, (None, None, 1), "a"),
        ({"default_provider": "b"}, {"provider": "c"}, (None, None, None), "c"),
    ],
    ids=["first key", "declared priority", "default_provider", "request option", "argument"],
)
def test_provider_selection(
    config: dict[str, Any], options: dict[str, Any], priorities: tuple[int | None, ...], chosen: str
) -> None:
    """Get the default or configured provider, or allow per-request provider selection; several are supported."""
    providers = {
        name: ScriptedChat([name], priority=priority) for name, priority in zip("abc", priorities, strict=True)
    }
    answer, hooks, _ = executed(config, providers=providers, **options)
    assert (answer, hooks.payloads("provider:request")[0]["provider"]) == (chosen, chosen)


@pytest.mark.parametrize("config", [{"default_provider": "d"}, {}])
def test_an_unknown_provider_is_an_error_that_lists_the_choices(config: dict[str, Any]) -> None:
    """Nobody is called instead; the brackets of the execution are closed all the same."""
    providers, hooks = {"a": ScriptedChat(), "b": ScriptedChat()}, AnsweringHooks()
    options = {} if config else {"provider": "d"}
    with pytest.raises(Exception, match=r"'d'.*a, b"):
        executed(config, providers=providers, hooks=hooks, **options)
    assert [hooks.names[0], *hooks.names[-2:]] == ["execution:start", "orchestrator:complete", "execution:end"]
    assert [provider.requests for provider in providers.values()] == [[], []]


def test_the_config_reaches_us_in_both_forms_of_the_plan() -> None:
    """Nested under session.orchestrator, or flat with a top-level orchestrator.config."""

    async def scenario() -> tuple[int, int]:
        providers = [ScriptedChat()]
        async with kernel_host(core.AmplifierSession, config={"max_iterations": 3}, providers=providers) as host:
            nested = host.coordinator.get("orchestrator").config.max_iterations
        plan = {"session": {"orchestrator": MODULE_ID}, "orchestrator": {"config": {"max_iterations": 4}}}
        async with kernel_host(core.AmplifierSession, plan=plan, providers=providers) as host:
            return nested, host.coordinator.get("orchestrator").config.max_iterations

    assert asyncio.run(scenario()) == (3, 4)


def test_the_journal_of_the_mount_plan_records_every_execution(tmp_path: Path) -> None:
    """The kernel owns the transcript; what was done is journaled, and can be audited."""
    file = tmp_path / "runs.sqlite"

    async def scenario() -> tuple[str, ...]:
        config, provider = {"journal": str(file)}, ScriptedChat([call(), "One.", "Two."])
        async with kernel_host(core.AmplifierSession, config=config, providers=[provider], tools=[echo()]) as host:
            await host.session.execute("First.")
            await host.session.execute("Second.")
        with SqliteJournal(file, read_only=True) as journal:
            return await journal.run_ids()

    assert len(asyncio.run(scenario())) == 2


def test_streaming_is_an_async_generator() -> None:
    """Supports streaming via async generators: what happens, as it happens, and at the end the answer."""

    async def scenario() -> list[Any]:
        provider = ScriptedChat([call(), "Done."])
        hooks, tools = AnsweringHooks(), {"echo": echo()}
        stream = ConformanceLoop().stream("Go.", ListContext(), {"p": provider}, tools, hooks)
        assert inspect.isasyncgen(stream)
        return [event async for event in stream]

    *told, answer = asyncio.run(scenario())
    assert answer == "Done."
    assert {"content_block:end", "action:finished"} <= {event.name for event in told}


def test_the_package_says_of_itself_what_it_is() -> None:
    """A kernel with a source resolver asks for the type before it mounts."""
    import orchestrator.amplifier as package

    assert package.__amplifier_module_type__ == "orchestrator"


def test_importing_the_package_does_not_import_the_kernel() -> None:
    """`import orchestrator` leaves the adapter alone, and the adapter's own import leaves the kernel alone."""
    code = (
        "import sys, orchestrator\n"
        "assert not [name for name in sys.modules if name.startswith('orchestrator.amplifier')]\n"
        "import orchestrator.amplifier\n"
        "print([name for name in sys.modules if name.startswith(('amplifier_core', 'pydantic'))])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
