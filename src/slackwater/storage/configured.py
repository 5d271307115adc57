"""``[storage.KIND]`` of ``slackwater.toml``, put into the environment of this process and its JVM.

All clients read their environment variables. The values are not recorded.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from slackwater.core.errors import EnvironmentMissing, SettingsError
from slackwater.core.secret_reference import EXPECTED, is_reference, read_secret, what_is_missing
from slackwater.storage.registry import STORES, StoreKind

_given: dict[str, frozenset[str]] = {}


def given(kind: StoreKind) -> Collection[str]:
    return _given.get(kind.schemes[0], frozenset())


def configure(tables: Mapping[str, Mapping[str, str]]) -> None:
    """Set the environment variables.

    Raises SettingsError (``storage-settings``) for an unknown key or a secret that is not a reference, and
    EnvironmentMissing (``storage-secret-missing``) for a reference to nothing.
    """
    known = {kind.schemes[0]: kind for kind in STORES.all() if kind.settings}
    found: dict[str, dict[str, str]] = {}
    for name, table in tables.items():
        kind = known.get(name)
        if kind is None:
            raise _unusable(f"storage.{name}", f"a table of one of {', '.join(known)}", "another store")
        found[name] = {key: _value(kind, f"storage.{name}.{key}", key, value) for key, value in table.items()}
    for name, values in found.items():
        os.environ.update({known[name].settings[key]: value for key, value in values.items()})
    _given.clear()
    _given.update({name: frozenset(values) for name, values in found.items()})


def _value(kind: StoreKind, where: str, key: str, value: str) -> str:
    if key not in kind.settings:
        raise _unusable(where, f"one of {', '.join(kind.settings)}", "another key")
    if key not in kind.secrets:
        return value
    if not is_reference(value):
        raise _unusable(where, EXPECTED, "something else, not shown here")
    secret = read_secret(value)
    if secret is None:
        expected, hint = what_is_missing(value)
        raise EnvironmentMissing(
            "storage-secret-missing",
            "The secret cannot be read from the place that its reference names",
            where=where,
            expected=expected,
            hint=hint,
        )
    return secret


def _unusable(where: str, expected: str, found: str) -> SettingsError:
    return SettingsError(
        "storage-settings",
        "The settings of a store cannot be used",
        where=where,
        expected=expected,
        found=found,
        hint="correct [storage] in slackwater.toml; other settings of a client go into its environment",
    )
