"""Verifying a step: QA, security and integration look at output that was really captured (contract 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

import attrs

from orchestrator.asking import is_approved
from orchestrator.generating import InterruptionError
from orchestrator.jsondata import JSON
from orchestrator.plan.checks import Check, Examination
from orchestrator.plan.contractfiles import ContractKind, Verdict, check_contract, why_never_validated
from orchestrator.plan.errors import CheckError
from orchestrator.plan.gates import Evidence, GateResult, judge, required_gates
from orchestrator.plan.outputs import shown
from orchestrator.plan.recorded import approvals_of, evidence_in, reviews_of, text_of
from orchestrator.plan.routing import ReviewKind
from orchestrator.plan.steprompt import Input
from orchestrator.plan.steprun import StepRun
from orchestrator.plan.studiopaths import CONTRACTS
from orchestrator.plan.workshop import Task, Workshop
from orchestrator.promptfences import Fenced, Part, written
from orchestrator.supervision import DeadlineError
from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.errors import JournalError
from orchestrator_events.plan import StepBlocked, StepRequested, StepVerified

if TYPE_CHECKING:
    from orchestrator.redaction import Secrets

__all__ = ["evidence_of", "examined", "notes_of", "results_of", "verify"]

AGENTS: Final = (ReviewKind.QA, ReviewKind.SECURITY, ReviewKind.INTEGRATION)
"""Purposes of the work of agents that examine an output."""

EXAMINE = (
    "Examine the output below as the {role} agent. Say what is wrong or missing, most important first, in at most 20 "
    "lines. What the output claims is no evidence; report nothing as run that you did not run.\n\nThe task was:\n"
)


async def verify(it: Workshop) -> None:
    """Have QA and security agents look where the step asks for them, run the checks, and judge the gates."""
    run = it.run
    assert run.executed is not None
    output = shown(text_of(run.executed.output), run.executed.form)
    for kind, model in it.parts.examiners.items():
        if any(gate.kind is kind for gate in required_gates(run.step, reviews_of(run))):
            await examine(it, kind, model, output)
    found = await captured(it, output, it.files())
    results = judge(required_gates(run.step, reviews_of(run)), found, approvals_of(run))
    closed = [each for each in results if not each.is_open and each.gate.kind is not ReviewKind.MANUAL_APPROVAL]
    if any(each.is_missing for each in closed):
        reasons = "; ".join(f"{each.gate.kind}: {each.reason}" for each in closed if each.is_missing)
        return it.fire(StepBlocked(step=run.step.id, reason=f"a gate could not open: {reasons}"))
    if not closed and not await approved(it, results):
        return None
    it.fire(
        StepVerified(
            step=run.step.id,
            has_passed=not closed,
            evidence=Blob(json.dumps([told(each) for each in found], ensure_ascii=False, sort_keys=True)),
            failed=tuple(str(each.gate.kind) for each in closed),
        )
    )
    return None


async def examine(it: Workshop, kind: ReviewKind, model: str, output: str) -> None:
    """Have a QA or security agent say what it thinks; the reviewer reads it, and no gate opens by it."""
    role = "QA" if kind is ReviewKind.QA else str(kind).capitalize()
    parts: list[Part] = [EXAMINE.format(role=role), it.run.step.task, "\n\n", Fenced("output", output)]
    await it.supervisor.effect(it.worked(Task(purpose=str(kind), model=model, role=role, prompt=written(parts))), None)


async def examined(
    it: Workshop, output: str, files: Mapping[str, str]
) -> tuple[tuple[GateResult, ...], tuple[Evidence, ...]]:
    """What the gates say of an output, people left out; and what was captured for that."""
    gates = required_gates(it.run.step, reviews_of(it.run))
    by_command = [gate for gate in gates if gate.kind is not ReviewKind.MANUAL_APPROVAL]
    found = await captured(it, output, files)
    return judge(by_command, found), found


async def captured(it: Workshop, output: str, files: Mapping[str, str]) -> tuple[Evidence, ...]:
    """The evidence of every check that the step's gates ask for."""
    run = it.run
    kinds = {gate.kind for gate in required_gates(run.step, reviews_of(run))}
    examination = Examination(step_id=run.step.id, output=output, files=files, seconds=it.remaining_seconds())
    found = [await looked(it, check, examination) for check in checks_for(it.parts.checks, run.step.id, kinds)]
    if ReviewKind.INTEGRATION in kinds:
        made = {name: text for name, text in files.items() if name in run.step.outputs and name.startswith(CONTRACTS)}
        has_others = any(each.kind is ReviewKind.INTEGRATION for each in found)
        found += contract_evidence(made, is_kind_needed=not has_others)
    return tuple(readable(each, run.secrets) for each in found)


def checks_for(checks: Iterable[Check], step_id: str, kinds: set[ReviewKind]) -> list[Check]:
    """The checks of these kinds that are for a step."""
    return [check for check in checks if check.kind in kinds and (not check.steps or step_id in check.steps)]


async def looked(it: Workshop, check: Check, examination: Examination) -> Evidence:
    """One check; InterruptionError where it cannot be run, which is nobody's failure."""
    try:
        return await it.supervisor.effect(check.look(examination), examination.seconds)
    except (JournalError, InterruptionError):
        raise
    except DeadlineError:
        return Evidence(kind=check.kind, command=(type(check).__name__,), exit_status=None, output=b"")
    except Exception as error:  # noqa: BLE001 -- it is raised as the cause of what is
        broken = CheckError(str(check.kind), examination.step_id, describe(error))
        broken.__cause__ = error
        raise InterruptionError(str(broken)) from broken


def contract_evidence(made: Mapping[str, str], *, is_kind_needed: bool) -> list[Evidence]:
    """What the validators say of the contracts among the files; none for what nothing here can validate.

    Of a file that could be validated were it of a known kind, and that alone could open the gate, they say that.
    """
    found: list[Evidence] = []
    checks = {name: check_contract(name, text) for name, text in made.items()}
    is_kind_needed = is_kind_needed and all(each.verdict is Verdict.NOT_VALIDATED for each in checks.values())
    for name, check in checks.items():
        is_nameless = is_kind_needed and check.kind is ContractKind.UNKNOWN and not why_never_validated(name)
        if check.verdict is not Verdict.NOT_VALIDATED or is_nameless:
            lines = [f"{name}: {check.kind}, {check.verdict}", *map(str, check.faults), check.reason]
            found.append(
                Evidence(
                    kind=ReviewKind.INTEGRATION,
                    command=("orchestrator", "contract", name),
                    exit_status=0 if check.verdict is Verdict.VALID else 1,
                    output="\n".join(filter(None, lines)).encode(),
                )
            )
    return found


def readable(evidence: Evidence, secrets: Secrets | None) -> Evidence:
    """The evidence with output that a record can hold: bytes that are no UTF-8 are escaped, secrets taken out."""
    text = evidence.output.decode("utf-8", "backslashreplace")
    if secrets is None:
        return attrs.evolve(evidence, output=text.encode())
    from orchestrator.cleansing import cleansed_cut_blob

    command = tuple(map(secrets.redact, evidence.command))
    return attrs.evolve(evidence, output=cleansed_cut_blob(Blob(text), secrets).data, command=command)


async def approved(it: Workshop, results: Iterable[GateResult]) -> bool:
    """Ask a person where the policy requires one; a no blocks the step.

    Raises NobodyToAskError where nobody is there: the step waits as it is, and the next invocation asks again.
    """
    run = it.run
    gate = next((each for each in results if each.gate.kind is ReviewKind.MANUAL_APPROVAL), None)
    if gate is None or gate.is_open:
        return True
    request = StepRequested(step=run.step.id, prompt=run.step.task)
    question = f"Approve the output of step {run.step.id} ({run.step.risk_level} risk)? {gate.gate.reason}."
    room = it.parts.room
    async with it.lock:
        is_given = await is_approved(room.bus, room.approver, run, it.supervisor, request, question, waits=True)
    if not is_given:
        answer = run.approvals[-1].answer
        it.fire(StepBlocked(step=run.step.id, reason=f"a person did not approve it: {answer}"))
    return is_given


def results_of(run: StepRun) -> tuple[GateResult, ...]:
    """What the gates said of the last output, from its records."""
    return judge(required_gates(run.step, reviews_of(run)), evidence_of(run), approvals_of(run))


def evidence_of(run: StepRun) -> tuple[Evidence, ...]:
    """What the gates captured of the last output, from its records."""
    return () if run.verified is None else evidence_in(run.verified.evidence)


def notes_of(run: StepRun) -> tuple[Input, ...]:
    """What QA and security agents said of the last output: claims, which open no gate."""
    done = [work.finished for work in run.works.values() if work.started.number == run.made_in]
    return tuple(
        Input(
            name=f"{each.purpose} notes", text=text_of(each.output), origin=f"{each.model}, a claim", is_reviewed=False
        )
        for each in done
        if each is not None and each.output is not None and each.purpose in AGENTS
    )


def told(evidence: Evidence) -> JSON:
    """Evidence as it is recorded, with its output and the digest of that."""
    return {**evidence.record().as_json(), "output": evidence.output.decode()}
