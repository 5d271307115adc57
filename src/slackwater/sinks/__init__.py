"""Sinks: how Spark writes each, what it guarantees, and how its output is read, cut and restored without a JVM.

What was written last is read from the output itself, never from the checkpoint.
"""

from __future__ import annotations

from slackwater.sinks.files.sink import FilesSink, files

__all__ = ["FilesSink", "files"]
