"""References to secrets, ``env:NAME`` or ``file:PATH``: they can be written down and recorded, the secrets cannot."""

from __future__ import annotations

import os
import re

from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.reference import absolute_path

_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")
EXPECTED = '"env:NAME" or "file:PATH"'


def is_reference(value: object) -> bool:
    """Whether a value refers to a secret."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def read_secret(reference: str) -> str | None:
    """The secret that a reference names, without the end of its line; ``None`` where there is none."""
    kind, _, name = reference.partition(":")
    try:
        read = os.environ.get(name) if kind == "env" else absolute_path(name).read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, ValueError):
        return None
    KNOWN_SECRETS.remember("password", read)
    return read or None


def what_is_missing(reference: str) -> tuple[str, str]:
    """Of a reference that names nothing: what is expected there, and a hint."""
    kind, _, name = reference.partition(":")
    if kind == "env":
        return f"an environment variable {name}", f"export {name}=..."
    return f"a readable file {name} with the secret", "create the file, readable by this user only"
