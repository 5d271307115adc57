"""The kinds of stores, and the settings of stores in the environment."""

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from slackwater.core.errors import EnvironmentMissing, SettingsError, UsageError
from slackwater.core.masking import mask
from slackwater.core.reference import EXPECTED, is_reference, read_secret, what_is_missing
from slackwater.core.registry import Registry
from slackwater.storage.protocols import OBJECT_STORE, StoreTraits, WriteStore


class StoreKind(ABC):
    def __init__(self, schemes: tuple[str, ...], traits: StoreTraits) -> None:
        self.schemes = schemes
        self.traits = traits

    @abstractmethod
    def open(self, location: str, *, private: bool = False) -> WriteStore:
        """Open a store. ``private``: new files are for their owner only, if the store has modes.

        Raises EnvironmentMissing if a package is missing or the store is unreachable.
        """

    settings: Mapping[str, str] = {}
    """The keys of ``[storage.KIND]``, each with the environment variable that clients of these stores read."""
    secrets: frozenset[str] = frozenset()
    """The keys whose values are secrets: a settings file contains only references to them."""

    connector: str | None = None
    """The connector group that Spark needs to read and write these stores, if it is not part of Spark."""

    def session_settings(self) -> Mapping[str, str]:
        return {}

    def spark_uri(self, location: str) -> str:
        return location


class FsspecKind(StoreKind):
    """A kind with an fsspec file system.

    ``options`` are its arguments; ``package`` is for pip (``None``: fsspec's error names it); ``implementation`` is a
    class path used instead of fsspec's class for ``protocol``.
    """

    def __init__(
        self,
        schemes: tuple[str, ...],
        traits: StoreTraits,
        *,
        protocol: str,
        options: Mapping[str, object] | None = None,
        package: str | None = None,
        implementation: str | None = None,
    ) -> None:
        super().__init__(schemes, traits)
        self.implementation = implementation
        self.protocol = protocol
        self.options = dict(options or {})
        self.package = package

    def open(self, location: str, *, private: bool = False) -> WriteStore:
        del private  # It has no modes.
        from slackwater.storage.remote import open_remote_store  # noqa: PLC0415 - fsspec costs five local inspects

        return open_remote_store(location, self)

    def connection(self, location: str) -> tuple[str, dict[str, object]]:
        return f"{self.protocol}:{location.partition(':')[2]}", self.options


STORES: Registry[StoreKind] = Registry(
    "slackwater.stores",
    {
        "abfs": "slackwater.storage.kinds:ABFS",
        "file": "slackwater.storage.kinds:LOCAL_DISK",
        "gs": "slackwater.storage.kinds:GS",
        "hdfs": "slackwater.storage.kinds:HDFS",
        "memory": "slackwater.storage.kinds:MEMORY",
        "s3": "slackwater.storage.kinds:S3",
    },
)


def kind_of(location: str) -> StoreKind:
    scheme = location.partition(":")[0].lower()
    found = STORES.get(scheme) or next((one for one in STORES.all() if scheme in one.schemes), None)
    if found is not None:
        return found
    from fsspec import available_protocols  # noqa: PLC0415 - most locations are local or of a kind of ours

    if scheme in available_protocols():
        return FsspecKind((scheme,), OBJECT_STORE, protocol=scheme)
    from difflib import get_close_matches  # noqa: PLC0415 - only a mistake needs it

    known = sorted({one for kind in STORES.all() for one in kind.schemes})
    similar = get_close_matches(scheme, known, 1)
    raise UsageError(
        "unknown-scheme",
        f"no store is known for {scheme}:",
        where=mask(location),
        expected=f"a path, or a URI of one of {', '.join(known)}",
        found=f"{scheme}:",
        hint=f"did you mean {similar[0]}:?" if similar else "correct the location, and repeat the command",
    )


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
            raise _unusable(f"storage.{name}", f"a table of one of {', '.join(known)}", "an unknown store")
        found[name] = {key: _value(kind, f"storage.{name}.{key}", key, value) for key, value in table.items()}
    for name, values in found.items():
        os.environ.update({known[name].settings[key]: value for key, value in values.items()})
    _given.clear()
    _given.update({name: frozenset(values) for name, values in found.items()})


def _value(kind: StoreKind, where: str, key: str, value: str) -> str:
    if key not in kind.settings:
        raise _unusable(where, f"one of {', '.join(kind.settings)}", "an unknown key")
    if key not in kind.secrets:
        return value
    if not is_reference(value):
        raise _unusable(where, EXPECTED, "something else, not shown here")
    secret = read_secret(value)
    if secret is None:
        expected, hint = what_is_missing(value)
        raise EnvironmentMissing(
            "storage-secret-missing",
            "The secret cannot be read from its reference",
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
