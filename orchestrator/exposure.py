"""Where a secret must not stand at all, since the text is sent or kept as it is: specs, configurations, candidates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from orchestrator.candidate import Candidate
from orchestrator.redaction import Secrets
from orchestrator.run import Run
from orchestrator.spec import MergedSpec
from orchestrator_events.errors import OrchestratorError
from orchestrator_events.execution import SecretFound
from orchestrator_events.run import CandidateGenerated

__all__ = [
    "SecretExposedError",
    "refuse_exposure",
    "secrets_in",
    "texts_in",
    "texts_of",
    "values_of",
]


class SecretExposedError(OrchestratorError, ValueError):
    """A registered secret stands in what a run is made of; nothing was spent or stored.

    `secret` is its name and `place` where it stands: `the spec's section Intent`.
    """

    def __init__(self, secret: str, place: str) -> None:
        self.secret = secret
        self.place = place
        super().__init__(f"{place} holds the secret {secret!r}, and is never altered: take it out, nothing was spent")


def refuse_exposure(secrets: Secrets, texts: Iterable[tuple[str, str]]) -> None:
    """Raise SecretExposedError for the first of these (place, text) pairs that holds a secret."""
    for place, text in texts:
        for secret in secrets.found(text):
            raise SecretExposedError(secret, place)


def texts_of(run: Run, identity: str, seeds: Iterable[str]) -> Iterator[tuple[str, str]]:
    """What is sent or kept of a run as it is, each part with what to call it, the spec's parts first."""
    yield "the run's id", run.run_id
    yield from texts_of_spec(run.spec)
    yield "the configuration (generator, evaluator, strategy, language or parameters)", identity
    yield "what the configuration adds to every prompt", "\n".join([run.opening, *seeds])


def texts_of_spec(spec: MergedSpec) -> Iterator[tuple[str, str]]:
    """The parts of a spec, each with what to call it, and last the whole."""
    yield "the spec's name", spec.name
    for section in spec.sections:
        yield f"the spec's section {section.title}", section.text
    for number, case in enumerate(spec.evals, 1):
        parts = (case.name, case.description, case.category, case.severity, *case.verifies, *case.tags)
        yield f"eval case {number} of the spec", "\n".join((*parts, *values_of(case.input), *values_of(case.expect)))
    yield "the spec", spec.canonical


def values_of(data: object) -> Iterator[str]:
    """The texts in decoded JSON."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, list):
        for item in data:
            yield from values_of(item)
    elif isinstance(data, dict):
        for key, item in data.items():
            yield key
            yield from values_of(item)


def secrets_in(generated: CandidateGenerated, secrets: Secrets, *, is_refused: bool) -> Iterator[SecretFound]:
    """An event for each secret in each text of a candidate."""
    for place, text in texts_in(Candidate.from_blob(generated.candidate, generated.form)):
        for secret in secrets.found(text):
            yield SecretFound(secret=secret, place=place, is_refused=is_refused)


def texts_in(candidate: Candidate) -> list[tuple[str, str]]:
    """The texts of a candidate, each with what its place is called: the digest, and the file if it has several."""
    digest = candidate.digest
    texts = [(f"{digest} {path}", f"{path}\n{text}") for path, text in candidate.files.items()]
    return texts or [(digest, candidate.text)]
