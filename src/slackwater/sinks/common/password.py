"""References to passwords, ``env:NAME`` or ``file:PATH``: they can be recorded, the passwords cannot."""

from __future__ import annotations

import os
import re
from pathlib import Path

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.masking import is_secret_name

CATALOGS = "spark.sql.catalog."
"""How the settings of Spark's catalogs start; the catalog's name follows."""
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:.+")


def secret_of(key: str, value: str) -> str:
    """The value of a Spark setting, for one of a catalog read from where it refers to.

    ``env:NAME``, and for a setting whose name is that of a secret ``file:PATH``: a location may be a file's URI. Raises
    StreamFailed (``sink-password-missing``).
    """
    # The name of a catalog may be that of a secret: spark.sql.catalog.tokens.warehouse.
    name = key.removeprefix(CATALOGS).partition(".")[2] if key.startswith(CATALOGS) else ""
    is_reference = name and _REFERENCE.fullmatch(value) and (is_secret_name(name) or value.startswith("env:"))
    return read_password(value, key) if is_reference else value


def password_reference(password: object, hint: str) -> str | None:
    """The reference that a user gave, with an absolute path. Raises PipelineError (``sink-password``)."""
    if password is None:
        return None
    if isinstance(password, str) and _REFERENCE.fullmatch(password):
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
