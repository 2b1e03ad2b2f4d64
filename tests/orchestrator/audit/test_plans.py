"""The audit of a plan: whatever somebody rewrites in it, with chains that fit again, is found by the named check."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import attrs
import pytest

from orchestrator.audit import audit
from orchestrator.cli.application import run_application
from orchestrator.export import export_json
from orchestrator.importing import parse_export
from orchestrator.plan.checks import CommandCheck
from orchestrator.plan.conditions import Test
from orchestrator.plan.contextbus import ContextBus
from orchestrator.plan.engine import PlanOrchestrator
from orchestrator.plan.models import GeneratorModel
from orchestrator.plan.plan import read_plan
from orchestrator.plan.review import Checklist, Review, ReviewStatus
from orchestrator.plan.routing import Mode, Policy, Rule, Treatment
from orchestrator.ports import Request
from orchestrator.process import CONTAINMENT
from orchestrator.replay import replay, runs_in
from orchestrator_events.budget import Budget
from orchestrator_events.record import GENESIS, chain_digest

CHECKLIST = {"correctness": True, "security": True, "tests_passed": True}
YES = Review(status=ReviewStatus.APPROVED, checklist=Checklist(correctness=True, security=True, tests_passed=True))
POLICY = Policy(
    default=Treatment(primary="writer", secondary="second", reviewer="reviewer"),
    rules=(
        Rule(
            name="twice",
            condition=Test("ambiguous", "==", (True,)),
            treatment=Treatment(primary="writer", secondary="second", reviewer="reviewer", mode=Mode.DUAL_RUN),
        ),
    ),
)
Body = dict[str, Any]
Change = Callable[["Forged"], object]


def step(step_id: str, *after: str, **fields: Any) -> dict[str, Any]:
    """A step of low risk."""
    base = {"id": step_id, "role": "Writer", "task": f"write {step_id}", "risk_level": "low"}
    return {**base, "acceptance_criteria": ["it is written"], "depends_on": list(after), **fields}


def plan(task: str = "write c") -> dict[str, Any]:
    """A plan of a contract, a tested step, and one that is ambiguous."""
    steps = [
        step("a", outputs=["CONTRACTS/a.json"]),
        step("b", "a", task_type="implementation", outputs=["b.py"]),
        step("c", "b", ambiguity=True, task=task),
    ]
    return {"plan_id": "p", "goal": "write", "steps": steps}


def said(status: str, **more: Any) -> str:
    """A review."""
    return json.dumps({"status": status, "checklist": CHECKLIST, **more})


def reviewer(request: Request) -> str:
    """Approves a with a condition, b at the second time; c is blocked until the plan is amended."""
    if "comparison" in request.run_id:
        return json.dumps({"choice": 2, "reason": "shorter"})
    if request.run_id == "p.a.review-1":
        return said("approved_with_conditions", conditions=["name the fields"])
    if request.run_id == "p.b.review-1":
        return said("changes_requested", required_fixes=["shorter"])
    if ".c." in request.run_id and "write c again" not in request.prompt:
        return said("blocked", diff_risk_notes=["nobody knows what c is"])
    return said("approved")


def orchestrator_in(place: Path) -> PlanOrchestrator:
    """What executes the plan."""

    def writer(request: Request) -> str:
        schema = '{"$schema": "https://json-schema.org/draft/2020-12/schema"}'
        return schema if ".a." in request.run_id or ".a-followup." in request.run_id else f"text of {request.run_id}"

    models: dict[str, Any] = {
        name: GeneratorModel(writer, parameters={"max_tokens": 400})
        for name in ("writer", "second", "StrongReasoningModel")
    }
    models["reviewer"] = GeneratorModel(reviewer, parameters={"max_tokens": 400})
    return PlanOrchestrator(
        read_plan(plan(), "plan.json"),
        models=models,
        policy=POLICY,
        studio=ContextBus(root=place / "studio"),
        checks=[CommandCheck("qa", ("{python}", "-c", "print('2 passed')"), launcher=CONTAINMENT)],
        budget=Budget(attempts=200, tokens=500_000),
        has_release_manager=False,
    )


@cache
def document() -> str:
    """A plan with a follow-up, a fix, a dual run, a block and an amendment, completed."""
    with TemporaryDirectory() as place:
        orchestrator = orchestrator_in(Path(place))
        orchestrator.review(YES, "Ada")
        orchestrator.lock()
        assert orchestrator.run().status == "blocked"
        orchestrator.amend(read_plan(plan("write c again"), "plan.json"), "c was unclear")
        orchestrator.review(YES, "Ada")
        orchestrator.lock()
        assert orchestrator.resume().status == "completed"
        return asyncio.run(export_json(orchestrator.journal, "p"))


@attrs.define
class Forged:
    """An export in the hands of somebody who knows the form and may rewrite all of it."""

    document: Body

    def tree(self, node: Body | None = None) -> list[Body]:
        """The runs, the outermost first."""
        node = self.document if node is None else node
        return [node, *(each for child in node.get("children", ()) for each in self.tree(child))]

    def run(self, run_id: str) -> Body:
        """One run."""
        return next(node for node in self.tree() if node["run"] == run_id)

    def event(self, run_id: str, name: str, number: int = 0) -> Body:
        """The fields of an event, to be changed."""
        found = [link["body"]["event"] for link in self.run(run_id)["records"] if link["body"]["name"] == name]
        event: Body = found[number]
        return event

    def text(self, run_id: str, field: Body) -> str:
        """A text that a record names."""
        return str(self.blobs(run_id)[field["sha256"]])

    def blobs(self, run_id: str) -> Body:
        """The texts of a run's export."""
        found: Body = self.run(run_id).get("blobs") or self.document["blobs"]
        return found

    def blob(self, run_id: str, text: str) -> Body:
        """Add a text; what a record says of it."""
        digest = sha256(text.encode()).hexdigest()
        self.blobs(run_id)[digest] = text
        return {"bytes": len(text.encode()), "sha256": digest}

    def findings(self) -> list[str]:
        """What an audit finds once every chain fits again, the ends that parents tell of their children too."""
        self.rechain(self.document)
        for node in self.tree():
            names = json.dumps([link["body"] for link in node["records"]])
            if "blobs" in node:
                kept = names if node is not self.document else json.dumps(self.document)
                node["blobs"] = {key: text for key, text in node["blobs"].items() if key in kept}
        return [str(each) for each in audit(parse_export(json.dumps(self.document))).findings]

    def rechain(self, node: Body) -> None:
        """Number and chain the records anew, innermost runs first."""
        heads: dict[str, list[str]] = {}
        for child in node.get("children", ()):
            self.rechain(child)
            heads[child["run"]] = [link["digest"] for link in child["records"]]
        links, previous = [], GENESIS
        for sequence, link in enumerate(node["records"], 1):
            body = link["body"]
            body["sequence"] = sequence
            if body["name"] == "child:ended":
                ended = body["event"]
                ended["head"] = heads[ended["child_id"]][ended["count"] - 1]
            data = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
            digest = chain_digest(previous, data)
            links.append({"sequence": sequence, "previous": previous, "digest": digest, "body": body})
            previous = digest
        node["records"] = links
        node["head"] = {"digest": previous, "count": len(links)}


@pytest.fixture
def forged() -> Forged:
    """The plan in the wrong hands."""
    return Forged(deepcopy(json.loads(document())))


def test_what_nobody_touched_is_clean(forged: Forged) -> None:
    """The plan that is tampered with here is clean before that, and rechained it still is; its checks are named."""
    report = audit(parse_export(document()))
    assert (report.findings, {"plan", "step", "tree"} <= set(report.checks)) == ((), True)
    assert forged.findings() == []


def sets(run_id: str, name: str, place: int = 0, /, **fields: Any) -> Change:
    """Set fields of an event."""
    return lambda it: it.event(run_id, name, place).update(fields)


def rewrites(run_id: str, name: str, field: str, old: str, new: str, number: int = 0) -> Change:
    """Replace words in a text that an event names."""

    def change(it: Forged) -> None:
        event = it.event(run_id, name, number)
        text = it.text(run_id, event[field])
        assert old in text
        event[field] = it.blob(run_id, text.replace(old, new))

    return change


def moves(run_id: str, name: str, number: int, before: str, at: int = 0) -> Change:
    """Put a record before another one."""

    def change(it: Forged) -> None:
        links = it.run(run_id)["records"]
        places = [index for index, link in enumerate(links) if link["body"]["name"] == name]
        link = links.pop(places[number])
        places = [index for index, each in enumerate(links) if each["body"]["name"] == before]
        links.insert(places[at], link)

    return change


def task_everywhere(it: Forged) -> None:
    """Change what a step is to do in the plan and in the step's run, but not the digest that was locked."""
    for name in ("execution:start", "plan:drafted"):
        field = {"execution:start": "prompt", "plan:drafted": "plan"}[name]
        rewrites("p", name, field, '"write b"', '"steal b"')(it)
    rewrites("p.b", "execution:start", "prompt", '"write b"', '"steal b"')(it)


FORGERIES: dict[str, tuple[Change, str, str]] = {
    "the plan changed unseen": (task_everywhere, "plan", "it was changed unseen"),
    "another plan drafted": (rewrites("p", "plan:drafted", "plan", "write b", "steal b"), "plan", "another plan"),
    "another digest locked": (sets("p", "plan:locked", digest="sha256:" + "0" * 64), "plan", "changed unseen"),
    "a digest locked again": (sets("p", "plan:locked", 1, digest="sha256:" + "0" * 64), "plan", "changed unseen"),
    "another digest started": (sets("p", "plan:started", digest="sha256:" + "0" * 64), "plan", "starts sha256:000"),
    "an amendment with more": (
        rewrites("p", "plan:amended", "plan", '"write b"', '"steal b"'), "plan", "tells another difference",
    ),
    "an amendment of what is completed": (
        rewrites("p", "plan:amended", "plan", '"write b"', '"steal b"'), "plan", "changes b, which is completed",
    ),
    "an amendment told otherwise": (
        rewrites("p", "plan:amended", "difference", "again", "once"), "plan", "tells another difference",
    ),
    "approved by nobody": (sets("p", "plan:reviewed", reviewer=""), "plan", "review by nobody"),
    "locked by nobody": (sets("p", "plan:locked", by=""), "plan", "is locked by nobody"),
    "amended by nobody": (sets("p", "plan:amended", by=""), "plan", "an amendment by nobody"),
    "amended for no reason": (sets("p", "plan:amended", reason=" "), "plan", "an amendment by nobody, or for no"),
    "an approval that is none": (
        lambda it: it.event("p", "plan:reviewed").update(
            review=it.blob("p", said("changes_requested", required_fixes=["split it"]))
        ),
        "plan", "with a review that says changes_requested",
    ),
    "a step before its dependency": (moves("p", "child:started", 2, "child:started"), "plan", "begins step b before a"),
    "a step beside the follow-up that it waits for": (
        moves("p", "child:started", 2, "child:started", 1), "plan", "begins step b before a-followup",
    ),
    "a step completed before its dependency": (
        moves("p", "step:settled", 0, "plan:completed"), "plan", "completes step b before a",
    ),
    "a step settled as another": (sets("p", "step:settled", step="z"), "plan", "no step of the plan in force"),
    "a block told as completion": (
        lambda it: [each.update(state="completed") for each in settlements(it) if each["state"] == "blocked"], "tree",
        "step c is blocked, settled as 'completed'",
    ),
    "another charge settled": (
        lambda it: settlements(it)[0]["charge"].update(input_tokens=1), "tree", "settled with Charge(input_tokens=1",
    ),
    "steps left out at the end": (sets("p", "plan:completed", steps=["a"]), "plan", "says that a were completed"),
    "what was never published": (
        sets("p", "release:prepared", paths=["RUNS/p/other.md"]), "plan", "which was never published",
    ),
    "a follow-up of another name": (sets("p", "followup:added", followup="z"), "plan", "adds step a-followup"),
    "a follow-up without the conditions": (
        rewrites("p", "followup:added", "definition", "name the fields", "relax"), "tree", "has other criteria",
    ),
    "a step that is not the plan's": (
        rewrites("p.b", "execution:start", "prompt", "write b", "steal b"), "tree", "what no locked plan says",
    ),
    "unblocked by no lock": (
        sets("p.c", "step:unblocked", digest="sha256:" + "0" * 64), "tree", "which was never locked",
    ),
    "unblocked by the plan it was blocked under": (
        lambda it: it.event("p.c", "step:unblocked").update(digest=it.event("p", "plan:locked")["digest"]), "tree",
        "begins anew under the plan that it ended under, for no reason",
    ),
    "retried by nobody": (
        sets("p.c", "step:unblocked", reason="it is mended"), "tree", "begins anew for no reason, or by nobody",
    ),
    "failures counted down": (sets("p.b", "step:routed", 1, failures=0), "step", "counts 0 failures, there are 1"),
    "an execution left out": (sets("p.b", "step:started", 1, number=3), "step", "is execution 3, expected 2"),
    "begun by another model": (sets("p.b", "step:started", model="second"), "step", "which the route does not name"),
    "in another role": (sets("p.b", "step:started", role="Boss"), "step", "the plan says another"),
    "another reviewer": (sets("p.b", "step:reviewed", reviewer="second"), "step", "which the route does not name"),
    "a rejection approved": (
        sets("p.b", "step:reviewed", outcome="approved"), "step", "comes to 'approved', the review says",
    ),
    "a review made up": (
        rewrites("p.b", "step:reviewed", "review", "shorter", "nothing"), "step",
        "another review than the reviewer gave",
    ),
    "an output made up": (
        lambda it: it.event("p.b", "step:executed").update(output=it.blob("p.b", "malware")),
        "step", "is no output that 'writer' gave",
    ),
    "an output that its run did not give": (
        lambda it: [
            it.event("p.b", "step:executed").update(output=it.blob("p.b", "malware")),
            it.event("p.b", "work:finished").update(output=it.blob("p.b", "malware")),
        ],
        "tree", "gave another output",
    ),
    "a file made up": (
        lambda it: it.event("p.b", "artifact:published").update(content=it.blob("p.b", "malware")),
        "step", "which is not in the step's output",
    ),
    "a file reviewed too early": (sets("p.b", "artifact:published", standing="reviewed"), "step", "as 'reviewed'"),
    "a test that failed": (
        rewrites("p.b", "step:verified", "evidence", '"exit_status": 0', '"exit_status": 1'), "step",
        "has passed, but closed: qa",
    ),
    "captured output altered": (
        rewrites("p.b", "step:verified", "evidence", "2 passed", "9 passed"), "step", "names an output of",
    ),
    "no evidence at all": (
        lambda it: it.event("p.b", "step:verified").update(evidence=it.blob("p.b", "[]")), "step",
        "has passed, but closed: qa",
    ),
    "less isolation than was found": (
        rewrites("p.b", "step:verified", "evidence", '"level": "basic"', '"level": "none"'), "step",
        "was captured under none",
    ),
    "work charged less": (
        lambda it: it.event("p.b", "work:finished")["charge"].update(input_tokens=1), "tree",
        "input tokens, its parent 1",
    ),
    "an execution charged less": (
        lambda it: it.event("p.b", "step:executed")["charge"].update(input_tokens=1), "step", "its work cost",
    ),
    "work by another model": (sets("p.b", "work:started", model="second"), "step", "the route names 'writer'"),
    "asked again for no reason": (sets("p.b", "work:started", again="unreadable"), "step", "is primary again"),
    "another prompt": (
        rewrites("p.b", "work:started", "prompt", "write b", "steal b"), "tree", "another prompt than the work",
    ),
    "the other candidate": (
        lambda it: it.event("p.c", "step:compared").update(chosen=0), "step", "another output than the chosen one",
    ),
    "candidates made up": (
        lambda it: it.event("p.c", "step:compared")["candidates"].__setitem__(0, it.blob("p.c", "worse")), "step",
        "compares other candidates",
    ),
    "a budget that was smaller": (
        lambda it: [
            link["body"]["event"]["budget"].update(tokens=900)
            for link in it.run("p")["records"]
            if link["body"]["name"] == "execution:start"
        ],
        "tree", "tokens, its budget is 900",
    ),
}  # fmt: skip
"""What is done, and the check that finds it, with what it says."""


def settlements(it: Forged) -> list[Body]:
    """How the plan says its steps ended."""
    return [link["body"]["event"] for link in it.run("p")["records"] if link["body"]["name"] == "step:settled"]


def test_a_plan_that_nobody_gave_up(tmp_path: Path) -> None:
    """Who abandoned a plan is told; an abandonment without that is found."""
    orchestrator = orchestrator_in(tmp_path)
    orchestrator.review(YES, "Ada")
    orchestrator.abandon("it is too late", "Grace")
    forged = Forged(json.loads(asyncio.run(export_json(orchestrator.journal, "p"))))
    assert (forged.event("p", "plan:abandoned"), forged.findings()) == ({"by": "Grace", "reason": "it is too late"}, [])
    forged.event("p", "plan:abandoned")["by"] = ""
    assert [each.partition(": ")[2] for each in forged.findings()] == ["record 8: is given up by nobody"]


@pytest.mark.parametrize("name", FORGERIES)
def test_forgeries(forged: Forged, name: str) -> None:
    """Each one is found, by the check that is there for it, in the words that name it."""
    change, check, words = FORGERIES[name]
    change(forged)
    found = forged.findings()
    assert [each for each in found if each.startswith(f"{check}: ") and words in each] != [], found


def test_every_decision_inside_is_replayed() -> None:
    """'Artifacts written to /studio for audit and replay': of plan, steps and models, each in words."""
    export = parse_export(document())
    steps = replay(export)
    counted = Counter(each.run for each in steps)
    assert counted == {each.run_id: len(each.links) for each in runs_in(export)}
    assert [each.time for each in steps] == sorted(each.time for each in steps)
    families = ("plan:", "step:", "work:", "followup:", "decision:", "artifact:", "release:")
    assert {each.event for each in steps if each.event.startswith(families) and not each.decision} == set()
    told = {each.decision for each in steps if each.run in ("p", "p.b", "p.c")}
    assert {
        "rule twice: writer, secondary second, dual-run, reviewed by reviewer; Rule twice: ambiguous.",
        "reviewer: changes requested; shorter",
        "candidate 2 of 2: evals are even; reviewer: shorter",
        "reviewer: blocked; nobody knows what c is",
    } - told == set()
    assert [each.decision for each in steps if each.event == "step:verified" and each.run == "p.b"] != []


def test_one_run_inside_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--only` names a run of the file, which is shown with those inside it; an unknown one is a usage error."""
    monkeypatch.chdir(tmp_path)
    Path("journal.json").write_text(document())
    assert run_application(["replay", "journal.json", "--only", "p.b"]) == 0
    runs = {line.split()[2] for line in capsys.readouterr().out.splitlines()}
    assert runs == {"p.b", "p.b.primary-1", "p.b.primary-2", "p.b.review-1", "p.b.review-2"}
    assert run_application(["replay", "journal.json", "--only", "p.bb"]) == 2
    assert "did you mean p.b?" in capsys.readouterr().err


def test_a_run_folder_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """'Artifacts written to /studio for audit and replay': RUNS/<run_id>/ alone, elsewhere, is audited."""
    orchestrator = orchestrator_in(tmp_path)
    orchestrator.review(YES, "Ada")
    orchestrator.lock()
    result = orchestrator.run()
    shutil.copytree(tmp_path / "studio/RUNS/p", tmp_path / "elsewhere")
    shutil.rmtree(tmp_path / "studio")
    monkeypatch.chdir(tmp_path / "elsewhere")
    head = ["--head", result.journal_head.digest]
    codes = [run_application(["audit", "journal.json", *head]), run_application(["replay", "journal.json"])]
    assert codes == [0, 0]
