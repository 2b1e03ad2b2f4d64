"""Contract 2, "Hook Processing": every action of a HookResult, from real hooks of a real session and from raw mocks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from orchestrator.amplifier import MODULE_ID, ConformanceLoop
from orchestrator.testing.kernel import (
    AnsweringHooks,
    FunctionTool,
    KernelHost,
    ListContext,
    ScriptedChat,
    calling,
    kernel_host,
)

core = pytest.importorskip("amplifier_core", reason="amplifier-core is not installed")
session_module = pytest.importorskip("amplifier_core.session")

BOTH_KERNELS = pytest.mark.parametrize(
    "kind", [session_module.AmplifierSession, core.AmplifierSession], ids=["python", "rust"]
)
Prepare = Callable[[KernelHost], None]


@attrs.define(eq=False)
class Approvals:
    """An approval system of the host's that gives one answer, and remembers what it was asked."""

    answer: str | Exception
    asked: list[tuple[str, list[str], float, str]] = attrs.Factory(list[tuple[str, list[str], float, str]])

    async def request_approval(self, prompt: str, options: list[str], timeout: float, default: str) -> str:  # noqa: ASYNC109 -- the kernel's signature
        """The answer."""
        self.asked.append((prompt, options, timeout, default))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@attrs.define(eq=False)
class Display:
    """A display system of the host's that remembers what it showed."""

    shown: list[tuple[str, str, str]] = attrs.Factory(list[tuple[str, str, str]])

    def show_message(self, message: str, level: str, source: str = "hook") -> None:
        """Remember it."""
        self.shown.append((message, level, source))


def echo(name: str = "echo") -> FunctionTool:
    """A tool that says what it was given."""
    return FunctionTool(name, lambda given: core.ToolResult(success=True, output=given))


def asks(**arguments: Any) -> Any:
    """An answer with one call of echo."""
    return calling(("c1", "echo", arguments))


def run(
    kind: type[Any], answers: list[Any], prepare: Prepare, tools: list[Any] | None = None, **parts: Any
) -> tuple[str, KernelHost, ScriptedChat]:
    """One prompt in a real session whose hooks were prepared."""
    provider = ScriptedChat(answers)

    async def scenario() -> tuple[str, KernelHost, ScriptedChat]:
        async with kernel_host(kind, providers=[provider], tools=tools or [echo()], **parts) as host:
            prepare(host)
            return await host.session.execute("Go."), host, provider

    return asyncio.run(scenario())


def raw(
    answers: list[Any], hook_answers: dict[str, Any], tools: list[Any] | None = None, **options: Any
) -> tuple[str, AnsweringHooks, ListContext, ScriptedChat]:
    """One prompt with raw mocks, without a coordinator unless one is given."""
    provider, context, hooks = ScriptedChat(answers), ListContext(), AnsweringHooks(hook_answers)
    mounted = {tool.name: tool for tool in (tools or [echo()])}
    answer = asyncio.run(ConformanceLoop().execute("Go.", context, {"p": provider}, mounted, hooks, **options))
    return answer, hooks, context, provider


def results(context: ListContext) -> dict[str, str]:
    """What the model reads of each call."""
    return {message["tool_call_id"]: message["content"] for message in context.messages if message["role"] == "tool"}


def shapes(messages: list[Any]) -> list[tuple[str, str]]:
    """Role and text of messages, be they the context's or a request's."""
    found = []
    for message in messages:
        role = message["role"] if isinstance(message, dict) else message.role
        content = message["content"] if isinstance(message, dict) else message.content
        if not isinstance(content, str):
            content = "".join(
                str(getattr(block, "text", None) or (block.get("text", "") if isinstance(block, dict) else ""))
                for block in content
            )
        found.append((role, content))
    return found


@BOTH_KERNELS
def test_deny_does_not_execute_the_tool(kind: type[Any]) -> None:
    """`if pre_result.action == "deny": return ToolResult(success=False, output=pre_result.reason)`."""
    tool = echo()
    deny = core.HookResult(action="deny", reason="not in production")
    answer, host, provider = run(kind, [asks(), "Understood."], lambda host: host.answer("tool:pre", deny), [tool])
    assert (answer, tool.inputs, len(provider.requests)) == ("Understood.", [], 2)
    assert "not in production" in results(host.context)["c1"]
    assert host.payloads("tool:post") == []


@BOTH_KERNELS
@pytest.mark.parametrize("event", ["prompt:submit", "provider:request", "provider:response"])
def test_deny_elsewhere_ends_the_execution_in_order(kind: type[Any], event: str) -> None:
    """The user is told the reason; the events end as they do after an error, and the transcript stays whole."""
    deny = core.HookResult(action="deny", reason="out of hours")
    answer, host, _ = run(kind, ["Secret."], lambda host: host.answer(event, deny))
    (complete,), (end,) = host.payloads("orchestrator:complete"), host.payloads("execution:end")
    assert answer == "Operation denied: out of hours"
    assert (complete["status"], end["status"], end["response"]) == ("incomplete", "error", "")
    assert [text for _, text in shapes(host.context.messages) if "Secret." in text] == []


@BOTH_KERNELS
def test_a_denial_at_tool_post_withholds_the_result(kind: type[Any]) -> None:
    """The tool ran; what it found is not shown to the model, but the reason is."""
    deny = core.HookResult(action="deny", reason="contains a password")
    tool = FunctionTool("echo", lambda _: "hunter2")
    _, host, _ = run(kind, [asks(), "Ok."], lambda host: host.answer("tool:post", deny), [tool])
    read = results(host.context)["c1"]
    assert ("hunter2" in read, "contains a password" in read) == (False, True)


@BOTH_KERNELS
def test_modified_input_is_what_the_tool_gets(kind: type[Any]) -> None:
    """`if action == "modify": data = pre_result.data`; the real registry says continue, with changed data."""
    tool = echo()

    async def absolute(_event: str, data: dict[str, Any]) -> Any:
        path = f"/work/{data['tool_input']['path']}"
        return core.HookResult(action="modify", data={**data, "tool_input": {"path": path}})

    _, host, _ = run(kind, [asks(path="a.txt"), "Ok."], lambda host: host.hook("tool:pre", absolute), [tool])
    assert (tool.inputs, results(host.context)["c1"]) == ([{"path": "/work/a.txt"}], '{"path": "/work/a.txt"}')


def test_modify_of_a_raw_mock_counts_too() -> None:
    """A mock says `modify`, and may give back only what it changed."""
    tool = echo()
    modify = core.HookResult(action="modify", data={"tool_input": {"path": "b"}})
    raw([asks(path="a"), "Ok."], {"tool:pre": [modify]}, [tool])
    assert tool.inputs == [{"path": "b"}]


@BOTH_KERNELS
@pytest.mark.parametrize("key", ["tool_result", "result"])
def test_a_modified_result_is_what_the_model_reads(kind: type[Any], key: str) -> None:
    """Under the contract's key and under the one that the other loops send; structured output stays JSON."""

    async def shorten(_event: str, data: dict[str, Any]) -> Any:
        return core.HookResult(action="modify", data={**data, key: {"success": True, "output": {"kept": 1}}})

    _, host, _ = run(kind, [asks(a=1), "Ok."], lambda host: host.hook("tool:post", shorten))
    assert results(host.context)["c1"] == '{"kept": 1}'


@BOTH_KERNELS
def test_an_unchanged_result_is_not_rewritten(kind: type[Any]) -> None:
    """The registry hands back a copy with fields of its own: that is no modification."""
    _, host, _ = run(kind, [asks(a=1), "Ok."], lambda host: host.answer("tool:post"))
    assert results(host.context)["c1"] == '{"a": 1}'


@BOTH_KERNELS
def test_modified_messages_and_model_go_into_one_request(kind: type[Any]) -> None:
    """A hook may redact what is sent; the context keeps what was said."""

    async def redact(_event: str, data: dict[str, Any]) -> Any:
        if data["iteration"] > 1:
            return core.HookResult(action="continue")
        changed = {**data, "messages": [{"role": "user", "content": "(redacted)"}], "model": "small"}
        return core.HookResult(action="modify", data=changed)

    _, host, provider = run(kind, [asks(), "Ok."], lambda host: host.hook("provider:request", redact))
    first, second = provider.requests
    assert (shapes(first.messages), first.model, second.model) == ([("user", "(redacted)")], "small", None)
    assert shapes(second.messages)[0] == shapes(host.context.messages)[0] == ("user", "Go.")


@BOTH_KERNELS
def test_a_modified_response_and_a_modified_prompt_are_used(kind: type[Any]) -> None:
    """What hooks change at prompt:submit and provider:response is what counts from there on."""

    async def polite(_event: str, data: dict[str, Any]) -> Any:
        return core.HookResult(action="modify", data={**data, "prompt": f"Please: {data['prompt']}"})

    async def signed(_event: str, data: dict[str, Any]) -> Any:
        content = [*data["response"]["content"], {"type": "text", "text": "-- checked"}]
        return core.HookResult(action="modify", data={**data, "response": {**data["response"], "content": content}})

    def prepare(host: KernelHost) -> None:
        host.hook("prompt:submit", polite)
        host.hook("provider:response", signed)

    answer, host, _ = run(kind, ["Fine."], prepare)
    assert (answer, shapes(host.context.messages)[0]) == ("Fine.\n\n-- checked", ("user", "Please: Go."))


@BOTH_KERNELS
@pytest.mark.parametrize("event", ["prompt:submit", "provider:request", "provider:response", "tool:pre", "tool:post"])
def test_a_durable_injection_is_stored_once_and_read_from_then_on(kind: type[Any], event: str) -> None:
    """`inject_context` adds feedback to the context, with the kernel's own provenance, at whichever event."""
    note = core.HookResult(action="inject_context", context_injection="Mind the gap.", context_injection_role="user")
    answer, host, provider = run(kind, [asks(), asks(), "Ok."], lambda host: host.answer(event, note))
    stored = [message for message in host.context.messages if message["content"] == "Mind the gap."]
    read = [shapes(request.messages).count(("user", "Mind the gap.")) for request in provider.requests]
    assert answer == "Ok."
    assert [(each["role"], each["metadata"]["source"], each["metadata"]["event"]) for each in stored] == [
        ("user", "hook", event)
    ]
    assert read == ([1, 1, 1] if event in ("prompt:submit", "provider:request") else [0, 1, 1])


@BOTH_KERNELS
@pytest.mark.parametrize("event", ["prompt:submit", "provider:request", "provider:response", "tool:pre", "tool:post"])
def test_an_ephemeral_injection_reaches_exactly_one_request(kind: type[Any], event: str) -> None:
    """It is temporary, for the current call of the model only, and is not stored in history."""
    note = core.HookResult(action="inject_context", context_injection="Psst.", ephemeral=True)
    _, host, provider = run(kind, [asks(), asks(), "Ok."], lambda host: host.answer(event, note))
    read = [shapes(request.messages).count(("system", "Psst.")) for request in provider.requests]
    assert sum(read) == 1
    assert read == ([1, 0, 0] if event in ("prompt:submit", "provider:request") else [0, 1, 0])
    assert [text for _, text in shapes(host.context.messages) if "Psst." in text] == []


@BOTH_KERNELS
def test_several_injections_keep_their_roles_and_their_order(kind: type[Any]) -> None:
    """The registry's joined text with one role is for show: each injection of the list is taken as it is."""

    def prepare(host: KernelHost) -> None:
        for number, (role, is_ephemeral) in enumerate(
            [("user", False), ("system", True), ("assistant", False), ("user", True)]
        ):
            note = core.HookResult(
                action="inject_context",
                context_injection=f"note {number}",
                context_injection_role=role,
                ephemeral=is_ephemeral,
            )
            host.answer("tool:post", note, name=f"hook {number}")

    _, host, provider = run(kind, [asks(), "Ok."], prepare)
    stored = [shape for shape in shapes(host.context.messages) if "note" in shape[1]]
    sent = [shape for shape in shapes(provider.requests[1].messages) if "note" in shape[1]]
    assert stored == [("user", "note 0"), ("assistant", "note 2")]
    assert sent == [*stored, ("system", "note 1"), ("user", "note 3")]


@BOTH_KERNELS
@pytest.mark.parametrize("event", ["provider:response", "tool:pre", "tool:post"])
def test_no_injection_stands_between_a_call_and_its_result(kind: type[Any], event: str) -> None:
    """Providers refuse a conversation in which a tool call is not followed by its results at once."""
    note = core.HookResult(action="inject_context", context_injection="Mind the gap.")
    two = calling(("c1", "echo", {}), ("c2", "echo", {}))
    _, host, _ = run(kind, [two, "Ok."], lambda host: host.answer(event, note, note))
    roles = [role for role, _ in shapes(host.context.messages)]
    assert roles == ["user", "assistant", "tool", "tool", "system", "system", "assistant"]


@BOTH_KERNELS
def test_an_injection_at_the_end_of_the_last_tool_result(kind: type[Any]) -> None:
    """append_to_last_tool_result: no message of its own, and only in that request."""
    note = core.HookResult(
        action="inject_context", context_injection="(lint is clean)", ephemeral=True, append_to_last_tool_result=True
    )
    _, host, provider = run(kind, [asks(), asks(), "Ok."], lambda host: host.answer("tool:post", note))
    ends = [shapes(request.messages)[-1] for request in provider.requests[1:]]
    assert (ends[0], "lint" in ends[1][1]) == (("tool", "{}\n\n(lint is clean)"), False)
    assert results(host.context)["c1"] == "{}"


@BOTH_KERNELS
def test_injections_of_two_prompts_at_once_do_not_meet(kind: type[Any]) -> None:
    """Nothing is kept on the orchestrator between or beside executions."""
    session = kernel_host(kind, providers=[ScriptedChat()], tools=[echo()])

    async def scenario() -> list[list[int]]:
        async with session as host:
            note = core.HookResult(action="inject_context", context_injection="Psst.", ephemeral=True)
            loop = host.coordinator.get("orchestrator")
            providers = [ScriptedChat([asks(), "A"]), ScriptedChat([asks(), "B"])]
            hooks = [AnsweringHooks({"tool:post": [note]}), AnsweringHooks()]
            await asyncio.gather(
                *(
                    loop.execute("Go.", ListContext(), {"p": provider}, {"echo": echo()}, each)
                    for provider, each in zip(providers, hooks, strict=True)
                )
            )
            return [
                [shapes(request.messages).count(("system", "Psst.")) for request in provider.requests]
                for provider in providers
            ]

    assert asyncio.run(scenario()) == [[0, 1], [0, 0]]


def test_injections_without_a_coordinator_are_added_to_the_context() -> None:
    """`await context.add_message({"role": context_injection_role, "content": context_injection})`, once."""
    note = core.HookResult(action="inject_context", context_injection="Mind.", context_injection_role="user")
    _, _, context, _ = raw([asks(), "Ok."], {"tool:pre": [note]})
    assert [message for message in context.messages if message["content"] == "Mind."] == [
        {
            "role": "user",
            "content": "Mind.",
            "metadata": {"source": "hook", "hook_name": "hook", "event": "tool:pre"},
        }
    ]


@BOTH_KERNELS
@pytest.mark.parametrize("is_ephemeral", [False, True], ids=["durable", "ephemeral"])
def test_an_injection_that_the_kernel_finds_too_large_is_dropped(
    kind: type[Any], is_ephemeral: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """session.injection_size_limit holds: a log line and an event say so, and the execution goes on."""
    note = core.HookResult(action="inject_context", context_injection="x" * 50, ephemeral=is_ephemeral)
    plan = {"session": {"injection_size_limit": 10}}
    answer, host, provider = run(kind, [asks(), "Ok."], lambda host: host.answer("tool:post", note), plan=plan)
    (dropped,) = host.payloads(f"{MODULE_ID}:injection_dropped")
    assert (answer, dropped["length"], "injection" in dropped["reason"]) == ("Ok.", 50, True)
    assert [text for _, text in shapes(provider.requests[1].messages) if "x" * 50 in text] == []
    assert "dropped" in caplog.text


ASK = {"action": "ask_user", "approval_prompt": "Delete it?", "approval_options": ["Allow", "Deny"]}


@BOTH_KERNELS
@pytest.mark.parametrize(
    ("answer", "is_executed"), [("Allow", True), ("allow once", True), ("Deny", False), ("?", False)]
)
def test_ask_user_asks_the_hosts_approval_system(kind: type[Any], answer: str, is_executed: bool) -> None:
    """Request approval; if not approved, the tool is not executed and the model reads that it was not."""
    tool, approvals = echo(), Approvals(answer)
    ask = core.HookResult(**ASK, approval_timeout=7.0)
    _, host, _ = run(
        kind, [asks(), "Ok."], lambda host: host.answer("tool:pre", ask), [tool], approval_system=approvals
    )
    names = [name for name in host.names if name.startswith("approval:")]
    assert approvals.asked == [("Delete it?", ["Allow", "Deny"], 7.0, "deny")]
    assert (len(tool.inputs), names[1]) == (int(is_executed), f"approval:{'granted' if is_executed else 'denied'}")
    assert ("Delete it?" in results(host.context)["c1"]) is not is_executed


@BOTH_KERNELS
@pytest.mark.parametrize(("default", "is_executed"), [("deny", False), ("allow", True)])
def test_silence_of_the_user_is_what_the_hook_says_it_is(kind: type[Any], default: str, is_executed: bool) -> None:
    """On timeout, the configured default action is taken; deny, unless the hook says otherwise."""
    tool = echo()
    approvals = Approvals(pytest.importorskip("amplifier_core.approval").ApprovalTimeoutError("no answer"))
    ask = core.HookResult(**ASK, approval_default=default)
    run(kind, [asks(), "Ok."], lambda host: host.answer("tool:pre", ask), [tool], approval_system=approvals)
    assert len(tool.inputs) == int(is_executed)


@BOTH_KERNELS
@pytest.mark.parametrize("approvals", [None, Approvals(OSError("terminal gone"))], ids=["none", "broken"])
def test_no_approver_and_a_broken_one_are_a_no(kind: type[Any], approvals: Approvals | None) -> None:
    """Nobody said yes."""
    tool = echo()
    ask = core.HookResult(**ASK)
    _, host, _ = run(
        kind, [asks(), "Ok."], lambda host: host.answer("tool:pre", ask), [tool], approval_system=approvals
    )
    assert (tool.inputs, "Delete it?" in results(host.context)["c1"]) == ([], True)


def test_without_a_coordinator_nobody_can_be_asked() -> None:
    """ask_user is then a denial."""
    tool = echo()
    _, _, context, _ = raw([asks(), "Ok."], {"tool:pre": [core.HookResult(**ASK)]}, [tool])
    assert (tool.inputs, "Delete it?" in results(context)["c1"]) == ([], True)


@pytest.mark.parametrize(
    "nonsense",
    [
        42,
        "deny",
        {"action": "explode"},
        object(),
        {"action": "modify", "data": "x"},
        {"action": "modify", "data": {"tool_input": "x"}},
        {"action": "modify", "data": {"tool_name": "other"}},
    ],
)
def test_nonsense_from_a_raw_mock_is_a_denial(nonsense: Any) -> None:
    """What is no answer lets nothing through; nothing at all is a plain yes, as the kernel sees it."""
    tool = echo()
    _, _, context, _ = raw([asks(), "Ok."], {"tool:pre": [nonsense]}, [tool])
    assert (tool.inputs, results(context)["c1"] != "{}") == ([], True)


@pytest.mark.parametrize("answer", [None, {"action": "continue"}, {}])
def test_a_plain_yes_of_a_raw_mock(answer: Any) -> None:
    """None is one, and so is a dict that says continue; a dict that says nothing is not."""
    tool = echo()
    raw([asks(), "Ok."], {"tool:pre": [answer]}, [tool])
    assert len(tool.inputs) == (0 if answer == {} else 1)


def test_hooks_that_are_none_at_all_will_do() -> None:
    """Nobody listens, and the prompt is answered."""
    loop = ConformanceLoop()
    answer = asyncio.run(loop.execute("Go.", ListContext(), {"p": ScriptedChat(["Fine."])}, {}, None))
    assert answer == "Fine."


@BOTH_KERNELS
def test_a_hook_that_raises_stops_nothing(kind: type[Any]) -> None:
    """The kernel logs and skips it, as it does for every orchestrator."""

    async def raising(_event: str, _data: dict[str, Any]) -> Any:
        raise KeyError("bug")

    def prepare(host: KernelHost) -> None:
        for event in ("tool:pre", "provider:request", "execution:start", "orchestrator:complete"):
            host.hook(event, raising)

    answer, _, _ = run(kind, [asks(), "Ok."], prepare)
    assert answer == "Ok."


def test_hooks_whose_emit_raises_deny_at_a_gate_and_only_there() -> None:
    """A registry that is broken lets no tool through; what it is merely told of goes on without it."""

    def broken(_data: dict[str, Any]) -> Any:
        raise OSError("no registry")

    tool = echo()
    answer, _, context, _ = raw([asks(), "Ok."], {"tool:pre": broken, "action:denied": broken}, [tool])
    assert (answer, tool.inputs, "no registry" in results(context)["c1"]) == ("Ok.", [], True)


@BOTH_KERNELS
def test_the_user_is_shown_what_hooks_have_to_say(kind: type[Any]) -> None:
    """user_message reaches the display system once, whatever else the answer holds."""
    display = Display()
    note = core.HookResult(
        action="inject_context", context_injection="a", user_message="Found 3 issues", user_message_level="warning"
    )
    deny = core.HookResult(action="deny", reason="no", user_message="Blocked")

    def prepare(host: KernelHost) -> None:
        host.answer("tool:post", note)
        host.answer("tool:pre", core.HookResult(action="continue"), deny)

    run(kind, [asks(), asks(), "Ok."], prepare, display_system=display)
    assert [(message, level) for message, level, _ in display.shown] == [
        ("Found 3 issues", "warning"),
        ("Blocked", "info"),
    ]


@BOTH_KERNELS
def test_a_hook_may_take_longer_than_any_observer_of_ours(kind: type[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks ask people; the kernel sets them no limit, and neither do we."""
    from orchestrator_events import bus

    monkeypatch.setattr(bus, "ASYNC_OBSERVER_LIMIT_S", 0.001)
    monkeypatch.setattr(bus, "RESPONDER_LIMIT_S", 0.001)

    async def slow(_event: str, _data: dict[str, Any]) -> Any:
        await asyncio.sleep(0.03)
        return core.HookResult(action="continue")

    def prepare(host: KernelHost) -> None:
        host.hook("tool:pre", slow)
        host.hook("execution:start", slow)

    answer, host, _ = run(kind, [asks(), "Ok."], prepare)
    assert (answer, results(host.context)["c1"], host.payloads("subscriber:failed")) == ("Ok.", "{}", [])
