"""Sinks: one module each. How Spark writes it, what it promises, and how its own marks are read and cut without a JVM.

A sink says of itself what was last written; nothing here believes the checkpoint about it.
"""

from __future__ import annotations

from slackwater.sinks.files import FilesSink, files

__all__ = ["FilesSink", "files"]
