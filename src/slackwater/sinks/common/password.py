"""Password references, ``env:NAME`` or ``file:PATH``: only references are recorded."""

from __future__ import annotations

from slackwater.core.errors import PipelineError, StreamFailed
from slackwater.core.masking import is_secret_name
from slackwater.core.reference import absolute_path
from slackwater.core.secret_reference import EXPECTED, is_reference, read_secret, what_is_missing

CATALOGS = "spark.sql.catalog."
"""Prefix of catalog settings; the catalog's name follows."""


def secret_of(key: str, value: str) -> str:
    """The value of a setting, with its reference resolved.

    ``env:NAME``, and for secret settings ``file:PATH``: a location may be a file URI. Raises StreamFailed
    (``sink-password-missing``).
    """
    # The name of a catalog may be that of a secret: spark.sql.catalog.tokens.warehouse.
    name = key.removeprefix(CATALOGS).partition(".")[2] if key.startswith(CATALOGS) else ""
    is_secret = name and is_reference(value) and (is_secret_name(name) or value.startswith("env:"))
    return read_password(value, key) if is_secret else value


def password_reference(password: object, hint: str) -> str | None:
    if password is None:
        return None
    if isinstance(password, str) and is_reference(password):
        kind, _, name = password.partition(":")
        return password if kind == "env" else f"file:{absolute_path(name)}"
    raise PipelineError(
        "sink-password",
        "The password of a sink must be a reference, which can be recorded",
        expected=EXPECTED,
        found="something else, not shown here",
        hint=hint,
    )


def read_password(reference: str, where: str) -> str:
    found = read_secret(reference)
    if found is not None:
        return found
    expected, hint = what_is_missing(reference)
    raise StreamFailed(
        "sink-password-missing",
        "The password of the sink cannot be read from the place that its reference names",
        where=where,
        expected=expected,
        hint=hint,
    )
