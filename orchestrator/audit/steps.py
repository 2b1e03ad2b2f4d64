"""Steps of plans: who worked, what came of it, which gates opened by what, and what the reviewer really said."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from orchestrator.plan.gates import judge, required_gates
from orchestrator.plan.outputs import artifacts_of, shown
from orchestrator.plan.planrun import read_step
from orchestrator.plan.recorded import MAKING, MOST_FIXES, OUTCOMES, approvals_of, evidence_in, review_in, reviews_of
from orchestrator.plan.review import ReviewStatus, read_review, review_faults
from orchestrator.plan.routing import Mode, ReviewKind
from orchestrator.plan.steprun import StepRun
from orchestrator_events.budget import Charge
from orchestrator_events.execution import ChildStarted, ExecutionStart
from orchestrator_events.plan import (
    ArtifactPublished,
    StepCompared,
    StepEscalated,
    StepExecuted,
    StepFailed,
    StepFaltered,
    StepReviewed,
    StepRouted,
    StepStarted,
    StepVerified,
    WorkFinished,
    WorkStarted,
)
from orchestrator_events.record import Record

__all__ = ["StepLife"]

CONDITIONAL = ReviewStatus.APPROVED_WITH_CONDITIONS


@attrs.define(eq=False)
class StepLife:
    """Follows a step's life (contract 5)."""

    name: str = attrs.field(default="step", init=False)

    def look(self, run: StepRun, record: Record) -> Iterator[str]:
        """What a record says that does not follow from those before it."""
        told = getattr(record.event, "step", run.step.id)
        if told != run.step.id:
            yield f"{record.event.name} is of step {told!r:.80}, the run of {run.step.id}"
        match record.event:
            case ExecutionStart() as event:
                if read_step(event.prompt).id != run.step.id:
                    yield f"goes on with step {read_step(event.prompt).id}"
            case StepRouted() | StepEscalated() | StepStarted() | StepFailed() as event:
                yield from begins(run, event)
            case WorkStarted() | WorkFinished() | ChildStarted() as event:
                yield from works(run, event)
            case StepExecuted() | StepFaltered() | StepCompared() as event:
                yield from executes(run, event)
            case StepVerified() as event:
                yield from verifies(run, event)
            case StepReviewed() as event:
                yield from reviews(run, event)
            case ArtifactPublished() as event:
                yield from publishes(run, event)
            case _:
                pass

    def end(self, run: StepRun) -> Iterator[str]:  # noqa: ARG002 -- every record has been looked at
        """Nothing."""
        yield from ()


def begins(run: StepRun, event: StepRouted | StepEscalated | StepStarted | StepFailed) -> Iterator[str]:
    """Failures are counted as they happened, fixes as well, and whoever works is whom the route names."""
    if isinstance(event, StepFailed):
        if run.failures <= MOST_FIXES:
            yield f"has failed after {run.failures} failures; {MOST_FIXES} fixes come first"
        return
    if not isinstance(event, StepStarted):
        if event.failures != run.failures:
            yield f"counts {event.failures} failures, there are {run.failures}"
        if isinstance(event, StepEscalated) and (run.route is None or event.model != run.route.primary):
            yield f"hands the step to {event.model!r:.80}, which the route does not"
        return
    if event.number != run.number + 1:
        yield f"is execution {event.number}, expected {run.number + 1}"
    if run.failures > MOST_FIXES:
        yield f"begins a fix after {run.failures} failures"
    if run.route is None or event.model != run.route.primary:
        yield f"is begun by {event.model!r:.80}, which the route does not name"
    if (event.role, event.executor) != (run.step.role, str(run.step.executor)):
        yield f"is executed by {event.role:.80} as {event.executor:.80}, the plan says another"


def works(run: StepRun, event: WorkStarted | WorkFinished | ChildStarted) -> Iterator[str]:
    """Work is of the execution under way, by the model that the route names, held for before and settled after."""
    if isinstance(event, ChildStarted):
        if event.child_id not in run.works:
            yield f"begins {event.child_id!r:.80}, for which no work was begun"
    elif isinstance(event, WorkFinished):
        begun = run.works.get(event.child_id)
        if begun is None or event.key not in run.ledger.holds:
            yield f"charges {event.key!r:.80}, which is not in flight"
        elif (event.purpose, event.model) != (begun.started.purpose, begun.started.model):
            yield f"is {event.purpose} by {event.model:.80}, begun was {begun.started.purpose} by another"
        if min(event.charge.input_tokens, event.charge.output_tokens, event.charge.money_micro) < 0:
            yield f"charges {event.charge}, less than nothing"
    else:
        yield from begun_work(run, event)


def begun_work(run: StepRun, event: WorkStarted) -> Iterator[str]:
    """The number, the model and the reservation of work that begins."""
    if event.number != run.number:
        yield f"is work of execution {event.number}, under way is {run.number}"
    if bool(event.again) != (run.work_of(event.purpose, event.number) is not None):
        yield f"is {event.purpose} {'again' if event.again else 'once more without a reason'}, which does not fit"
    if event.reservation.key in run.ledger.holds:
        yield f"holds for {event.reservation.key!r:.80}, which is in flight already"
    route, begun = run.route, run.begun
    if route is None or begun is None:
        yield "is work for which nobody was chosen"
        return
    expected = {
        "primary": begun.model,
        "secondary": route.secondary,
        "post-pass": route.secondary,
        "comparison": route.reviewer,
        "review": route.reviewer,
    }
    if event.model != expected.get(event.purpose, event.model):
        yield f"has {event.model!r:.80} do the {event.purpose}, the route names {expected[event.purpose]!r:.80}"


def executes(run: StepRun, event: StepExecuted | StepFaltered | StepCompared) -> Iterator[str]:
    """An output is what a model gave for this execution, the chosen one of two, and charged with all that it took."""
    done = [work.finished for work in run.works.values() if work.finished and work.started.number == run.number]
    made = {work.purpose: work for work in done if work.purpose in MAKING}
    if isinstance(event, StepCompared):
        outputs = [made[name].output for name in ("primary", "secondary") if name in made]
        given = [each.digest if each is not None and each.data else None for each in outputs]
        if [each.digest if each.data else None for each in event.candidates] != given:
            yield "compares other candidates than the models gave"
        if not 0 <= event.chosen < len(event.candidates):
            yield f"chooses candidate {event.chosen} of {len(event.candidates)}"
        return
    total = Charge(
        input_tokens=sum(each.charge.input_tokens for each in done),
        output_tokens=sum(each.charge.output_tokens for each in done),
        money_micro=sum(each.charge.money_micro for each in done),
        estimated=any(each.charge.estimated for each in done),
    )
    if event.charge != total:
        yield f"is charged {event.charge}, its work cost {total}"
    if isinstance(event, StepExecuted):
        yield from outputs_of(run, event, made)


def outputs_of(run: StepRun, event: StepExecuted, made: dict[str, WorkFinished]) -> Iterator[str]:
    """The output is the one that counts under the route's mode."""
    mode = "" if run.route is None or not run.route.secondary else run.route.mode
    if mode == Mode.DUAL_RUN:
        if run.compared is None:
            yield "is an output of two that nobody compared"
        elif event.output.digest != run.compared.candidates[run.compared.chosen].digest:
            yield "is another output than the chosen one"
    counted = [made["post-pass"]] if mode == Mode.POST_PASS and "post-pass" in made else list(made.values())
    wanted = (event.model, event.form, event.output.digest)
    if wanted not in [(each.model, each.form, each.output.digest) for each in counted if each.output is not None]:
        yield f"is no output that {event.model!r:.80} gave for this execution"
    if mode == Mode.POST_PASS and "post-pass" not in made:
        yield "is a draft that nobody refactored"


def verifies(run: StepRun, event: StepVerified) -> Iterator[str]:
    """Gates open by the output that was captured, under no less isolation than was found, and by a person's yes."""
    found = evidence_in(event.evidence)
    results = judge(required_gates(run.step, reviews_of(run)), found, approvals_of(run))
    closed = [str(each.gate.kind) for each in results if not each.is_open]
    by_command = [kind for kind in closed if kind != ReviewKind.MANUAL_APPROVAL]
    if event.has_passed and closed:
        yield f"has passed, but closed: {', '.join(closed)}"
    if not event.has_passed and not by_command:
        yield "has not passed, though every gate is open"
    if list(event.failed) != by_command:
        told, are = ", ".join(event.failed) or "no gate", ", ".join(by_command) or "none"
        yield f"says that {told:.200} stayed closed, it was {are}"
    for each in found:
        if each.isolation is None:
            continue
        if run.isolation is None:
            yield f"{each.kind} was captured before isolation:established"
        elif not each.isolation.satisfies(run.isolation.evaluator.level):
            held = run.isolation.evaluator.label
            yield f"{each.kind} was captured under {each.isolation.label:.80}, established was {held:.80}"


def reviews(run: StepRun, event: StepReviewed) -> Iterator[str]:
    """The review is the one that the reviewer gave, keeps the rules, and came to what is recorded."""
    review = review_in(event.review)
    risk = run.step.risk_level
    for fault in review_faults(review, step_id=run.step.id, risk=risk):
        yield f"breaks a rule of reviews: {fault}"
    if OUTCOMES[review.status] != event.outcome or (review.status is CONDITIONAL) != event.has_conditions:
        yield f"comes to {event.outcome!r:.80}, the review says {review.status}"
    if run.route is None or event.reviewer != run.route.reviewer:
        yield f"is a review by {event.reviewer!r:.80}, which the route does not name"
    said = [work.finished for work in run.works.values() if work.started.number == run.number and work.finished]
    answers = [work.output for work in said if work.purpose == "review" and work.output is not None]
    if not answers or read_review(answers[-1].data.decode(), step_id=run.step.id, risk=risk) != review:
        yield "is another review than the reviewer gave"


def publishes(run: StepRun, event: ArtifactPublished) -> Iterator[str]:
    """A file is one of those in the step's output, and reviewed once the review approved it."""
    files = artifacts_of(run)
    if not files and run.executed is not None:
        name = f"step_{run.step.id}_output.{run.number}.md"
        files = {name: shown(run.executed.output.data.decode(), run.executed.form)}
    if not any(event.path.endswith(f"/{name}") and text == event.content.data.decode() for name, text in files.items()):
        yield f"publishes {event.path!r:.120}, which is not in the step's output"
    is_approved = run.reviewed is not None and run.reviewed.outcome == "approved"
    if event.standing != ("reviewed" if is_approved else "unreviewed"):
        yield f"publishes {event.path!r:.120} as {event.standing!r:.40}"
