"""Whatever somebody changes in an export is found, and by the check that is there for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest

from orchestrator.audit import audit
from orchestrator.importing import parse_export

Change = Callable[[Any], None]
PASSED = "passed after failures"


def swap(items: list[Any], one: int, other: int) -> None:
    """Exchange two."""
    items[one], items[other] = items[other], items[one]


CRUDE: dict[str, tuple[Change, str]] = {
    "a record dropped": (lambda it: it.document["records"].pop(4), "chain"),
    "two records exchanged": (lambda it: swap(it.document["records"], 4, 5), "chain"),
    "a record doubled": (lambda it: it.document["records"].insert(4, it.document["records"][4]), "chain"),
    "a record moved in": (lambda it: it.document["records"].insert(2, it.document["records"][9]), "chain"),
    "cut off at the end": (lambda it: it.document["records"].pop(), "head"),
    "cut off at the beginning": (lambda it: it.document["records"].pop(0), "chain"),
    "everything removed": (lambda it: it.document["records"].clear(), "chain"),
    "a field changed": (lambda it: it.events("attempt:failed")[1].update(duration_us=7), "chain"),
    "a digest changed": (lambda it: it.document["records"][3].update(digest="0" * 64), "chain"),
    "the head changed": (lambda it: it.document["head"].update(digest="0" * 64), "head"),
    "the count changed": (lambda it: it.document["head"].update(count=2), "head"),
    "a text changed": (lambda it: it.document["blobs"].update({min(it.document["blobs"]): "other"}), "digests"),
    "a text removed": (lambda it: it.document["blobs"].pop(min(it.document["blobs"])), "digests"),
    "a text added": (lambda it: it.blob("nobody names me"), "digests"),
    "the run renamed": (lambda it: it.document.update(run="other"), "records"),
    "a row of the table changed": (lambda it: it.document["table"]["rows"][1].update(target="passed"), "moves"),
    "a row of the table removed": (lambda it: it.document["table"]["notes"].pop(), "moves"),
    "a table too large to check": (lambda it: it.document["table"].update(states=["s" * 9] * 9_000), "table"),
    "no table": (lambda it: it.document["table"].clear(), "table"),
    "a field added to the table": (lambda it: it.document["table"].update(more=1), "table"),
}


@pytest.mark.parametrize("change", CRUDE)
def test_crude_changes(forge: Callable[[str], Any], change: str) -> None:
    """Changes to a file show without knowing anything else."""
    forgery = forge(PASSED)
    act, check = CRUDE[change]
    act(forgery)
    report = audit(forgery.export())
    assert check in {finding.check for finding in report.findings}


def test_swapped_texts(forge: Callable[[str], Any]) -> None:
    """Two texts that changed places are found, both."""
    forgery = forge(PASSED)
    blobs = forgery.document["blobs"]
    one, other = sorted(blobs)[:2]
    blobs[one], blobs[other] = blobs[other], blobs[one]
    found = [finding.message for finding in audit(forgery.export()).findings if finding.sequence == 0]
    assert [one[:8] in found[0] or other[:8] in found[0], len(found)] == [True, 2]


def without(forgery: Any, *names: str) -> None:
    """Remove every record of these events."""
    forgery.document["records"] = [link for link in forgery.document["records"] if link["body"]["name"] not in names]


def passed_instead(forgery: Any) -> None:
    """Make the first failed evaluation a pass that ends the run."""
    bodies = forgery.bodies
    at = next(index for index, body in enumerate(bodies) if body["event"].get("stage") == "evaluation")
    event = {
        "attempt": bodies[at]["event"]["attempt"],
        "passed": ["red"],
        "duration_us": 0,
        "is_pinned": True,
        "isolation": "none",
        "integrity": "host",
    }
    bodies[at] = {**bodies[at], "name": "attempt:passed", "target": "passed", "event": event}
    forgery.document["records"] = [{"body": body} for body in [*bodies[: at + 1], *bodies[-2:]]]


def shortened_prompt(forgery: Any, section: str, index: int = -1) -> None:
    """Take a section out of a prompt, the last unless another is named."""
    event = forgery.events("prompt:ready")[index]
    text = forgery.document["blobs"][event["prompt"]["sha256"]]
    assert section in text
    event["prompt"] = forgery.blob(text.replace(section, ""))


def other_spec(forgery: Any) -> None:
    """Weaken the spec in the first record."""
    event = forgery.events("execution:start")[0]
    text = forgery.document["blobs"][event["prompt"]["sha256"]]
    event["prompt"] = forgery.blob(text.replace("One line.", "Any number of lines."))


def loose_spec(forgery: Any) -> None:
    """Write the same spec with white space."""
    event = forgery.events("execution:start")[0]
    text = forgery.document["blobs"][event["prompt"]["sha256"]]
    event["prompt"] = forgery.blob(text + " ")


def doubled_end(forgery: Any) -> None:
    """End the last invocation twice."""
    forgery.document["records"].append(deepcopy(forgery.document["records"][-1]))


def invented_overrun(forgery: Any) -> None:
    """Note an overrun after a call that stayed within its limits."""
    at = next(index for index, body in enumerate(forgery.bodies) if body["name"] == "candidate:generated")
    event = {"attempt": forgery.bodies[at]["event"]["attempt"], "limits": ["tokens"]}
    noted = {"name": "budget:overrun", "source": "evaluating", "target": "evaluating", "event": event}
    forgery.document["records"].insert(at + 1, {"body": {**forgery.bodies[at], **noted}})


def case_made_to_pass(forgery: Any) -> None:
    """Have a case that failed pass."""
    event = forgery.events("attempt:failed")[3]
    event.update(failing=event["failing"][:1], passed=["green"])


REWRITTEN: dict[str, tuple[str, Change, str]] = {
    "end markers removed": (PASSED, lambda it: without(it, "orchestrator:complete", "execution:end"), "markers"),
    "end marker removed": (PASSED, lambda it: without(it, "execution:end"), "markers"),
    "completion removed": (PASSED, lambda it: without(it, "orchestrator:complete"), "markers"),
    "end markers of an interruption removed": (
        "interrupted by the evaluator",
        lambda it: without(it, "orchestrator:complete", "execution:end"),
        "markers",
    ),
    "end marker doubled": (PASSED, doubled_end, "markers"),
    "beginning removed": (PASSED, lambda it: it.document["records"].pop(0), "spec"),
    "another invocation": (PASSED, lambda it: it.events("execution:start")[0].update(invocation=2), "markers"),
    "an attempt removed": (
        PASSED,
        lambda it: it.document.update(records=it.document["records"][:5] + it.document["records"][9:]),
        "attempts",
    ),
    "a record removed": (PASSED, lambda it: it.document["records"].pop(5), "moves"),
    "an attempt renumbered": (PASSED, lambda it: it.events("attempt:failed")[1].update(attempt=7), "attempts"),
    "another key": (PASSED, lambda it: it.events("candidate:generated")[0].update(key="7f3a:9"), "budget"),
    "a failure made a pass": (PASSED, passed_instead, "verdicts"),
    "a failing case dropped": (PASSED, lambda it: it.events("attempt:failed")[1].update(failing=[]), "verdicts"),
    "a failing case made to pass": (
        PASSED,
        case_made_to_pass,
        "prompts",
    ),
    "a case renamed": (PASSED, lambda it: it.events("attempt:failed")[1]["failing"][0].update(id="blue"), "verdicts"),
    "a severity lowered": (
        PASSED,
        lambda it: it.events("attempt:failed")[3]["failing"][0].update(severity=""),
        "verdicts",
    ),
    "a reuse hidden": (PASSED, lambda it: it.events("attempt:failed")[2].update(reused_from=0), "verdicts"),
    "repeats forged": (PASSED, lambda it: it.events("attempt:failed")[2].update(repeats=0), "verdicts"),
    "another passed case": (PASSED, lambda it: it.events("attempt:passed")[0].update(passed=["red"]), "verdicts"),
    "a pass unpinned": (PASSED, lambda it: it.events("attempt:passed")[0].update(is_pinned=False), "verdicts"),
    "an error hidden": (PASSED, lambda it: it.events("attempt:failed")[0].update(error=""), "verdicts"),
    "another candidate": (
        PASSED,
        lambda it: it.events("candidate:generated")[-1].update(candidate=it.blob("malice")),
        "results",
    ),
    "a candidate of another form": (
        PASSED,
        lambda it: it.events("candidate:generated")[0].update(form="files"),
        "digests",
    ),
    "another response": (PASSED, lambda it: it.events("execution:end")[0].update(response=""), "results"),
    "another status": (PASSED, lambda it: it.events("execution:end")[0].update(status="error"), "results"),
    "an interruption called a success": (
        "interrupted by the evaluator",
        lambda it: it.events("execution:end")[0].update(status="completed"),
        "results",
    ),
    "answers miscounted": (PASSED, lambda it: it.events("orchestrator:complete")[0].update(turn_count=1), "results"),
    "an intent not sent": (PASSED, lambda it: shortened_prompt(it, "Name the colours — all of them.\r\n"), "prompts"),
    "constraints not sent": (PASSED, lambda it: shortened_prompt(it, "- one-line: One line."), "prompts"),
    "threat model not sent": (PASSED, lambda it: shortened_prompt(it, "None to speak of."), "prompts"),
    "failures not sent": (PASSED, lambda it: shortened_prompt(it, "\n- green\n", 2), "prompts"),
    "another spec": (PASSED, other_spec, "prompts"),
    "a spec in another form": (PASSED, loose_spec, "spec"),
    "another strategy": (PASSED, lambda it: it.events("prompt:ready")[1].update(strategy="naive-retry"), "attempts"),
    "other parameters": ("varied", lambda it: it.events("prompt:ready")[1].update(parameters="{}"), "attempts"),
    "parameters that are none": ("varied", lambda it: it.events("prompt:ready")[1].update(parameters="[["), "attempts"),
    "other parameters sent": (
        "varied",
        lambda it: it.events("generation:started")[1].update(parameters="{}"),
        "consents",
    ),
    "an identity that is none": (PASSED, lambda it: it.events("execution:start")[0].update(identity="7"), "attempts"),
    "an overrun hidden": ("overrun", lambda it: without(it, "budget:overrun"), "budget"),
    "an overrun invented": (PASSED, invented_overrun, "budget"),
    "an overrun lessened": (
        "overrun",
        lambda it: it.events("candidate:generated")[0]["charge"].update(output_tokens=9),
        "budget",
    ),
    "a charge lowered": (
        "exhausted by tokens",
        lambda it: it.events("candidate:generated")[0]["charge"].update(input_tokens=10),
        "budget",
    ),
    "a charge of nothing": (
        PASSED,
        lambda it: it.events("candidate:generated")[0]["charge"].update(input_tokens=0),
        "budget",
    ),
    "a negative charge": (
        PASSED,
        lambda it: it.events("candidate:generated")[0]["charge"].update(money_micro=-9),
        "budget",
    ),
    "a charge twice": (PASSED, lambda it: it.events("candidate:generated")[1].update(key="7f3a:2"), "budget"),
    "a reservation lowered": (
        PASSED,
        lambda it: it.events("generation:started")[0]["reservation"].update(input_tokens=1),
        "budget",
    ),
    "time given back": (
        "exhausted by time in a call",
        lambda it: it.events("generation:started")[0]["reservation"].update(time_us=10**9),
        "budget",
    ),
    "active time lowered": (PASSED, lambda it: it.events("execution:end")[0].update(active_us=-1), "budget"),
    "limits tightened": (
        "exhausted by attempts",
        lambda it: it.events("execution:start")[0]["budget"].update(attempts=1),
        "budget",
    ),
    "limits widened": (
        "exhausted by attempts",
        lambda it: it.events("execution:start")[0]["budget"].update(attempts=9),
        "budget",
    ),
    "a limit that the budget lacks": (
        "exhausted by attempts",
        lambda it: it.events("budget:exhausted")[0].update(limit="patience"),
        "budget",
    ),
    "another limit named": (
        "exhausted by repeats",
        lambda it: it.events("budget:exhausted")[0].update(limit="attempts"),
        "budget",
    ),
    "a limit ignored": (
        "exhausted by repeats",
        lambda it: it.events("execution:start")[0]["budget"].update(repeats=1),
        "budget",
    ),
    "a denial overruled": (
        "injected",
        lambda it: it.events("generation:started")[0]["decisions"][0].update(action="deny"),
        "consents",
    ),
    "an injection hidden": (
        "injected",
        lambda it: it.events("generation:started")[0]["decisions"].pop(0),
        "consents",
    ),
    "an injection not sent": (
        "injected",
        lambda it: it.events("generation:started")[0].update(prompt=None),
        "consents",
    ),
    "a section not sent by a gate": (
        "injected",
        lambda it: it.events("generation:started")[0].update(prompt=it.blob("Be brief.")),
        "prompts",
    ),
    "an approval removed": ("approved", lambda it: without(it, "approval:requested", "approval:answered"), "consents"),
    "a no made a yes": (
        "approved",
        lambda it: it.events("approval:answered")[0].update(is_approved=False),
        "consents",
    ),
    "an answer to another question": (
        "approved",
        lambda it: it.events("approval:answered")[0].update(gate="x"),
        "consents",
    ),
    "of another lifecycle": (PASSED, lambda it: it.bodies[3].update(lifecycle="other"), "moves"),
    "of another run": (PASSED, lambda it: it.bodies[3].update(run="other"), "records"),
    "an unknown event": (PASSED, lambda it: it.bodies[3].update(name="run:paused"), "records"),
    "a newer version": (PASSED, lambda it: it.bodies[3].update(version=2), "records"),
    "a field more": (PASSED, lambda it: it.bodies[3]["event"].update(more=1), "records"),
    "a field of another type": (PASSED, lambda it: it.bodies[3].update(at=1.5), "records"),
    "another state": (PASSED, lambda it: it.bodies[3].update(target="passed"), "moves"),
}


@pytest.mark.parametrize("change", REWRITTEN)
def test_rewritten_histories(forge: Callable[[str], Any], change: str) -> None:
    """Somebody who chains everything anew is found where the history contradicts itself, and always by the head."""
    course, act, check = REWRITTEN[change]
    forgery = forge(course)
    published = dict(forgery.document["head"])
    act(forgery)
    forgery.rechain()
    report = audit(forgery.export())
    assert (check in {finding.check for finding in report.findings}, "chain" in {f.check for f in report.findings}) == (
        True,
        False,
    ), [str(finding) for finding in report.findings]
    held = audit(forgery.export(), head=published["digest"], count=published["count"])
    assert "head" in {finding.check for finding in held.findings}


def test_consistent_rewriting(forge: Callable[[str], Any]) -> None:
    """A history rewritten without contradiction shows to whoever holds the head, and to nobody else."""
    forgery = forge(PASSED)
    published = forgery.document["head"]["digest"]
    for body in forgery.bodies:
        body["at"] += 1
    forgery.rechain()
    assert audit(forgery.export()).findings == ()
    assert [finding.check for finding in audit(forgery.export(), head=published).findings] == ["head"]


def test_torn_last_line(exported: Callable[[str], str]) -> None:
    """A last line that was cut off is told, and everything before it is audited."""
    document = json.loads(exported(PASSED))
    lines = [{**link, "blobs": {}} for link in document["records"]]
    lines[0] |= {"blobs": document["blobs"], **{name: document[name] for name in ("format", "run", "table")}}
    text = "".join(json.dumps(line) + "\n" for line in lines)
    assert audit(parse_export(text)).is_clean
    report = audit(parse_export(text[:-9]))
    assert [(finding.check, finding.sequence) for finding in report.findings][:1] == [("chain", len(lines))]
    assert report.head.count == len(lines) - 1
