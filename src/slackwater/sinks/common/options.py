"""Checks user input of sinks: options, keys, and invalid ``partition_by``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from slackwater.core.errors import PipelineError
from slackwater.core.masking import KNOWN_SECRETS
from slackwater.core.sink import WriteContext


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
    return {name: _string(name, value) for name, value in options.items()}


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


def _string(name: str, value: object) -> str:
    if not isinstance(value, str | int | float):
        raise PipelineError(
            "sink-option-value",
            f"The value of option {name} cannot be used",
            expected="a string, a number, True or False",
            found=repr(value),
            hint="leave the option out to use the data source's default",
        )
    return str(value).lower() if isinstance(value, bool) else str(value)


def refuse_partitions(kind: str, context: WriteContext, hint: str = "leave partition_by out") -> None:
    """Raises PipelineError for ``partition_by``: Spark would refuse or ignore it."""
    if context.partition_by:
        raise PipelineError(
            "partition-by-unused",
            f"The {kind} sink of stream {context.stream} cannot be partitioned",
            found=f"partition_by={', '.join(context.partition_by)}",
            hint=hint,
        )
