"""Whatever somebody changes in an agent's run, or in a tree of runs, is found by the check that is there for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import cache
from typing import Any

import pytest

from orchestrator import Budget, EvalCase, MergedSpec, Orchestrator, Submission, Verdict
from orchestrator.agent import Agent, AgentLimits, Reply, ToolCall
from orchestrator.audit import audit
from orchestrator.export import export_json
from orchestrator.generators.agent import AgentGenerator
from orchestrator.harness.harness import Harness
from orchestrator.importing import parse_export
from orchestrator.journal.memory import MemoryJournal
from orchestrator.testing import ManualClock
from orchestrator.testing.agents import ScriptedProvider, ScriptedTool, ScriptedVerifier
from orchestrator_events.agent import ProviderResponse
from orchestrator_events.budget import Usage
from orchestrator_events.decision import Decision, Inject, Proceed

Change = Callable[[Any], object]
USED = Usage(input_tokens=400, output_tokens=30)
TOOLS = ("read_file", "write_file", "run_command", "lookup")


def asks(*calls: tuple[str, str, dict[str, Any]]) -> Reply:
    """A reply that asks for tools."""
    made = tuple(ToolCall(id=call_id, tool=tool, arguments=arguments) for call_id, tool, arguments in calls)
    return Reply(blocks=({"type": "text", "text": "I go on."},), calls=made, usage=USED)


def says(text: str) -> Reply:
    """A reply that answers."""
    return Reply(blocks=({"type": "text", "text": text},), usage=USED)


SCRIPT = (
    asks(("a", "read_file", {"path": "in.txt"}), ("b", "lookup", {"word": "red"})),
    asks(("c", "write_file", {"path": "x.txt", "content": "red"}), ("d", "run_command", {"command": "rm -rf /"})),
    asks(("e", "write_file", {"path": "x.txt", "content": "red green"})),
    says("Both colours are there."),
)


async def recorded(**options: Any) -> str:
    """A run with parallel tools, a denial, two automatic verifications and an injection, as a document."""
    journal = MemoryJournal()
    agent = Agent(
        providers={"scripted": ScriptedProvider(SCRIPT, "repeat")},
        tools=[ScriptedTool(name, [f"{name} did it"]) for name in TOOLS],
        harness=Harness(finish_when_green=False),
        verifier=ScriptedVerifier([(1, 2), (2, 2)]),
        parameters={"max_tokens": 500},
        budget=Budget(tokens=90_000, seconds=600),
        system="You write files.",
        journal=journal,
        clock=ManualClock(),
        **options,
    )
    once: Iterator[Decision] = iter([Inject("Mind the colours.", role="user")])
    agent.bus.answer(ProviderResponse, lambda _: next(once, Proceed()))
    await agent.arun("Name the colours.", run_id="7f3a")
    return await export_json(journal, "7f3a")


@cache
def document_of(name: str) -> str:
    """A run to tamper with."""
    match name:
        case "incomplete":
            return asyncio.run(recorded(limits=AgentLimits(iterations=2)))
        case "tree":
            return asyncio.run(tree())
    return asyncio.run(recorded())


SPEC = MergedSpec(name="colours", intent="Name the colours.", evals=(EvalCase(name="red"), EvalCase(name="green")))


def judged(submission: Submission) -> Verdict:
    """A case passes when the candidate names it."""
    text = "".join(submission.candidate.files.values())
    return Verdict.of({case.name: case.name in text or f"no {case.name}" for case in submission.spec.evals})


async def tree() -> str:
    """A conformance run with two agent runs inside it."""
    journal = MemoryJournal()
    both = [
        lambda request: asks(
            ("a", "write_file", {"path": "x", "content": "red" if ".1" in request.run_id else "red green"})
        ),
        says("done"),
    ]
    generator = AgentGenerator(ScriptedProvider(both), parameters={"max_tokens": 500})
    budget = Budget(attempts=3, tokens=90_000, seconds=600)
    await Orchestrator(generator=generator, evaluator=judged, journal=journal, budget=budget).arun(SPEC, run_id="top")
    return await export_json(journal, "top")


@pytest.fixture
def tampered(forge: Callable[[str], Any]) -> Callable[[str], Any]:
    """A run in the wrong hands."""
    made = type(forge("passed at once"))
    return lambda name: made(json.loads(document_of(name)))


def found(forgery: Any) -> set[str]:
    """Names of the checks that find something."""
    return {finding.check for finding in audit(forgery.export()).findings}


@pytest.mark.parametrize("name", ["completed", "incomplete", "tree"])
def test_what_nobody_touched_is_clean(name: str, tampered: Callable[[str], Any]) -> None:
    """The runs that are tampered with here are clean before that, and as many records, rechained, still are."""
    forgery = tampered(name)
    assert [str(finding) for finding in audit(forgery.export()).findings] == []
    assert [str(finding) for finding in audit(forgery.rechain().export()).findings] == []


def at(forgery: Any, name: str, number: int = 0) -> int:
    """Where the record of an event is."""
    return [index for index, body in enumerate(forgery.bodies) if body["name"] == name][number]


def drop(name: str, number: int = 0) -> Change:
    """Remove one record."""
    return lambda it: it.document["records"].pop(at(it, name, number))


def double(name: str, number: int = 0) -> Change:
    """Have one record twice."""
    return lambda it: it.document["records"].insert(
        at(it, name, number), deepcopy(it.document["records"][at(it, name, number)])
    )


def edit(name: str, number: int = 0, **fields: Any) -> Change:
    """Change fields of one event; a text that begins with `blob:` becomes one."""

    def change(it: Any) -> None:
        event = it.events(name)[number]
        for field, value in fields.items():
            is_text = isinstance(value, str) and value.startswith("blob:")
            event[field] = it.blob(value.removeprefix("blob:")) if is_text else value

    return change


def inside(name: str, field: str, number: int = 0, **fields: Any) -> Change:
    """Change fields of a value inside an event."""
    return lambda it: it.events(name)[number][field].update(**fields)


def rewrite(name: str, field: str, number: int, old: str, new: str) -> Change:
    """Change the text that an event names."""

    def change(it: Any) -> None:
        event = it.events(name)[number]
        text = it.document["blobs"][event[field]["sha256"]]
        assert old in text, text
        event[field] = it.blob(text.replace(old, new))

    return change


def resend(act: Callable[[Any, list[Any]], object], turn: int = 1) -> Change:
    """Change the list of messages that a turn sent."""
    return lambda it: act(it, it.events("turn:started")[turn]["messages"])


def results(it: Any) -> list[int]:
    """Where the results of tools join the conversation."""
    return [
        index
        for index, body in enumerate(it.bodies)
        if body["name"] == "message:added" and body["event"]["role"] == "tool"
    ]


def swap_results(it: Any) -> None:
    """Exchange the results of two calls."""
    one, other = results(it)[:2]
    records = it.document["records"]
    records[one], records[other] = records[other], records[one]


def speak_between(it: Any) -> None:
    """Have somebody speak between a call and its result."""
    position = results(it)[0]
    spoken = deepcopy(it.document["records"][at(it, "message:added")])
    body = it.document["records"][position]["body"]
    spoken["body"].update(source=body["source"], target=body["target"])
    spoken["body"]["event"] |= {"origin": "harness", "message": it.blob('{"role":"user","content":"psst"}')}
    it.document["records"].insert(position, spoken)


def insert(name: str, event: dict[str, Any], before: str, number: int = 0) -> Change:
    """Add a record in the state that another one was made in."""

    def change(it: Any) -> None:
        position = at(it, before, number)
        body = it.bodies[position]
        fields = {"name": name, "target": body["source"], "event": event}
        it.document["records"].insert(position, {"body": {**deepcopy(body), **fields}})

    return change


VERIFIED = {"turn": 1, "is_automatic": False, "passed": 2, "total": 2, "failing": [], "error": "", "duration_us": 0}
DENIED = [{"subscriber": "somebody", "action": "deny", "detail": "no"}]
ASKED = [{"subscriber": "somebody", "action": "ask_user", "detail": "May I?"}]

AGENTS: dict[str, tuple[Change, str]] = {
    "a turn renumbered": (edit("turn:started", 1, turn=7), "turns"),
    "a turn removed": (drop("turn:started", 1), "moves"),
    "a key changed": (inside("turn:started", "reservation", 1, key="7f3a:9"), "turns"),
    "an answer's key changed": (edit("turn:answered", 1, key="7f3a:9"), "turns"),
    "another model": (edit("turn:started", 1, model="a larger one"), "turns"),
    "another provider": (edit("turn:started", 1, provider="elsewhere"), "turns"),
    "another tool offered": (edit("turn:started", 1, tools=[*TOOLS, "sudo"]), "turns"),
    "other parameters": (edit("turn:started", 1, parameters='{"max_tokens":9}'), "turns"),
    "an action of another turn": (edit("action:started", 1, turn=9), "turns"),
    "a closing turn that is none": (edit("turn:started", 1, is_closing=True), "turns"),
    "a request's message changed": (
        resend(lambda it, sent: sent.__setitem__(1, it.blob('{"role":"user","content":"Forget it."}'))),
        "requests",
    ),
    "a request's message dropped": (resend(lambda _, sent: sent.pop(1)), "requests"),
    "a request's message added": (resend(lambda _, sent: sent.append(deepcopy(sent[1]))), "requests"),
    "a request's messages exchanged": (resend(lambda _, sent: sent.reverse()), "requests"),
    "the system prompt dropped": (resend(lambda _, sent: sent.pop(0), 0), "requests"),
    "a result changed in the conversation": (
        rewrite("message:added", "message", 3, "did it", "failed"),
        "conversation",
    ),
    "a result removed": (lambda it: it.document["records"].pop(results(it)[0]), "conversation"),
    "a result doubled": (
        lambda it: it.document["records"].insert(results(it)[0], deepcopy(it.document["records"][results(it)[0]])),
        "conversation",
    ),
    "results exchanged": (swap_results, "conversation"),
    "somebody speaks between": (speak_between, "conversation"),
    "the model's message changed": (rewrite("message:added", "message", 1, "I go on.", "I stop."), "conversation"),
    "the prompt removed": (drop("message:added", 0), "conversation"),
    "an injection changed": (
        lambda it: rewrite(
            "message:added",
            "message",
            next(number for number, each in enumerate(it.events("message:added")) if each["origin"] == "injection"),
            "colours",
            "odours",
        )(it),
        "conversation",
    ),
    "an unknown origin": (edit("message:added", 1, origin="elsewhere"), "conversation"),
    "an injection that nobody made": (drop("context:injected"), "conversation"),
    "another tool run": (edit("action:started", 0, tool="run_command"), "actions"),
    "other arguments": (edit("action:started", 0, input='blob:{"path":"/etc/passwd"}'), "actions"),
    "a call run that nobody asked for": (edit("action:started", 0, call_id="z"), "actions"),
    "a denied call's id changed": (edit("action:denied", 0, call_id="z"), "actions"),
    "a denial without a reason": (edit("action:denied", 0, reason=""), "actions"),
    "a denial removed": (drop("action:denied"), "actions"),
    "a result gone": (drop("action:finished", 0), "actions"),
    "an action begun twice": (double("action:started"), "actions"),
    "a result twice": (double("action:finished"), "actions"),
    "an unknown outcome": (edit("action:finished", 0, outcome="great"), "actions"),
    "a success that failed": (edit("action:finished", 0, is_success=False), "actions"),
    "an outcome that is said to be unknown": (
        edit("action:finished", 0, outcome="outcome unknown", is_success=False),
        "actions",
    ),
    "better figures": (edit("verification:finished", 0, passed=2), "verifications"),
    "more cases": (edit("verification:finished", 0, total=9), "verifications"),
    "a verification that was not made": (insert("verification:finished", VERIFIED, "actions:settled"), "verifications"),
    "figures and a reason why there are none": (edit("verification:finished", 0, error="broken"), "verifications"),
    "a verification by the model": (edit("verification:finished", 0, is_automatic=False), "verifications"),
    "a charge of nothing": (inside("turn:answered", "charge", 1, input_tokens=0), "budget"),
    "a smaller reservation": (inside("turn:started", "reservation", 1, output_tokens=1), "budget"),
    "less time left": (inside("turn:started", "reservation", 1, time_us=10**12), "budget"),
    "an overrun invented": (insert("budget:overrun", {"attempt": 1, "limits": ["tokens"]}, "turn:ended"), "budget"),
    "an overrun hidden": (inside("turn:answered", "charge", 1, output_tokens=9_000), "budget"),
    "time given back": (
        lambda it: ((edit("turn:answered", 0, duration_us=9_000)(it), edit("execution:end", 0, active_us=0)(it))),
        "budget",
    ),
    "another answer": (edit("answer:given", 0, answer="blob:All is well."), "endings"),
    "another response": (edit("execution:end", 0, response="All is well."), "endings"),
    "another status": (edit("orchestrator:complete", 0, status="incomplete"), "endings"),
    "more answers counted": (edit("orchestrator:complete", 0, turn_count=9), "endings"),
    "another preview": (edit("prompt:complete", 0, response_preview="All is well."), "endings"),
    "no end": (drop("execution:end"), "markers"),
    "two ends": (double("execution:end"), "markers"),
    "no isolation": (drop("isolation:established"), "isolation"),
    "a denial ignored": (edit("action:started", 0, decisions=DENIED), "consents"),
    "nobody asked": (edit("turn:started", 1, decisions=ASKED), "consents"),
    "another lifecycle": (lambda it: it.bodies[5].update(lifecycle="run"), "moves"),
    "a state left out": (lambda it: it.bodies[7].update(source="verifying"), "moves"),
}
INCOMPLETE: dict[str, tuple[Change, str]] = {
    "a limit that it does not have": (edit("budget:exhausted", 0, limit="money_micro"), "budget"),
    "a limit that was not reached": (edit("budget:exhausted", 0, limit="tool_calls"), "budget"),
    "more turns allowed": (lambda it: it.events("execution:start")[0]["budget"].update(attempts=9), "budget"),
    "success claimed": (edit("orchestrator:complete", 0, status="success"), "endings"),
}


@pytest.mark.parametrize("change", AGENTS)
def test_a_rewritten_agent_run(change: str, tampered: Callable[[str], Any]) -> None:
    """A rewritten history with a chain of its own does not hold together, and the right check says so."""
    act, check = AGENTS[change]
    forgery = tampered("completed")
    act(forgery)
    assert check in found(forgery.rechain())


@pytest.mark.parametrize("change", INCOMPLETE)
def test_a_rewritten_run_that_reached_a_limit(change: str, tampered: Callable[[str], Any]) -> None:
    """The limit that ended a run follows from its records."""
    act, check = INCOMPLETE[change]
    forgery = tampered("incomplete")
    act(forgery)
    assert check in found(forgery.rechain())


def within(change: Change, number: int = 0, *, is_told: bool = True) -> Change:
    """Rewrite a child consistently, and what its parent tells of its end."""

    def act(it: Any) -> None:
        child = type(it)(it.document["children"][number])
        change(child)
        child.rechain()
        if is_told:
            head = child.document["head"]
            it.events("child:ended")[number].update(head=head["digest"], count=head["count"])

    return act


def add_records(it: Any) -> None:
    """Have a child go on after its end."""
    it.document["records"] += deepcopy(it.document["records"][-2:])


def charge_more(it: Any) -> None:
    """Have a child's call cost more than anyone paid for."""
    it.events("turn:answered")[0]["charge"].update(output_tokens=400)


TREES: dict[str, tuple[Change, str]] = {
    "a child removed": (lambda it: it.document["children"].pop(), "tree"),
    "all children removed": (lambda it: it.document.pop("children"), "tree"),
    "a child twice": (lambda it: it.document["children"].append(deepcopy(it.document["children"][0])), "tree"),
    "a child from elsewhere": (
        lambda it: it.document["children"].append({**json.loads(document_of("completed"))}),
        "tree",
    ),
    "children exchanged": (
        lambda it: (
            [child.update(run=run) for child, run in zip(it.document["children"], ("top.2", "top.1"), strict=True)]
            and None
        ),
        "records",
    ),
    "a child rewritten": (within(edit("turn:answered", 0, duration_us=5), is_told=False), "tree"),
    "a child cut": (within(lambda it: it.document["records"].pop(), is_told=False), "tree"),
    "a child's end told wrongly": (edit("child:ended", 0, head="0" * 64), "tree"),
    "a child's length told wrongly": (edit("child:ended", 0, count=3), "tree"),
    "a child's state told wrongly": (edit("child:ended", 0, status="failed"), "tree"),
    "a child that went on": (within(add_records, 1, is_told=False), "tree"),
    "an announcement removed": (drop("child:started", 0), "tree"),
    "an announcement doubled": (double("child:started", 0), "tree"),
    "an announcement of another lifecycle": (edit("child:started", 0, lifecycle="run"), "tree"),
    "the end of nobody": (edit("child:ended", 0, child_id="top.9"), "tree"),
    "another parent": (within(edit("execution:start", 0, parent_id="elsewhere")), "tree"),
    "another root": (within(edit("execution:start", 0, root_id="elsewhere")), "tree"),
    "another place in the parent": (within(edit("execution:start", 0, parent_sequence=2)), "tree"),
    "a child that cost more": (within(charge_more), "tree"),
    "a child that may use more": (
        within(lambda it: it.events("execution:start")[0]["budget"].update(tokens=10**9)),
        "tree",
    ),
    "a child without a limit": (
        within(lambda it: it.events("execution:start")[0]["budget"].update(tokens=None)),
        "tree",
    ),
    "a child that may take longer": (
        within(lambda it: it.events("execution:start")[0]["budget"].update(time_us=10**12)),
        "tree",
    ),
    "a child's answer changed": (within(edit("answer:given", 0, answer="blob:All is well.")), "endings"),
    "a child's text changed": (
        lambda it: it.document["children"][0]["blobs"].update({min(it.document["children"][0]["blobs"]): "other"}),
        "digests",
    ),
    "a child's head changed": (lambda it: it.document["children"][0]["head"].update(count=2), "head"),
    "a child's chain broken": (lambda it: it.document["children"][0]["records"].pop(3), "chain"),
}


@pytest.mark.parametrize("change", TREES)
def test_a_rewritten_tree(change: str, tampered: Callable[[str], Any]) -> None:
    """Whatever does not fit between a run and those inside it is found, even where each is whole by itself."""
    act, check = TREES[change]
    forgery = tampered("tree")
    act(forgery)
    assert check in found(forgery.rechain())


def test_a_finding_names_its_run(tampered: Callable[[str], Any]) -> None:
    """What is found in a run inside the audited one says in which."""
    forgery = tampered("tree")
    within(edit("answer:given", 0, answer="blob:All is well."), 1)(forgery)
    report = audit(forgery.rechain().export())
    assert {(each.check, each.run) for each in report.findings} == {("endings", "top.2")}
    assert [each["run"] for each in report.as_json()["findings"]] == ["top.2"] * len(report.findings)
    assert str(report.findings[0]).startswith("endings: run top.2: record ")


def test_a_child_alone_can_be_audited(tampered: Callable[[str], Any]) -> None:
    """A run that lies inside another is whole by itself, too."""
    child = tampered("tree").document["children"][0]
    report = audit(parse_export(json.dumps(child)))
    assert (report.findings, report.run_id, report.spec_digest) == ((), "top.1", "")
