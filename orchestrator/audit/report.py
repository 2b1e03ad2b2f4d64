"""What an audit found."""

from __future__ import annotations

from typing import Any, Final

import attrs

from orchestrator_events.journal import Head

__all__ = ["AUDIT_FORMAT", "AuditReport", "Finding"]

AUDIT_FORMAT: Final = "orchestrator.audit/1"
"""Name and version of the JSON form of a report."""


@attrs.frozen
class Finding:
    """One difference between what an export says and what follows from its records."""

    check: str
    """Name of the check that found it."""
    sequence: int
    """Record it was found at; 0 for the export as a whole."""
    message: str
    run: str = ""
    """The run inside the audited one that it was found in; empty for the audited run itself."""

    def __str__(self) -> str:
        place = f"record {self.sequence}" if self.sequence else "export"
        inside = f"run {self.run}: " if self.run else ""
        return f"{self.check}: {inside}{place}: {self.message}"

    def as_json(self) -> dict[str, Any]:
        """The finding as plain data; `run` only where it has one."""
        return attrs.asdict(self, filter=lambda field, value: field.name != "run" or bool(value))


@attrs.frozen(kw_only=True)
class AuditReport:
    """What was checked, what was found, and the figures to hold against a published result."""

    run_id: str
    head: Head
    """Digest and number of the records, recomputed."""
    state: str
    """State that the records lead to, as far as they can be followed."""
    spec_digest: str
    """Digest of the spec that the run was started with; empty when there is none, or it cannot be read."""
    checks: tuple[str, ...]
    """Names of the checks that were done; one that could not be is in `findings`."""
    findings: tuple[Finding, ...]
    """Those of the runs inside it are among them."""
    children: tuple[str, ...] = ()
    """Ids of the runs inside it, which were audited with it."""

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def as_json(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "format": AUDIT_FORMAT,
            "run": self.run_id,
            "head": {"digest": self.head.digest, "count": self.head.count},
            "state": self.state,
            "spec": self.spec_digest,
            "checks": list(self.checks),
            "findings": [finding.as_json() for finding in self.findings],
            "is_clean": self.is_clean,
            **({"children": list(self.children)} if self.children else {}),
        }
