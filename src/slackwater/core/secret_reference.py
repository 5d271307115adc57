"""References ``env:NAME`` or ``file:PATH``, which can be recorded while the secrets cannot."""

from __future__ import annotations

import os
import re

from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.reference import absolute_path

_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
EXPECTED = '"env:NAME" or "file:PATH"'


def is_reference(value: object) -> bool:
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def read_secret(reference: str) -> str | None:
    """The secret without the end of its line."""
    kind, _, name = reference.partition(":")
    try:
        read = os.environ.get(name) if kind == "env" else absolute_path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        return None
    KNOWN_SECRETS.remember("password", read)
    return read or None


def what_is_missing(reference: str) -> tuple[str, str]:
    kind, _, name = reference.partition(":")
    if kind == "env":
        return f"an environment variable {name}", f"export {name}=..."
    return f"a readable file {name} with the secret", "create the file, readable by this user only"
