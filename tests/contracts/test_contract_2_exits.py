"""Contract 2, every way out: completion, limits, errors, cancellation; each with its closing events."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest

from orchestrator.amplifier import ConformanceLoop
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

PYTHON, RUST = session_module.AmplifierSession, core.AmplifierSession
BOTH_KERNELS = pytest.mark.parametrize("kind", [PYTHON, RUST], ids=["python", "rust"])
QUICK = {"retries": {"first_wait": 0.001}}


def echo() -> FunctionTool:
    """A tool that says what it was given."""
    return FunctionTool("echo", lambda given: core.ToolResult(success=True, output=given))


def asks(identity: str = "c1") -> Any:
    """An answer with one call of echo."""
    return calling((identity, "echo", {}))


def brackets(host: KernelHost | AnsweringHooks) -> tuple[str, str, str, str]:
    """First and last event of the execution, and the statuses at its end, each of which came exactly once."""
    inside = [name for name in host.names if not name.startswith("session:")]
    (complete,), (end,) = host.payloads("orchestrator:complete"), host.payloads("execution:end")
    ours = [name for name in inside if name != "cancel:completed"]
    assert ours[-2:] == ["orchestrator:complete", "execution:end"]
    assert end["response"] == "" or end["status"] == "completed"
    return inside[0], end["response"], complete["status"], end["status"]


def fault(messages: list[dict[str, Any]]) -> str:
    """What is wrong with a transcript: an unanswered call, a message in between, no closing answer; or nothing."""
    waiting: list[str] = []
    for message in messages:
        if waiting and message["role"] != "tool":
            return f"{message['role']} stands between a call and its result"
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return "a result of no call"
            waiting.remove(message["tool_call_id"])
        waiting += [call["id"] for call in message.get("tool_calls") or ()]
    if waiting:
        return "a call without a result"
    return "" if not messages or messages[-1]["role"] == "assistant" else "no closing answer"


def outcome(kind: type[Any], answers: list[Any], **parts: Any) -> tuple[str | BaseException, KernelHost]:
    """What one prompt in a real session came to."""
    parts = {"providers": [ScriptedChat(answers)], "tools": [echo()], "config": QUICK, **parts}

    async def scenario() -> tuple[str | BaseException, KernelHost]:
        async with kernel_host(kind, **parts) as host:
            try:
                return await host.session.execute("Go."), host
            except Exception as error:  # noqa: BLE001 -- it is what the test looks at
                return error, host

    return asyncio.run(scenario())


@BOTH_KERNELS
def test_completion(kind: type[Any]) -> None:
    """REQUIRED on successful completion: response is the final answer, status completed; complete says success."""
    answer, host = outcome(kind, [asks(), "Done."])
    assert (answer, brackets(host)) == ("Done.", ("execution:start", "Done.", "success", "completed"))


@BOTH_KERNELS
def test_the_iteration_limit(kind: type[Any]) -> None:
    """Implements max iterations limit: one last call without tools, whose answer is what execute returns."""
    provider = ScriptedChat([asks("c1"), asks("c2"), "What I have so far.", "never asked"])
    answer, host = outcome(kind, [], providers=[provider], config={"max_iterations": 2})
    assert (answer, brackets(host)[2:]) == ("What I have so far.", ("incomplete", "completed"))
    assert [bool(request.tools) for request in provider.requests] == [True, True, False]
    assert (host.payloads("orchestrator:complete")[0]["turn_count"], fault(host.context.messages)) == (3, "")


def test_the_iteration_limit_is_finite_by_default() -> None:
    """Prevent infinite loops: a model that always asks for tools is stopped without any configuration."""
    provider = ScriptedChat([lambda request: calling((f"c{len(request.messages)}", "echo", {})) for _ in range(60)])
    hooks, context = AnsweringHooks(), ListContext()
    answer = asyncio.run(ConformanceLoop().execute("Go.", context, {"p": provider}, {"echo": echo()}, hooks))
    assert (len(provider.requests), isinstance(answer, str), fault(context.messages)) == (51, True, "")
    assert brackets(hooks)[2:] == ("incomplete", "completed")


@BOTH_KERNELS
def test_an_answer_that_comes_exactly_at_the_limit_is_a_completion(kind: type[Any]) -> None:
    """Nothing more is asked then."""
    provider = ScriptedChat([asks(), "Done.", "never asked"])
    answer, host = outcome(kind, [], providers=[provider], config={"max_iterations": 2})
    assert (answer, len(provider.requests), brackets(host)[2:]) == ("Done.", 2, ("success", "completed"))


@BOTH_KERNELS
def test_the_limit_of_tool_calls(kind: type[Any]) -> None:
    """The same end as at the limit of iterations; no tool runs past it."""
    tool = echo()
    answer, host = outcome(
        kind, [asks("c1"), asks("c2"), "So far."], tools=[tool], config={"max_tool_calls": 1, "max_iterations": 5}
    )
    assert (answer, len(tool.inputs), brackets(host)[2:]) == ("So far.", 1, ("incomplete", "completed"))
    assert fault(host.context.messages) == ""


def provider_error() -> Any:
    """An error that no other try would help."""
    return core.InvalidRequestError("bad request", provider="scripted", status_code=400)


def test_a_provider_error_is_raised_unchanged_after_the_events() -> None:
    """Handles provider errors gracefully: provider:error, the closing events, then the very same error."""
    error = provider_error()
    raised, host = outcome(PYTHON, [asks(), error])
    (told,) = host.payloads("provider:error")
    assert raised is error
    assert brackets(host) == ("execution:start", "", "incomplete", "error")
    assert (told["provider"], told["error"]["type"], told["status_code"]) == ("scripted", "InvalidRequestError", 400)
    assert fault(host.context.messages) == ""


def test_a_provider_error_in_the_rust_kernel() -> None:
    """That kernel wraps whatever an orchestrator raises; type and message are in its text."""
    raised, host = outcome(RUST, [provider_error()])
    assert isinstance(raised, RuntimeError)
    assert "InvalidRequestError: bad request" in str(raised)
    assert brackets(host)[2:] == ("incomplete", "error")


@BOTH_KERNELS
def test_a_retryable_error_is_tried_again(kind: type[Any]) -> None:
    """provider:retry before each wait; the turn is counted once."""
    answer, host = outcome(kind, [core.RateLimitError("slow down"), core.NetworkError("cut"), "Done."])
    assert (answer, len(host.payloads("provider:retry")), host.payloads("provider:error")) == ("Done.", 2, [])
    assert host.payloads("orchestrator:complete")[0]["turn_count"] == 1


def test_a_retryable_error_that_stays_is_raised_in_the_end() -> None:
    """The last one, unchanged."""
    errors = [core.ProviderUnavailableError(f"down {number}") for number in range(5)]
    raised, host = outcome(PYTHON, errors)
    assert raised is errors[2]
    assert len(host.payloads("provider:error")) == 1


def test_an_error_of_the_context_is_raised_unchanged() -> None:
    """Whichever of its methods fails, the brackets are closed."""

    @attrs.define(eq=False)
    class Failing(ListContext):
        at: str = ""
        error: Exception = attrs.Factory(lambda: OSError("context lost"))

        async def add_message(self, message: dict[str, Any]) -> None:
            if self.at == message["role"]:
                raise self.error
            await super().add_message(message)

        async def get_messages_for_request(
            self, token_budget: int | None = None, provider: object = None
        ) -> list[dict[str, Any]]:
            if self.at == "read":
                raise self.error
            return await super().get_messages_for_request(token_budget, provider)

    for at in ("user", "read", "assistant", "tool"):
        context = Failing(at=at)
        raised, host = outcome(PYTHON, [asks(), "Done."], context=context)
        assert raised is context.error
        assert brackets(host) == ("execution:start", "", "incomplete", "error")


@BOTH_KERNELS
@pytest.mark.parametrize("is_immediate", [False, True], ids=["graceful", "immediate"])
def test_cancellation_by_token_while_a_tool_runs(kind: type[Any], is_immediate: bool) -> None:
    """Graceful lets the tool finish and stores its result, immediate interrupts it; both return an empty text."""
    started, ended = asyncio.Event(), []

    async def work(_given: dict[str, Any]) -> Any:
        started.set()
        await asyncio.sleep(5 if is_immediate else 0.1)
        ended.append("done")
        return core.ToolResult(success=True, output="worked")

    async def scenario() -> tuple[str, KernelHost, list[str], list[str]]:
        provider, called = ScriptedChat([calling(("c1", "work", {})), "never asked"]), []

        async def callback() -> None:
            called.append("called back")

        async with kernel_host(kind, providers=[provider], tools=[FunctionTool("work", work)]) as host:
            host.coordinator.cancellation.on_cancel(callback)
            running = asyncio.ensure_future(host.session.execute("Go."))
            await started.wait()
            names = list(host.coordinator.cancellation.running_tool_names)
            await host.coordinator.request_cancel(immediate=is_immediate)
            return await running, host, names, called

    answer, host, names, called = asyncio.run(scenario())
    (requested,) = host.payloads("cancel:requested")
    assert (answer, brackets(host)[2:]) == ("", ("cancelled", "cancelled"))
    assert (names, called, ended) == (["work"], ["called back"], [] if is_immediate else ["done"])
    assert requested["level"] == ("immediate" if is_immediate else "graceful")
    assert host.names.index("cancel:requested") < host.names.index("cancel:completed")
    (result,) = [message["content"] for message in host.context.messages if message["role"] == "tool"]
    assert (result == "worked") is not is_immediate
    assert fault(host.context.messages) == ""


@BOTH_KERNELS
def test_a_token_that_was_cancelled_before_buys_nothing(kind: type[Any]) -> None:
    """Its state survives turns until it is reset."""
    provider = ScriptedChat()

    async def scenario() -> tuple[str, KernelHost]:
        async with kernel_host(kind, providers=[provider]) as host:
            await host.coordinator.request_cancel()
            return await host.session.execute("Go."), host

    answer, host = asyncio.run(scenario())
    assert (answer, provider.requests, brackets(host)[2:]) == ("", [], ("cancelled", "cancelled"))
    assert fault(host.context.messages) == ""


class Hesitant:
    """An approval system whose user does not answer, but presses the key that cancels."""

    session: Any = None

    async def request_approval(self, *_: Any) -> str:
        """Cancel at once, and wait."""
        await self.session.coordinator.request_cancel(immediate=True)
        await asyncio.sleep(20)
        return "Allow"


@BOTH_KERNELS
def test_an_immediate_cancellation_does_not_wait_for_the_user(kind: type[Any]) -> None:
    """A question that is open when the token is cancelled has no answer: the tool is not executed."""
    tool, approvals = echo(), Hesitant()

    async def scenario() -> tuple[str, KernelHost]:
        async with kernel_host(
            kind, providers=[ScriptedChat([asks()])], tools=[tool], approval_system=approvals
        ) as host:
            approvals.session = host.session
            host.answer("tool:pre", core.HookResult(action="ask_user", approval_prompt="Echo?"))
            return await host.session.execute("Go."), host

    answer, host = asyncio.run(scenario())
    assert (answer, tool.inputs, brackets(host)[2:]) == ("", [], ("cancelled", "cancelled"))
    assert fault(host.context.messages) == ""


def test_a_task_cancelled_while_a_hook_hears_the_end_still_tells_all_of_it() -> None:
    """MUST be emitted on ALL exit paths: a hook that names the session at the end may take its time."""

    async def scenario() -> tuple[bool, KernelHost]:
        async with kernel_host(PYTHON, providers=[ScriptedChat(["Hello."])]) as host:
            begun = asyncio.Event()

            async def name_the_session(_event: str, _data: dict[str, Any]) -> Any:
                begun.set()
                await asyncio.sleep(20)

            host.hook("prompt:complete", name_the_session)
            task = asyncio.ensure_future(host.session.execute("Hi."))
            await begun.wait()
            task.cancel()
            await asyncio.wait({task})
            return task.cancelled(), host

    is_cancelled, host = asyncio.run(scenario())
    assert (is_cancelled, brackets(host)[1:]) == (True, ("Hello.", "success", "completed"))


def test_cancellation_of_the_task() -> None:
    """REQUIRED on cancellation: status cancelled, then CancelledError is raised again."""

    async def scenario() -> tuple[bool, KernelHost]:
        started = asyncio.Event()

        async def work(_given: dict[str, Any]) -> Any:
            started.set()
            await asyncio.Event().wait()

        provider = ScriptedChat([calling(("c1", "work", {}), ("c2", "work", {}))])
        async with kernel_host(PYTHON, providers=[provider], tools=[FunctionTool("work", work)]) as host:
            running = asyncio.ensure_future(host.session.execute("Go."))
            await started.wait()
            running.cancel()
            await asyncio.wait([running])
            return running.cancelled(), host

    was_cancelled, host = asyncio.run(scenario())
    assert was_cancelled
    assert brackets(host) == ("execution:start", "", "cancelled", "cancelled")
    assert fault(host.context.messages) == ""


def test_no_provider_at_all() -> None:
    """The Rust kernel passes none on: an error that says so, after the closing events."""
    raised, host = outcome(RUST, [], providers=[])
    assert isinstance(raised, RuntimeError)
    assert "provider" in str(raised)
    assert brackets(host)[2:] == ("incomplete", "error")


@BOTH_KERNELS
def test_a_tool_that_hangs_ends_at_its_deadline(kind: type[Any]) -> None:
    """The loop goes on with a failed result."""

    async def hang(_given: dict[str, Any]) -> None:
        await asyncio.Event().wait()

    answer, host = outcome(
        kind,
        [calling(("c1", "hang", {})), "Gave up on it."],
        tools=[FunctionTool("hang", hang)],
        config={"tool_seconds": 0.03},
    )
    assert (answer, fault(host.context.messages)) == ("Gave up on it.", "")


@BOTH_KERNELS
def test_calls_that_cannot_be_made_are_failed_results(kind: type[Any]) -> None:
    """Ids that are missing or double, arguments that are none: the model reads it and goes on."""
    models = core.message_models
    calls = [
        models.ToolCall(id="c1", name="echo", arguments={}),
        models.ToolCall(id="c1", name="echo", arguments={}),
        models.ToolCall(id="", name="echo", arguments={}),
    ]
    strange = core.ChatResponse(content=[], tool_calls=calls)
    answer, host = outcome(kind, [strange, "Done."])
    results = [message["content"] for message in host.context.messages if message["role"] == "tool"]
    assert (answer, len(results), fault(host.context.messages)) == ("Done.", 3, "")


@BOTH_KERNELS
def test_two_prompts_in_one_session_continue_one_conversation(kind: type[Any]) -> None:
    """Each has its own brackets; the context is the kernel's and grows."""
    provider = ScriptedChat(["One.", "Two."])

    async def scenario() -> tuple[list[str], KernelHost]:
        async with kernel_host(kind, providers=[provider]) as host:
            return [await host.session.execute("First."), await host.session.execute("Second.")], host

    answers, host = asyncio.run(scenario())
    assert (answers, host.names.count("execution:end")) == (["One.", "Two."], 2)
    assert [message.role for message in provider.requests[1].messages] == ["user", "assistant", "user"]
    assert fault(host.context.messages) == ""
