"""The conformance run: prompt, generate, evaluate, refine, until everything passes or a limit is reached.

One short function per open state; each does that state's one effect and fires its event. Before every effect the
gate is asked, the budget reserves, and intent and decisions are committed: two commits an attempt.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import attrs
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge, Reservation
from orchestrator_events.bus import Bus, Question
from orchestrator_events.decision import Deny, Ruling
from orchestrator_events.errors import JournalError
from orchestrator_events.event import Gate
from orchestrator_events.execution import (
    ApprovalAnswered,
    ApprovalRequested,
    ExecutionCancelled,
    ExecutionEnd,
    ExecutionFailed,
    OrchestratorComplete,
)
from orchestrator_events.journal import Batch
from orchestrator_events.run import (
    AttemptFailed,
    AttemptPassed,
    BudgetExhausted,
    BudgetOverrun,
    CandidateGenerated,
    EvaluationRequested,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationRequested,
    GenerationStarted,
    PromptReady,
    PromptRefined,
    RefinementRequested,
)
from orchestrator_events.verdict import CaseResult, CaseStatus
from orchestrator_states.run import RunState

from orchestrator.adapter_errors import CandidateRefusedError, GeneratorUnavailableError
from orchestrator.answers import checked_answer
from orchestrator.attempt import Attempt
from orchestrator.candidate import Candidate
from orchestrator.judgement import judge
from orchestrator.ports import Approver, Evaluator, Generation, Generator, Request, Strategy, Submission, Verdict
from orchestrator.prompt import Augmentations, CodeSeed, PromptTemplate
from orchestrator.run import Run
from orchestrator.supervision import DeadlineError, Supervisor

__all__ = ["ConformanceDriver", "InterruptionError"]

NAME = "conformance"
DETAILS = "details"
IDS = "ids"
REPEATED = "The last answer was identical to that of attempt {}, {} times in a row. Take another approach."
ENDINGS = {
    RunState.PASSED.value: ("success", "completed"),
    RunState.EXHAUSTED.value: ("incomplete", "completed"),
}
"""Status of `orchestrator:complete` and of `execution:end`, by the state the run rests in."""


class InterruptionError(Exception):
    """The run cannot go on now; it stays in its open state and can be resumed."""


@attrs.define(eq=False, kw_only=True)
class ConformanceDriver:
    """Everything about a run that is configured; what changes is in `Run`."""

    generator: Generator
    evaluator: Evaluator
    strategy: Strategy
    template: PromptTemplate
    augmentations: Augmentations
    parameters: dict[str, Any]
    language: str
    candidate_limit: int
    bus: Bus
    approver: Approver | None

    async def drive(self, run: Run, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: FBT001 -- the supervisor's callback
        """Go on from the run's state until it rests; close the invocation exactly once, on every way out."""
        try:
            if is_overdue:
                self.give_up_effect(run, supervisor)
            while not run.is_over:
                await self.advance(run, supervisor)
        except asyncio.CancelledError:
            self.abandon_call(run, "the run was interrupted while the call was in flight")
            await self.close(run, "cancelled", "the task that awaited the run was cancelled")
        except (InterruptionError, JournalError) as error:
            await self.close(run, "error", str(error))
            raise
        except Exception as error:
            run.fire(ExecutionFailed(reason=describe(error)))
            await self.close(run, "error", describe(error))
            raise
        else:
            await self.close(run)

    async def advance(self, run: Run, supervisor: Supervisor) -> None:
        """Do the one effect of the run's state and fire its event."""
        match run.state:
            case RunState.PROMPTING:
                self.prompt(run)
            case RunState.GENERATING:
                await self.generate(run, supervisor)
            case RunState.EVALUATING:
                await self.evaluate(run, supervisor)
            case RunState.REFINING:
                await self.refine(run, supervisor)
            case _:
                raise InterruptionError(f"a run in state {run.state} has no effect to do")

    def prompt(self, run: Run) -> None:
        """Render the next attempt's prompt: the whole spec, and what the last attempt failed."""
        last, refined = run.last, run.refined
        if last is None or refined is None:
            change = self.strategy.refine(run, None)
            parameters, seed, tail = write_json({**self.parameters, **change.parameters}), change.seed, ""
        else:
            parameters = write_json({**self.parameters, **read_parameters(refined.parameters)})
            seed = refined.seed
            closest = run.closest if refined.feedback == DETAILS else None
            tail = self.template.retry(last, closest, refined.notes, self.room(run), refined.feedback == DETAILS)
        text = run.opening + self.template.seeds(self.chosen_seeds(seed)) + tail
        run.fire(
            PromptReady(
                attempt=1 if last is None else last.number + 1,
                prompt=Blob(text),
                strategy=self.strategy.name,
                parameters=parameters,
                seed=seed,
            )
        )

    async def generate(self, run: Run, supervisor: Supervisor) -> None:
        """Ask the gate, reserve, commit the intent, call the generator, and take what it answers."""
        ready = run.ready
        assert ready is not None
        key = f"{run.run_id}:{ready.attempt}"
        gate = GenerationRequested(
            attempt=ready.attempt,
            prompt=ready.prompt.text or "",
            parameters=ready.parameters,
            max_tokens=read_parameters(ready.parameters).get("max_tokens"),
            key=key,
        )
        ruling = await self.ask(run, supervisor, gate)
        if ruling.deny is not None:
            return self.denied(run, ruling.deny)
        call = self.intend(run, ready, gate, ruling)
        await self.commit(run)
        begun = run.clock.monotonic()
        request = self.request(run, call)
        try:
            answer = await supervisor.effect(self.generator.generate(request), request.seconds)
            candidate = checked_answer(answer, self.candidate_limit)
        except GeneratorUnavailableError as error:
            run.fire(GenerationAbandoned(attempt=ready.attempt, key=key, charge=Charge(), reason=describe(error)))
            raise InterruptionError(f"the generator is unavailable: {error}") from error
        except DeadlineError:
            charge = run.ledger.worst_case(key)
            self.fail_generation(run, key, f"no answer within {request.seconds:.1f} s", begun, charge)
        except Exception as error:  # noqa: BLE001 -- a generator is untrusted: whatever it raises costs the attempt
            charge = run.ledger.charge(key, None, "")
            self.fail_generation(run, key, describe(error), begun, charge)
        else:
            self.take(run, key, candidate, answer, run.clock.monotonic() - begun)
        return None

    async def evaluate(self, run: Run, supervisor: Supervisor) -> None:
        """Run the eval suite on the candidate, unless the same candidate has a verdict already."""
        generated = run.generated
        assert generated is not None
        known = run.verdicts.get((generated.form, generated.candidate.text))
        if known is not None:
            return self.reuse(run, known)
        ruling = await self.ask(
            run, supervisor, EvaluationRequested(attempt=generated.attempt, candidate=generated.candidate)
        )
        if ruling.deny is not None:
            return self.denied(run, ruling.deny)
        run.fire(EvaluationStarted(attempt=generated.attempt, decisions=ruling.taken))
        await self.commit(run)
        begun = run.clock.monotonic()
        seconds = remaining_seconds(run)
        submission = Submission(
            run_id=run.run_id,
            attempt=generated.attempt,
            candidate=Candidate.from_blob(generated.candidate, generated.form),
            spec=run.spec,
            language=self.language,
            seconds=seconds,
        )
        try:
            verdict = await supervisor.effect(self.evaluator.evaluate(submission), seconds)
        except DeadlineError:
            detail = "the time was up during the evaluation, which was stopped"
            return run.fire(BudgetExhausted(limit="seconds", detail=detail))
        except CandidateRefusedError as error:
            verdict = Verdict((CaseResult("(candidate)", CaseStatus.ERROR, str(error)),))
        except Exception as error:
            raise InterruptionError(f"the evaluation gave no verdict: {describe(error)}") from error
        return self.judge(run, generated, verdict, run.clock.monotonic() - begun)

    async def refine(self, run: Run, supervisor: Supervisor) -> None:
        """Ask whether another attempt may be made, and have the strategy say what changes."""
        last = run.last
        assert last is not None
        ruling = await self.ask(run, supervisor, RefinementRequested(attempt=last.number + 1))
        if ruling.deny is not None:
            return self.denied(run, ruling.deny)
        change = self.strategy.refine(run, last)
        notes = change.notes
        if isinstance(last.outcome, AttemptFailed) and last.outcome.reused_from and change.shows_details:
            notes = (*notes, REPEATED.format(last.outcome.reused_from, last.repeats))
        return run.fire(
            PromptRefined(
                attempt=last.number + 1,
                feedback=DETAILS if change.shows_details else IDS,
                parameters=write_json(change.parameters) if change.parameters else "{}",
                seed=change.seed,
                notes=notes,
                decisions=ruling.taken,
            )
        )

    def intend(self, run: Run, ready: PromptReady, gate: GenerationRequested, ruling: Ruling) -> GenerationStarted:
        """Fire the intent to call, as the gate's subscribers changed it; the spec must still be in the prompt."""
        prompt: str = str(ruling.changes.get("prompt", gate.prompt))
        for injection in ruling.injections:
            prompt += f"\n## Added ({injection.role})\n\n{injection.text}\n"
        if prompt is not gate.prompt:
            missing = [section.title for section in run.spec.sections if section.text not in prompt]
            if missing:
                run.ledger.release(gate.key)
                raise InterruptionError(f"a subscriber removed from the prompt: {', '.join(missing)}")
        event = GenerationStarted(
            attempt=ready.attempt,
            parameters=str(ruling.changes.get("parameters", gate.parameters)),
            reservation=ruling.reservation or Reservation(key=gate.key),
            prompt=None if prompt is gate.prompt else Blob(prompt),
            decisions=ruling.taken,
        )
        run.fire(event)
        return event

    def request(self, run: Run, call: GenerationStarted) -> Request:
        """What the generator is asked."""
        assert run.ready is not None
        return Request(
            run_id=run.run_id,
            attempt=call.attempt,
            prompt=(call.prompt or run.ready.prompt).text or "",
            parameters=read_parameters(call.parameters),
            language=self.language,
            max_tokens=call.reservation.output_tokens,
            seconds=remaining_seconds(run),
            idempotency_key=call.reservation.key,
            spec_digest=run.spec.digest,
        )

    def take(self, run: Run, key: str, candidate: Candidate, answer: Generation, duration_us: int) -> None:
        """Fire what the generator answered, charged; a call over its reservation is noted."""
        assert run.ready is not None
        charge = run.ledger.charge(key, answer.usage, candidate.blob.text or "")
        over = run.ledger.overrun(key, charge)
        run.fire(
            CandidateGenerated(
                attempt=run.ready.attempt,
                key=key,
                candidate=candidate.blob,
                form=candidate.form,
                charge=charge,
                duration_us=duration_us,
                isolation=self.generator.isolation,
            )
        )
        if over:
            run.fire(BudgetOverrun(attempt=run.ready.attempt, limits=over))

    def fail_generation(self, run: Run, key: str, reason: str, begun: int, charge: Charge) -> None:
        """A call that gave no candidate costs the attempt and is fed back like a failing case."""
        assert run.ready is not None
        run.fire(
            AttemptFailed(
                attempt=run.ready.attempt,
                stage="generation",
                error=reason,
                duration_us=run.clock.monotonic() - begun,
                key=key,
                charge=charge,
                isolation=self.generator.isolation,
            )
        )

    def judge(self, run: Run, generated: CandidateGenerated, verdict: object, duration_us: int) -> None:
        """Hold the report against the expected cases."""
        if not isinstance(verdict, Verdict) or not verdict.results:
            shown = "no case" if isinstance(verdict, Verdict) else f"{type(verdict).__name__} instead of a Verdict"
            raise InterruptionError(f"the evaluation gave no verdict: it reported {shown}")
        judgement = judge(verdict, run.spec)
        if judgement.is_conforming:
            run.fire(
                AttemptPassed(
                    attempt=generated.attempt,
                    passed=judgement.passed,
                    duration_us=duration_us,
                    is_pinned=judgement.is_pinned,
                    isolation=verdict.isolation,
                )
            )
            return
        run.fire(
            AttemptFailed(
                attempt=generated.attempt,
                stage="evaluation",
                failing=judgement.failing,
                passed=judgement.passed,
                duration_us=duration_us,
                isolation=verdict.isolation,
            )
        )

    def reuse(self, run: Run, known: Attempt) -> None:
        """The candidate was judged before: its verdict stands, the attempt counts."""
        assert run.generated is not None
        last = run.last
        is_same = last is not None and last.generated is not None and last.generated.candidate == run.generated.candidate
        run.fire(
            AttemptFailed(
                attempt=run.generated.attempt,
                stage="evaluation",
                failing=known.failing,
                passed=known.passed,
                reused_from=known.number,
                repeats=last.repeats + 1 if last is not None and is_same else 0,
            )
        )

    async def ask(self, run: Run, supervisor: Supervisor, gate: Gate) -> Ruling:
        """Put a gate to the bus; a person, when one is to be asked, is asked here."""
        ruling = await self.bus.ask(Question(run.run_id, run.machine.table.name, run.state, gate, run.ledger))
        if ruling.deny is None:
            for question in ruling.ask_user:
                if not await self.is_approved(run, supervisor, gate, question.prompt):
                    ruling = attrs.evolve(ruling, deny=Deny(f"not approved: {question.prompt}"))
                    break
        if ruling.deny is not None and ruling.reservation is not None:
            run.ledger.release(ruling.reservation.key)
        return ruling

    async def is_approved(self, run: Run, supervisor: Supervisor, gate: Gate, prompt: str) -> bool:
        """Commit the question, wait for the person, record the answer; silence, an error and nobody are a no."""
        run.fire(ApprovalRequested(gate=gate.name, prompt=prompt))
        await self.commit(run)
        yes, answer = False, "nobody to ask"
        if self.approver is not None:
            try:
                yes = await supervisor.effect(self.approver.approve(run.run_id, prompt), remaining_seconds(run)) is True
                answer = "yes" if yes else "no"
            except DeadlineError:
                answer = "no answer in time"
            except Exception as error:  # noqa: BLE001 -- an approver that fails has not approved
                answer = describe(error)
        run.fire(ApprovalAnswered(gate=gate.name, is_approved=yes, answer=answer))
        return yes

    def denied(self, run: Run, deny: Deny) -> None:
        """The budget's denial exhausts the run; any other cancels it."""
        if deny.limit:
            run.fire(BudgetExhausted(limit=deny.limit, detail=deny.reason))
        else:
            run.fire(ExecutionCancelled(reason=deny.reason, is_denial=True))

    def give_up_effect(self, run: Run, supervisor: Supervisor) -> None:
        """The effect under way did not give way when it was cancelled: go on as if it had."""
        if supervisor.is_cancelled:
            raise asyncio.CancelledError
        if run.state == RunState.GENERATING and run.started is not None:
            key, reason = run.started.reservation.key, "no answer in time, and the call could not be stopped"
            self.fail_generation(run, key, reason, run.clock.monotonic(), run.ledger.worst_case(key))
        else:
            detail = f"the time was up in state {run.state}, and what ran there could not be stopped"
            run.fire(BudgetExhausted(limit="seconds", detail=detail))

    def abandon_call(self, run: Run, reason: str) -> None:
        """Charge a call whose answer will not be used."""
        if run.state == RunState.GENERATING and run.started is not None:
            key = run.started.reservation.key
            charge = run.ledger.worst_case(key)
            run.fire(GenerationAbandoned(attempt=run.started.attempt, key=key, charge=charge, reason=reason))

    async def commit(self, run: Run) -> None:
        """Record everything since the last effect in one transaction, then publish it."""
        if not run.outbox:
            return
        batch = Batch(run.run_id, tuple(run.outbox))
        run.outbox.clear()
        try:
            failures = await self.bus.publish(batch, run.journal)
        except asyncio.CancelledError:
            run.records += batch.records  # the journal took the batch before it could be waited for
            raise
        run.records += batch.records
        for failure in failures:
            if failure.subscriber not in run.failed_subscribers and not run.is_over:
                run.fire(failure)

    async def close(self, run: Run, status: str = "", reason: str = "") -> None:
        """Fire and commit the invocation's end markers; a journal that fails here has failed before."""
        completion, ending = ENDINGS.get(run.state, ("incomplete", "error"))
        if status == "cancelled":
            completion, ending = "cancelled", "cancelled"
        run.fire(OrchestratorComplete(orchestrator=NAME, turn_count=run.answered, status=completion))
        run.fire(
            ExecutionEnd(
                response=run.generated.candidate.digest if run.state == RunState.PASSED and run.generated else "",
                status=ending,
                reason=reason,
                active_us=run.ledger.elapsed_us(),
            )
        )
        try:
            await self.commit(run)
        except JournalError:
            if status != "error":
                raise

    def chosen_seeds(self, label: str) -> tuple[CodeSeed, ...]:
        """The seed that the strategy chose, or all."""
        seeds = self.augmentations.seeds
        if not label:
            return seeds
        chosen = tuple(seed for seed in seeds if seed.label == label)
        if not chosen:
            known = ", ".join(seed.label for seed in seeds) or "none"
            raise ValueError(f"the strategy asks for the code seed {label!r}; configured: {known}")
        return chosen

    def room(self, run: Run) -> int | None:
        """Characters the retry part may take, None when the generator names no limit."""
        limit = self.generator.max_prompt_characters
        return None if limit is None else limit - len(run.opening)


@lru_cache(maxsize=256)
def read_parameters(text: str) -> Mapping[str, Any]:
    """Parameters from their JSON; the same few texts come again and again."""
    return MappingProxyType(json.loads(text))


def write_json(parameters: Mapping[str, Any]) -> str:
    """Parameters as compact JSON with sorted keys."""
    return json.dumps(dict(parameters), sort_keys=True, separators=(",", ":"), allow_nan=False) if parameters else "{}"


def remaining_seconds(run: Run) -> float | None:
    """Active time left to the run, seconds."""
    left = run.ledger.remaining_us()
    return None if left is None else left / 1_000_000


def describe(error: BaseException) -> str:
    """Type and message of an error, for a record."""
    return f"{type(error).__name__}: {error}"
