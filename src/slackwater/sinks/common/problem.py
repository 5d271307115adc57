"""Errors of sinks: user input that cannot be used, and problems of external systems.

A password is a reference, ``env:NAME`` or ``file:PATH``: only references are recorded.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from slackwater.core.errors import PipelineError, SinkUnchecked, SinkUnreadable, StreamFailed
from slackwater.core.masking import KNOWN_SECRETS, is_secret_name
from slackwater.core.reference import EXPECTED, absolute_path, is_reference, read_secret, what_is_missing
from slackwater.core.sink import Identity, WriteContext

TASK_ERROR = re.compile(r"\[slackwater (?P<code>[a-z-]+)\] (?P<text>[^\n]+)")
"""A Slackwater error in a task; only text passes from executor to driver."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An error, raised as fits the action."""

    code: str
    message: str
    hint: str | None = None
    found: str | None = None

    def unreadable(self, where: str) -> SinkUnreadable:
        return SinkUnreadable(read_code(self.code), self.message, where=where, found=self.found, hint=self.hint)

    def failed(self, where: str) -> StreamFailed:
        return StreamFailed(self.code, self.message, where=where, found=self.found, hint=self.hint)


def malformed_identity(identity: Identity, lacks: str, expected: str) -> SinkUnreadable:
    return SinkUnreadable(
        "sink-identity", f"The recorded identity of the sink {lacks}", expected=expected, found=str(dict(identity))
    )


def unreadable(error: StreamFailed) -> SinkUnreadable:
    return SinkUnreadable(
        read_code(error.code), error.message, where=error.where, expected=error.expected, hint=error.hint
    )


def read_code(code: str) -> str:
    """An error's code while reading: a code decides the exit code, and reading has its own."""
    return "output-" + code.removeprefix("sink-")


def table_unchecked(table: str, path: str, found: str) -> SinkUnchecked:
    """The error for a table that could not be checked; ``table`` is, for example, ``table lake.t``."""
    return SinkUnchecked(
        "table-unchecked",
        f"could not check which batches {table} has",
        where=path,
        expected="the log of the table, at the location that Spark's catalog has of it",
        found=found,
        hint="the start is allowed: Spark's own writer skips batches that are in the table",
    )


def not_readable_yet(library: str, location: str) -> PipelineError:
    return PipelineError(
        "output-absent",
        f"A stream cannot read this {library} table: it does not exist yet, so its schema is unknown",
        where=location,
        hint="define the stream that writes it before the stream that reads it, and run both",
    )


def option_strings(options: Mapping[str, object], reserved: Iterable[str]) -> dict[str, str]:
    """The options as strings; ``reserved`` names, in lower case, are set by Slackwater.

    Raises PipelineError for a reserved option (Spark ignores case) or a value of a different type.
    """
    taken = frozenset(reserved)
    found = sorted(name for name in options if name.lower() in taken)
    if found:
        raise PipelineError(
            "sink-option", "Slackwater sets this option itself", found=", ".join(found), hint="remove the option"
        )
    KNOWN_SECRETS.remember_all(options)
    for name, value in options.items():
        if not isinstance(value, str | int | float):
            raise PipelineError(
                "sink-option-value",
                f"The value of option {name} cannot be used",
                expected="a string, a number, True or False",
                found=repr(value),
                hint="leave the option out to use the data source's default",
            )
    return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}


def refuse_with_keys(keys: tuple[str, ...], options: Mapping[str, str], library: str) -> None:
    if keys and options:
        raise PipelineError(
            "sink-option",
            f"Options of {library}'s writer have no effect on MERGE",
            found=", ".join(sorted(options)),
            hint="remove the options, or the keys",
        )


def key_columns(keys: object) -> tuple[str, ...]:
    names = (keys,) if isinstance(keys, str) else tuple(keys) if isinstance(keys, Iterable) else (None,)
    if not all(isinstance(name, str) and name.strip() for name in names) or len(set(names)) != len(names):
        raise PipelineError(
            "sink-keys",
            "The keys of the sink cannot be used",
            expected='a column name or a list of different ones, such as ["id"]',
            found=repr(keys),
        )
    return names


def is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def refuse_partitions(kind: str, context: WriteContext, hint: str = "leave partition_by out") -> None:
    """Raises PipelineError for ``partition_by``: Spark would refuse or ignore it."""
    if context.partition_by:
        raise PipelineError(
            "partition-by-unused",
            f"The {kind} sink of stream {context.stream} cannot be partitioned",
            found=f"partition_by={', '.join(context.partition_by)}",
            hint=hint,
        )


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
        "The password of the sink cannot be read from its reference",
        where=where,
        expected=expected,
        hint=hint,
    )
