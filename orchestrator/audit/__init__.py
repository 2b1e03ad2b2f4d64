"""Audit: needs an export and nothing else, and no part of the engine that made it but the rules."""

from __future__ import annotations

from orchestrator.audit.auditing import audit
from orchestrator.audit.report import AUDIT_FORMAT, AuditReport, Finding

__all__ = ["AUDIT_FORMAT", "AuditReport", "Finding", "audit"]
