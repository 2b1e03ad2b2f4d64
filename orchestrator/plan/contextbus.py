"""The Context Bus: the studio directory with the state, step outputs, reviews, decisions and contracts (contract 5).

    STATE/state.json, STATE/state.previous.json     the state, and the one before
    STATE/STATE.md                                  the same for people
    RUNS/<run>/step_<id>_output.md                  the newest output; step_<id>_output.<attempt>.md are all of them
    RUNS/<run>/step_<id>_other.<attempt>.md         of two outputs that were compared, the one that was not chosen
    RUNS/<run>/step_<id>_review.json                reviews, in the same way
    RUNS/<run>/step_<id>_qa.<attempt>.<n>.json      a record of evidence, and as .log the output that it is of
    RUNS/<run>/step_<id>_artifacts/<attempt>/<name> named outputs
    ADR/ADR-0001-<title>.md, CONTRACTS/<name>       decisions, and contracts that a reviewer approved
    POLICIES/routing_policy.yaml                    the routing policy, which is read and never written

Each of these paths can be another (`studiopaths`); a plan calls its contracts `CONTRACTS/<name>` all the same.
Files are written before the state that names them; each write can be repeated after a crash.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

import attrs

from orchestrator.documents import MAXIMUM_BYTES, parse_document
from orchestrator.errors import DocumentError
from orchestrator.paths import refuse_unsafe_run_id
from orchestrator.plan.contractfiles import ContractCheck, Verdict, check_contract
from orchestrator.plan.decisionrecords import DecisionRecord, record_decision
from orchestrator.plan.errors import MissingArtifactsError
from orchestrator.plan.gates import Evidence, EvidenceError, read_evidence
from orchestrator.plan.policyfiles import default_policy, parse_policy
from orchestrator.plan.review import Review
from orchestrator.plan.rootfiles import RootDirectory, RootFileError
from orchestrator.plan.routing import Policy
from orchestrator.plan.steprompt import Input
from orchestrator.plan.studiopaths import CONTRACTS, STUDIO_PATHS, StudioPathsError, path_faults, previous_path
from orchestrator.plan.studiostate import Artifact, Contract, StudioState, read_state, state_page
from orchestrator.plan.vocabulary import IDENTIFIER, is_artifact_name, is_identifier, output_name
from orchestrator.prompt import shorten
from orchestrator_events.errors import OrchestratorError

__all__ = [
    "ContextBus",
    "InvalidContractError",
    "MissingArtifactsError",
    "StaleStateError",
    "UnsafeStepIdError",
]


class StaleStateError(OrchestratorError):
    """The state was written by somebody else meanwhile: read it again. Nothing was written."""

    def __init__(self, expected: int, found: int) -> None:
        self.expected = expected
        self.found = found
        super().__init__(f"state.json has revision {found}, and this state was made of {expected}: read it again")


class InvalidContractError(OrchestratorError):
    """A contract breaks the rules of its format, and was not published; `check` has its faults."""

    def __init__(self, name: str, check: ContractCheck) -> None:
        self.name = name
        self.check = check
        super().__init__(f"{name} is no valid {check.kind}: {'; '.join(map(str, check.faults))}")


class UnsafeStepIdError(OrchestratorError, ValueError):
    """A step id cannot be part of a file name; `step_id` is what was given."""

    def __init__(self, step_id: object) -> None:
        self.step_id = step_id
        super().__init__(f"{step_id!a:.120} cannot be a step id: use {IDENTIFIER}")


@attrs.frozen(kw_only=True)
class ContextBus:
    """A studio directory. Everything is written below its root, whole or not at all, and through no link.

    Methods raise RootFileError where the directory cannot be used. One plan at a time writes to a studio: the
    revision of the state tells when a second one does.
    """

    root: Path = attrs.field(default=Path("studio"), converter=Path)
    state_path: str = STUDIO_PATHS["state"]
    page_path: str = STUDIO_PATHS["page"]
    """`STATE.md` puts it where contract 5 also speaks of it."""
    policy_path: str = STUDIO_PATHS["policy"]
    decisions_path: str = STUDIO_PATHS["decisions"]
    contracts_path: str = STUDIO_PATHS["contracts"]
    runs_path: str = STUDIO_PATHS["runs"]
    reviews_path: str = STUDIO_PATHS["reviews"]
    """In it, as in that of the runs and that of the reports, each run has a directory."""
    reports_path: str = STUDIO_PATHS["reports"]
    """What QA, security and integration captured."""
    workspaces_path: str = STUDIO_PATHS["workspaces"]
    """Where agents work, unless the orchestrator is given another place."""

    def __attrs_post_init__(self) -> None:
        faults = {f"{key}_path": message for key, message in path_faults(self.paths)}
        if faults:
            raise StudioPathsError(faults)

    @property
    def paths(self) -> Mapping[str, str]:
        """The paths by the keys of `STUDIO_PATHS`."""
        return {key: getattr(self, f"{key}_path") for key in STUDIO_PATHS}

    @property
    def files(self) -> RootDirectory:
        """The files below the root."""
        return RootDirectory(self.root)

    @property
    def previous_path(self) -> str:
        """Where the state before is kept."""
        return previous_path(self.state_path)

    def read_state(self) -> StudioState:
        """The state; an idle one of revision 0 when there is no file. Raises StudioStateError for a damaged one."""
        text = self.files.read_text(self.state_path)
        return StudioState() if text is None else read_state(text, str(self.root / self.state_path))

    def write_state(self, state: StudioState) -> StudioState:
        """Write the state under the next revision, and STATE.md of it; gives what was written.

        The file it replaces is kept. Raises StaleStateError unless `state` was made of the one on disk.
        """
        found = self.read_state().revision
        if found != state.revision:
            raise StaleStateError(state.revision, found)
        written = attrs.evolve(state, revision=state.revision + 1)
        before = self.files.read(self.state_path)
        if before is not None:
            self.files.write(self.previous_path, before)
        self.files.write(self.state_path, as_bytes(written.as_json()))
        self.write_page(written)
        return written

    def write_page(self, state: StudioState) -> None:
        """Write STATE.md anew, as after a crash between it and the state."""
        self.files.write(self.page_path, encoded(state_page(state)))

    def policy(self) -> Policy:
        """The studio's routing policy; the one that comes with the package where it has none. Raises PolicyError."""
        text = self.files.read_text(self.policy_path, MAXIMUM_BYTES)
        if text is None:
            return default_policy()
        return parse_policy(text, PurePosixPath(self.policy_path).suffix.lower(), str(self.root / self.policy_path))

    def require(self, names: Iterable[str]) -> None:
        """Raise MissingArtifactsError, with all of them, unless each artifact is there and is UTF-8 text."""
        missing: dict[str, str] = {}
        for name in names:
            try:
                if self.files.read_text(self.located(name)) is None:
                    missing[name] = "no such file"
            except RootFileError as error:
                missing[name] = str(error)
        if missing:
            raise MissingArtifactsError(self.root, missing)

    def resolve(self, state: StudioState, names: Sequence[str], limit: int = 200_000) -> tuple[Input, ...]:
        """The texts of a step's inputs, each of at most `limit` characters; what was cut is said in the text.

        An output of a step goes before a file of the same name; its bytes must still have the digest that the
        state knows. Raises MissingArtifactsError with all that are not there or were changed.
        """
        found: list[Input] = []
        missing: dict[str, str] = {}
        for name in names:
            artifact = state.artifacts.get(name)
            try:
                data = self.files.read(artifact.path if artifact else self.located(name))
                if data is None:
                    missing[name] = "no such file"
                elif artifact and sha256(data).hexdigest() != artifact.sha256:
                    missing[name] = f"was changed since step {artifact.step} made it"
                else:
                    text = shorten(data.decode(), limit)
                    origin = f"step {artifact.step}" if artifact else "context"
                    is_reviewed = artifact is None or artifact.status == "reviewed"
                    found.append(Input(name=name, text=text, origin=origin, is_reviewed=is_reviewed))
            except RootFileError as error:
                missing[name] = str(error)
            except UnicodeDecodeError as error:
                missing[name] = f"is not UTF-8 at byte {error.start}"
        if missing:
            raise MissingArtifactsError(self.root, missing)
        return tuple(found)

    def save_output(self, run_id: str, step_id: str, attempt: int, text: str) -> str:
        """Keep a step's output, attempts counted from 1; gives its path. Outputs of earlier attempts stay."""
        return self.save(self.prefix(run_id, step_id, attempt), attempt, "output.md", encoded(text))

    def save_other(self, run_id: str, step_id: str, attempt: int, text: str) -> str:
        """Keep the output of a dual run that was not chosen; gives its path."""
        path = self.other_path(run_id, step_id, attempt)
        self.files.write(path, encoded(text))
        return path

    def other_path(self, run_id: str, step_id: str, attempt: int) -> str:
        """Where the output of a dual run lies that was not chosen."""
        return f"{self.prefix(run_id, step_id, attempt)}_other.{attempt}.md"

    def save_review(self, run_id: str, step_id: str, attempt: int, review: Review) -> str:
        """Keep a review, by default beside the output; gives its path."""
        prefix = self.prefix(run_id, step_id, attempt, self.reviews_path)
        return self.save(prefix, attempt, "review.json", as_bytes(review.as_json()))

    def save_evidence(self, run_id: str, step_id: str, attempt: int, evidence: Evidence, number: int = 1) -> str:
        """Keep captured output and its record, `number` telling several of a kind apart; gives the record's path."""
        path = f"{self.prefix(run_id, step_id, attempt, self.reports_path)}_{evidence.kind}.{attempt}.{number}"
        self.files.write(f"{path}.log", evidence.output)
        self.files.write(f"{path}.json", as_bytes(evidence.record(f"{path}.log").as_json()))
        return f"{path}.json"

    def read_evidence(self, path: str) -> Evidence:
        """Evidence that was kept; raises EvidenceError when record and output do not belong together."""
        source = str(self.root / path)
        output = self.files.read(path.removesuffix(".json") + ".log") or b""
        try:
            data = parse_document(self.files.read_text(path) or "", ".json", source)
        except DocumentError as error:
            raise EvidenceError(source, error.faults) from None
        return read_evidence(data, output, source)

    def publish(
        self, state: StudioState, run_id: str, step_id: str, attempt: int, outputs: Mapping[str, str]
    ) -> StudioState:
        """Keep the named outputs of a step, unreviewed; gives the state that knows them, which is not written yet."""
        folder = f"{self.prefix(run_id, step_id, attempt)}_artifacts/{attempt}"
        artifacts = but_of(state, step_id)
        for name, text in outputs.items():
            data = encoded(text)
            path = f"{folder}/{name}"
            self.files.write(path, data)
            digest = sha256(data).hexdigest()
            artifacts[name] = Artifact(path=path, step=step_id, run=run_id, attempt=attempt, sha256=digest)
        return attrs.evolve(state, artifacts=artifacts)

    def publish_output(self, state: StudioState, run_id: str, step_id: str, attempt: int) -> StudioState:
        """The state that knows a step's whole output, which was saved before; unreviewed, and not written yet."""
        path = self.output_path(run_id, step_id, attempt)
        digest = sha256(self.files.read(path) or b"").hexdigest()
        artifact = Artifact(path=path, step=step_id, run=run_id, attempt=attempt, sha256=digest)
        return attrs.evolve(state, artifacts={**but_of(state, step_id), output_name(step_id): artifact})

    def output_path(self, run_id: str, step_id: str, attempt: int) -> str:
        """Where the output of one attempt stays."""
        return f"{self.prefix(run_id, step_id, attempt)}_output.{attempt}.md"

    def accept(self, state: StudioState, step_id: str) -> StudioState:
        """The state once a step's outputs are reviewed; those named CONTRACTS/ are checked and put with the contracts.

        Raises InvalidContractError, before anything is put there, for a contract that breaks its format's rules.
        """
        mine = {name: each for name, each in state.artifacts.items() if each.step == step_id}
        texts = {each.name: each.text for each in self.resolve(state, list(mine), limit=10**9)}
        contracts = dict(state.contracts)
        for name, text in texts.items():
            if name.startswith(CONTRACTS):
                contracts[name] = checked_contract(name, text, mine[name].sha256)
        for name in contracts.keys() & texts.keys():
            self.files.write(self.located(name), encoded(texts[name]))
        reviewed = {name: attrs.evolve(each, status="reviewed") for name, each in mine.items()}
        return attrs.evolve(state, artifacts={**state.artifacts, **reviewed}, contracts=contracts)

    def decide(self, state: StudioState, record: DecisionRecord) -> StudioState:
        """Write a decision record; gives the state that knows it. The same decision is written once."""
        entry = record_decision(self.files, self.decisions_path, record)
        if entry in state.decisions:
            return state
        return attrs.evolve(state, decisions=(*state.decisions, entry))

    def check_contracts(self) -> dict[str, ContractCheck]:
        """What every file directly among the contracts is, by the name that plans have for it."""
        names = [CONTRACTS + name for name in self.files.names(self.contracts_path) if is_artifact_name(name)]
        return {name: check_contract(name, self.files.read_text(self.located(name)) or "") for name in names}

    def located(self, name: str) -> str:
        """Where an artifact of this name lies that no step of the plan makes: a contract with the contracts."""
        return f"{self.contracts_path}/{name.removeprefix(CONTRACTS)}" if name.startswith(CONTRACTS) else name

    def run_path(self, run_id: str, name: str) -> str:
        """Where a file of a run as a whole lies: its journal, its trace, the release's documents."""
        refuse_unsafe_run_id(run_id)
        return f"{self.runs_path}/{run_id}/{name}"

    def save(self, prefix: str, attempt: int, what: str, data: bytes) -> str:
        """Write a file of an attempt under its number and, as the newest, without; gives the path without."""
        stem, suffix = what.split(".")
        self.files.write(f"{prefix}_{stem}.{attempt}.{suffix}", data)
        self.files.write(f"{prefix}_{what}", data)
        return f"{prefix}_{what}"

    def prefix(self, run_id: str, step_id: str, attempt: int = 1, folder: str = "") -> str:
        """What the names of a step's files begin with; raises ValueError for what can be no part of a name."""
        refuse_unsafe_run_id(run_id)
        if not is_identifier(step_id):
            raise UnsafeStepIdError(step_id)
        if attempt < 1:
            raise ValueError(f"attempt is {attempt}: attempts count from 1")
        return f"{folder or self.runs_path}/{run_id}/step_{step_id}"


def but_of(state: StudioState, step_id: str) -> dict[str, Artifact]:
    """The artifacts of all other steps: what an earlier attempt made, and this one does not, no review approves."""
    return {name: each for name, each in state.artifacts.items() if each.step != step_id}


def checked_contract(name: str, text: str, digest: str) -> Contract:
    """What the state holds of a contract; raises InvalidContractError."""
    check = check_contract(name, text)
    if check.verdict is Verdict.INVALID:
        raise InvalidContractError(name, check)
    is_valid = check.verdict is Verdict.VALID
    return Contract(sha256=digest, kind=str(check.kind), verdict="valid" if is_valid else "not validated")


def as_bytes(data: dict[str, Any]) -> bytes:
    """JSON as it is written: indented, a final newline, '?' for lone surrogates, which no reader takes."""
    return f"{json.dumps(data, indent=2, ensure_ascii=False)}\n".encode("utf-8", "replace")


def encoded(text: str) -> bytes:
    """The text as UTF-8, lone surrogates escaped, which no file could hold."""
    return text.encode("utf-8", "backslashreplace")
