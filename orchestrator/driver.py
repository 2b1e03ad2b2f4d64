"""The conformance run: prompt, generate, evaluate, refine, until everything passes or a limit is reached.

One short function per open state; each does that state's one effect and fires its event. Before every effect the
gate is asked, the budget reserves, and intent and decisions are committed: two commits an attempt.
"""

from __future__ import annotations

import asyncio
from itertools import count

import attrs

from orchestrator.adapter_errors import (
    CandidateRefusedError,
    GeneratorUnavailableError,
    TransientGenerationError,
)
from orchestrator.asking import ask, denied
from orchestrator.closing import close, commit
from orchestrator.evaluating import judged, refused, reused, submission_of
from orchestrator.generating import (
    InterruptionError,
    abandoned,
    exposing,
    failed_generation,
    in_flight,
    intend,
    raised,
    request_for,
    taken,
)
from orchestrator.nesting import is_nesting, lost_charge, nest_for
from orchestrator.parameters import read_parameters, write_parameters
from orchestrator.ports import Approver, Evaluator, Generation, Generator, Request, Strategy
from orchestrator.progress import Progress
from orchestrator.prompt import Prompter
from orchestrator.retries import RetryPolicy
from orchestrator.run import Run
from orchestrator.supervision import DeadlineError, Supervisor
from orchestrator.wording import describe
from orchestrator_events.blob import Blob
from orchestrator_events.budget import Charge
from orchestrator_events.bus import Bus
from orchestrator_events.errors import JournalError
from orchestrator_events.execution import ExecutionFailed
from orchestrator_events.run import (
    AttemptFailed,
    BudgetExhausted,
    EvaluationRequested,
    EvaluationStarted,
    GenerationAbandoned,
    GenerationProgressed,
    GenerationRequested,
    GenerationRetried,
    PromptReady,
    PromptRefined,
    RefinementRequested,
)
from orchestrator_states.run import RunState

__all__ = ["ConformanceDriver"]

PROMPTING, GENERATING = RunState.PROMPTING.value, RunState.GENERATING.value
EVALUATING, REFINING = RunState.EVALUATING.value, RunState.REFINING.value
"""Looked up once: in Python 3.11 an attribute of an Enum class costs 0.15 µs, and a `match` takes ten an attempt."""

REPEATED = "The last answer was identical to that of attempt {}{}. Take another approach."


@attrs.define(eq=False, kw_only=True)
class ConformanceDriver:
    """Everything about a run that is configured; what changes is in `Run`."""

    generator: Generator
    evaluator: Evaluator
    strategy: Strategy
    prompter: Prompter
    parameters: str
    """JSON object of the base generation parameters."""
    language: str
    candidate_limit: int
    bus: Bus
    approver: Approver | None
    retries: RetryPolicy = attrs.field(factory=RetryPolicy)
    """When a call that failed in passing is made again."""
    refuses_secrets: bool = False
    """Whether a candidate that holds a secret fails without being judged."""

    async def drive(self, run: Run, supervisor: Supervisor, is_overdue: bool) -> None:  # noqa: FBT001 -- the supervisor's callback
        """Go on from the run's state until it rests; close the invocation exactly once, on every way out."""
        resting = run.machine.table.resting
        try:
            if is_overdue:
                await self.give_up_effect(run, supervisor)
            while run.state not in resting:
                await self.advance(run, supervisor)
        except asyncio.CancelledError:
            charge = await lost_charge(run, self.generator) if in_flight(run) else None
            abandoned(run, "the run was interrupted while the call was in flight", charge)
            await close(self.bus, run, "cancelled", "the task that awaited the run was cancelled")
        except (InterruptionError, JournalError) as error:
            await close(self.bus, run, "error", str(error))
            raise
        except Exception as error:
            run.fire(ExecutionFailed(reason=describe(error)))
            await close(self.bus, run, "error", describe(error))
            raise
        else:
            await close(self.bus, run)

    async def advance(self, run: Run, supervisor: Supervisor) -> None:
        """Do the one effect of the run's state and fire its event."""
        state = run.state
        if state == PROMPTING:
            self.prompt(run)
        elif state == GENERATING:
            await self.generate(run, supervisor)
        elif state == EVALUATING:
            await self.evaluate(run, supervisor)
        elif state == REFINING:
            await self.refine(run, supervisor)
        else:
            raise InterruptionError(f"a run in state {state} has no effect to do")

    def prompt(self, run: Run) -> None:
        """Render the next attempt's prompt: the whole spec, and what the last attempt failed."""
        last, refined = run.last, run.refined
        if last is None or refined is None:
            change = self.strategy.refine(run, None)
            attempt, seed, changed = 1, change.seed, write_parameters(change.parameters)
            text = self.prompter.first(run.opening, seed)
        else:
            attempt, seed, changed = refined.attempt, refined.seed, refined.parameters
            text = self.prompter.retry(run.opening, last, run.closest, refined, run.secrets)
        parameters = self.parameters
        if changed != "{}":
            parameters = write_parameters({**read_parameters(parameters), **read_parameters(changed)})
        run.fire(
            PromptReady(
                attempt=attempt,
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
        ruling = self.bus.unopposed(gate, run.ledger) or await ask(self.bus, self.approver, run, supervisor, gate)
        if ruling.deny is not None:
            return denied(run, ruling.deny)
        call = intend(run, ready, gate, ruling)
        await commit(self.bus, run)
        begun = run.clock.monotonic()
        request = request_for(run, ready, call, self.language, begun)
        if self.bus.has_receivers(GenerationProgressed):
            request.progress = Progress(self.bus, run, call.attempt)
        if is_nesting(self.generator):
            request.nest = nest_for(run, bus=self.bus, approver=self.approver, evaluator=self.evaluator, commit=commit)
        try:
            try:
                answer = await supervisor.effect(self.generator.generate(request), request.seconds)
            except TransientGenerationError as error:
                answer = await self.tried_again(run, supervisor, request, error)
            taken(run, key, answer, self.candidate_limit, begun, refuses_secrets=self.refuses_secrets)
        except GeneratorUnavailableError as error:
            charge = Charge() if request.nest is None else await lost_charge(run, self.generator)
            run.fire(GenerationAbandoned(attempt=ready.attempt, key=key, charge=charge, reason=describe(error)))
            raise InterruptionError(f"the generator is unavailable: {error}") from error
        except DeadlineError:
            reason, charge = f"no answer within {request.seconds:.1f} s", await lost_charge(run, self.generator)
            failed_generation(run, key, reason, begun, charge)
        except JournalError:
            raise  # of a child's: what cannot be recorded is not gone on with
        except Exception as error:  # noqa: BLE001 -- a generator is untrusted: whatever it raises costs the attempt
            raised(run, key, error, begun)
        finally:
            if request.nest is not None:
                request.nest.is_closed = True
        return None

    async def tried_again(
        self, run: Run, supervisor: Supervisor, request: Request, error: TransientGenerationError
    ) -> Generation:
        """The answer to the same call, made again as often as the retry policy and the budget allow.

        Raises the last try's error when they allow no more, GeneratorUnavailableError when the server cannot be
        reached or asks for a longer wait than there is time for; each retry is committed before it is waited for.
        """
        key = request.idempotency_key
        for retry in count(1):
            left = run.remaining_seconds(run.clock.monotonic())
            wait = self.retries.wait(retry - 1, error.retry_after, left)
            charge = Charge() if error.usage is None else run.ledger.charge(key, error.usage, "")
            if self.retries.puts_off(error.retry_after, left):
                refusal = self.retries.refusal(retry - 1, error.retry_after, left)
                raise GeneratorUnavailableError(f"{error.reason}: {refusal}") from error
            if wait is None and error.is_unreachable:
                refusal = self.retries.refusal(retry - 1, error.retry_after, left)
                raise GeneratorUnavailableError(f"{error.reason} ({refusal})") from error
            if wait is None or run.ledger.overrun(key, charge):
                raise error
            run.fire(
                GenerationRetried(
                    attempt=request.attempt,
                    key=key,
                    retry=retry,
                    reason=describe(error),
                    wait_us=round(wait * 1_000_000),
                    charge=charge,
                )
            )
            await commit(self.bus, run)
            await supervisor.effect(asyncio.sleep(wait), left)
            request = attrs.evolve(request, seconds=run.remaining_seconds(run.clock.monotonic()))
            try:
                return await supervisor.effect(self.generator.generate(request), request.seconds)
            except TransientGenerationError as again:
                error = again
        raise AssertionError("unreachable")

    async def evaluate(self, run: Run, supervisor: Supervisor) -> None:
        """Run the eval suite on the candidate, unless the same candidate has a verdict already."""
        generated = run.generated
        assert generated is not None
        known = run.verdicts.get((generated.form, generated.candidate.data))
        if known is not None:
            return reused(run, generated, known)
        if self.refuses_secrets and (reason := exposing(run, generated)):
            return refused(run, generated, reason)
        if self.bus.has_responders(EvaluationRequested):  # the budget has nothing to say to an evaluation
            gate = EvaluationRequested(attempt=generated.attempt, candidate=generated.candidate)
            ruling = await ask(self.bus, self.approver, run, supervisor, gate)
            if ruling.deny is not None:
                return denied(run, ruling.deny)
            run.fire(EvaluationStarted(attempt=generated.attempt, decisions=ruling.taken))
        await commit(self.bus, run)
        begun = run.clock.monotonic()
        submission = submission_of(run, generated, self.language, begun)
        try:
            verdict = await supervisor.effect(self.evaluator.evaluate(submission), submission.seconds)
        except DeadlineError:
            detail = "the time was up during the evaluation, which was stopped"
            return run.fire(BudgetExhausted(limit="seconds", detail=detail))
        except CandidateRefusedError as error:
            return refused(run, generated, str(error))
        except Exception as error:
            raise InterruptionError(f"the evaluation gave no verdict: {describe(error)}") from error
        return judged(run, generated, verdict, begun)

    async def refine(self, run: Run, supervisor: Supervisor) -> None:
        """Ask whether another attempt may be made, and have the strategy say what changes."""
        last = run.last
        assert last is not None
        outcome = last.outcome
        attempt = last.ready.attempt + 1
        gate = RefinementRequested(attempt=attempt)
        ruling = self.bus.unopposed(gate, run.ledger) or await ask(self.bus, self.approver, run, supervisor, gate)
        if ruling.deny is not None:
            return denied(run, ruling.deny)
        change = self.strategy.refine(run, last)
        notes = change.notes
        if change.shows_details and isinstance(outcome, AttemptFailed) and outcome.reused_from:
            notes = (*notes, REPEATED.format(outcome.reused_from, in_a_row(outcome.repeats)))
        return run.fire(
            PromptRefined(
                attempt=attempt,
                feedback="details" if change.shows_details else "ids",
                parameters=write_parameters(change.parameters),
                seed=change.seed,
                notes=notes,
                decisions=ruling.taken,
            )
        )

    async def give_up_effect(self, run: Run, supervisor: Supervisor) -> None:
        """The effect under way did not give way when it was cancelled: go on as if it had."""
        if supervisor.is_cancelled:
            raise asyncio.CancelledError
        if run.state == RunState.GENERATING and run.started is not None:
            key, reason = run.started.reservation.key, "no answer in time, and the call could not be stopped"
            failed_generation(run, key, reason, run.clock.monotonic(), await lost_charge(run, self.generator))
        else:
            detail = f"the time was up in state {run.state}, and what ran there could not be stopped"
            run.fire(BudgetExhausted(limit="seconds", detail=detail))


def in_a_row(repeats: int) -> str:
    """How often the same answer came, where it was more than once."""
    return f", {repeats} times in a row" if repeats > 1 else ""
