"""References to passwords, ``env:NAME`` or ``file:PATH``: they can be recorded, the passwords cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path

from slackwater.errors import PipelineError, StreamFailed


def password_reference(password: object, hint: str) -> str | None:
    """The reference that a user gave, with an absolute path. Raises PipelineError (``sink-password``)."""
    if password is None:
        return None
    if isinstance(password, str) and re.fullmatch(r"(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)", password):
        kind, _, name = password.partition(":")
        return password if kind == "env" else f"file:{Path(name).expanduser().absolute()}"
    raise PipelineError(
        "sink-password",
        "The password of a sink must be a reference, which can be recorded",
        expected='"env:NAME" or "file:PATH"',
        found="something else, not shown here",
        hint=hint,
    )


def read_password(reference: str, where: str) -> str:
    """The password that a reference names. Raises StreamFailed (``sink-password-missing``)."""
    kind, _, name = reference.partition(":")
    if kind == "env":
        found = os.environ.get(name)
    else:
        try:
            found = Path(name).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, ValueError):
            found = None
    if found:
        return found
    raise StreamFailed(
        "sink-password-missing",
        "The password of the sink cannot be read from the place that its reference names",
        where=where,
        expected=f"an environment variable {name}" if kind == "env" else f"a readable file {name} with the password",
        hint=f"export {name}=..." if kind == "env" else "create the file, readable by this user only",
    )
