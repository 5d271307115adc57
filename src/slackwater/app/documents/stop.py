"""The document ``slackwater.stop/1``."""

from __future__ import annotations

from typing import Any

from slackwater.app.stop_stream import Stopped

SCHEMA = "slackwater.stop/1"


def stop_document(stopped: Stopped) -> dict[str, Any]:
    """The end of the run that was asked to stop."""
    return {"schema": SCHEMA, "stream": stopped.stream, "run": stopped.run, "end": stopped.ended}
