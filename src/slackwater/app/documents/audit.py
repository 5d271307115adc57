"""The document ``slackwater.audit/1``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from slackwater.app.audit import Audit, StreamAudit

SCHEMA = "slackwater.audit/1"


def audit_document(audit: Audit) -> dict[str, Any]:
    """The audited streams, each with its drills."""
    return {
        "schema": SCHEMA,
        "passed": audit.passed,
        "folder": audit.folder,
        "without_reader": list(audit.unread),
        "streams": [_fields(stream) for stream in audit.streams],
    }


def _fields(stream: StreamAudit) -> dict[str, Any]:
    return {
        "stream": stream.stream,
        "sink": dict(stream.sink),
        "guarantee": stream.guarantee,
        "passed": stream.passed,
        "rows": stream.rows,
        "drills": [{"passed": drill.passed, **asdict(drill)} for drill in stream.drills],
    }
