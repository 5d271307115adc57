"""A Delta table's version by ``deltalake``, and commits on it.

A commit becomes the next version, or fails: ``max_commit_retries=0`` neither checks conflicts nor follows other
writers. Unwritable features are refused first. Statistics and partition values in the log are strings of deltalake's
typed values (PROTOCOL.md, sections "Per-file Statistics" and "Partition Value Serialization"); inexact values are
dropped: readers then skip no file by them.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from decimal import Decimal
from functools import cached_property
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from slackwater.core.checkpoint import Damage
from slackwater.core.errors import EnvironmentMissing, Refused, SinkUnreadable
from slackwater.sinks.common.changes import unsupported
from slackwater.sinks.common.directory import size_damage
from slackwater.sinks.delta.log import NOTE, DataFile
from slackwater.storage.protocols import ReadStore

if TYPE_CHECKING:
    from deltalake import DeltaTable


_JSON_NAMES = {"min": "minValues", "max": "maxValues", "null_count": "nullCount"}
_MS = 1000


def statistics(action: Mapping[str, Any]) -> str:
    rows = action["num_records"].as_py()
    found: dict[str, Any] = {} if rows is None else {"numRecords": rows}
    for column, name in _JSON_NAMES.items():
        values = _plain(action[column]) if column in action else None
        if values is not None:
            found[name] = values
    return json.dumps(found, ensure_ascii=False)


def partition_strings(values: Any, location: str) -> Mapping[str, str | None]:
    """The log's partition values, from an Arrow struct.

    Raises Refused (``swap-unsupported``) for a timestamp: older writers omitted the zone.
    """
    found: dict[str, str | None] = values.as_py()
    for name, value in values.as_py().items():
        if isinstance(value, datetime | bytes):
            kind = "timestamp" if isinstance(value, datetime) else "binary"
            raise unsupported(location, "partition columns that are no timestamp and not binary", f"{name}: {kind}")
        if isinstance(value, bool):
            found[name] = str(value).lower()
        elif value is not None:
            found[name] = format(value, "f") if isinstance(value, Decimal) else str(value)
    return found


def _plain(scalar: Any) -> Any:
    if hasattr(scalar.type, "num_fields") and scalar.type.num_fields and scalar.is_valid:
        fields = {name: _plain(scalar[name]) for name in (scalar.type[i].name for i in range(scalar.type.num_fields))}
        return {name: value for name, value in fields.items() if value is not None} or None
    try:
        value = scalar.as_py()
    except (ValueError, OverflowError):
        return None  # A time after the year 9999, which Python has no value for.
    if isinstance(value, datetime):
        precise = "microseconds" if value.microsecond % _MS else "milliseconds"
        return value.replace(tzinfo=None).isoformat(timespec=precise) + ("Z" if value.tzinfo else "")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal):
        number = float(value)
        return number if Decimal(repr(number)) == value else None
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int) else None


WRITABLE_FEATURES = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "invariants",
        "timestampNtz",
        "v2Checkpoint",
        "variantType",
    }
)
"""The table features that deltalake commits to; it refuses tables with any other feature."""
PLAIN_WRITER = 5
"""Tables up to this writer version have only such features and do not name them; 6 adds identity columns."""
FEATURE_WRITER = 7
"""The writer version of a table that names its features."""
APPEND_ONLY = "delta.appendOnly"
CONSTRAINT = "delta.constraints."
COLUMN_MAPPING = "delta.columnMapping.mode"
_GENERATED = "delta.generationExpression"
TYPES_WITH_FEATURES = {"timestamp_ntz": "timestampNtz", "variant": "variantType"}
"""Types of columns that need a feature (PROTOCOL.md, sections "Timestamp without timezone" and "Variant Data Type")."""
_UNENCODED = "!$&'()+,-./:;=@_~"
"""The characters, besides ASCII letters and digits, that deltalake does not encode in a file's path."""
_S3 = frozenset({"s3", "s3a", "s3n"})


class DeltaVersion:
    """A version of the table at ``location``, by default the newest.

    Raises EnvironmentMissing without the library, SinkUnreadable, and Refused (``delta-log-cleaned``) if the log lost
    part of an older version.
    """

    def __init__(self, location: str, version: int | None = None) -> None:
        self.location = location
        self.handle = _open(location, version)
        self.number = self.handle.version()

    @property
    def table_id(self) -> str:
        """The permanent id, which readers log."""
        return str(self.handle.metadata().id)

    @property
    def properties(self) -> Mapping[str, str]:
        return self.handle.metadata().configuration

    @property
    def partition_columns(self) -> tuple[str, ...]:
        return tuple(self.handle.metadata().partition_columns)

    @property
    def constraints(self) -> Mapping[str, str]:
        found = sorted(self.properties.items())
        return {name.removeprefix(CONSTRAINT): value for name, value in found if name.startswith(CONSTRAINT)}

    @cached_property
    def schema_json(self) -> str:
        return str(self.handle.schema().to_json())

    @property
    def features(self) -> frozenset[str]:
        """The table's features; empty up to writer version 6."""
        protocol = self.handle.protocol()
        return frozenset((*(protocol.reader_features or ()), *(protocol.writer_features or ())))

    @property
    def unwritable(self) -> str:
        protocol = self.handle.protocol()
        others = sorted(self.features - WRITABLE_FEATURES)
        if protocol.min_writer_version not in {*range(PLAIN_WRITER + 1), FEATURE_WRITER}:
            return f"writer version {protocol.min_writer_version}"
        return f"the features {', '.join(others)}" if others else ""

    @property
    def is_append_only(self) -> bool:
        return self.properties.get(APPEND_ONLY, "").lower() == "true"

    @property
    def has_deleted_rows(self) -> bool:
        """Return whether files have deletion vectors, which the library neither adds nor removes.

        Raises SinkUnreadable for a lost deletion vector file.
        """
        try:
            return (
                "deletionVectors" in self.features and sum(one.num_rows for one in self.handle.deletion_vectors()) > 0
            )
        except _errors() as error:
            raise _unreadable(self.location, error) from error

    def newest_batch(self, app: str) -> int:
        version = self.handle.transaction_version(app)
        return -1 if version is None else int(version)

    def sizes(self) -> Mapping[str, int]:
        actions: Any = self.handle.get_add_actions()
        columns = zip(actions.column("path"), actions.column("size_bytes"), strict=True)
        return {unquote(path.as_py()): size.as_py() for path, size in columns}

    def check_removable(self, paths: Iterable[str] | None = None) -> None:
        """Raises Refused (``delta-path``) for paths that deltalake spells differently.

        Spark keeps non-ASCII characters, deltalake percent-encodes them. Spark compares strings: it would still read a
        removed file.
        """
        actions: Any = self.handle.get_add_actions()
        written = {unquote(path): path for path in (one.as_py() for one in actions.column("path"))}
        for path in written if paths is None else paths:
            spelled = quote(path, safe=_UNENCODED)
            if written.get(path, spelled) != spelled:
                raise Refused(
                    "delta-path",
                    "The deltalake library would remove a file of the table under a different spelling of its path, "
                    "and Spark would still read the file",
                    where=self.location,
                    expected=spelled,
                    found=written[path],
                    hint="nothing was changed; only tables whose partition values are ASCII can be cut or swapped; "
                    "rebuild at the last written batch, which removes nothing",
                )

    def check_restorable(self, version: int) -> None:
        """Raises Refused as ``check_removable`` for files missing in an older version.

        ``delta-restore``: VACUUM deleted files with deletion vectors. The library checks only data files, and Spark
        could not read the table afterwards.
        """
        older = DeltaVersion(self.location, version)
        self.check_removable(self.sizes().keys() - older.sizes().keys())
        try:
            _ = older.has_deleted_rows
        except SinkUnreadable as error:
            raise self._unrestored(version, error) from error

    def files(self) -> Mapping[str, DataFile]:
        import pyarrow as pa  # noqa: PLC0415 - heavy; only a swap pays for it

        actions = pa.table(self.handle.get_add_actions())
        files = dict[str, DataFile]()
        for row in range(actions.num_rows):
            action: Mapping[str, Any] = {name: actions[name][row] for name in actions.column_names}
            path = unquote(action["path"].as_py())
            files[path] = DataFile(
                path,
                action["size_bytes"].as_py(),
                action["num_records"].as_py(),
                partition_strings(action["partition"], self.location) if "partition" in action else {},
                action["modification_time"].as_py(),
                statistics(action),
            )
        return files

    def commit(
        self,
        app: str,
        batch: int | None,
        note: Mapping[str, object],
        *,
        add: Iterable[DataFile] = (),
        remove: Iterable[DataFile] = (),
        columns_of: DeltaVersion | None = None,
    ) -> None:
        """Commit files with a note; ``batch`` is the newest of ``app``, ``None``: unchanged.

        ``columns_of`` replaces all files and columns.
        Raises FileExistsError if a different writer was faster, Refused (``delta-commit``) if the library refuses.
        """
        remove = tuple(remove)
        # Only an overwrite changes columns, and it removes every file.
        self.check_removable((file.path for file in remove) if columns_of is None else None)
        now_ms, changed, actions = time.time_ns() // 1_000_000, True, _library().transaction
        adds = [
            actions.AddAction(file.path, file.size, file.partition, file.modified_ms, changed, file.statistics)
            for file in add
        ]
        removes = [actions.RemoveAction(file.path, changed, now_ms, file.size, dict(file.partition)) for file in remove]
        mode, schema = ("append", self) if columns_of is None else ("overwrite", columns_of)
        partitions = list(self.partition_columns)
        try:
            self.handle.create_write_transaction(
                [*adds, *removes], mode, schema.handle.schema(), partitions, **_properties(app, batch, note)
            )
        except _errors() as error:
            # Whether another writer was faster is read from the log, whatever error the library has raised.
            raise self._overtaken() or Refused(
                "delta-commit",
                f"The deltalake library could not commit to the Delta table: {error}",
                where=self.location,
                hint="nothing was changed; change the table as the reason says and make a new plan",
            ) from error

    def restore(self, version: int, app: str, batch: int, note: Mapping[str, object] | None = None) -> None:
        """Commit an older version's rows and columns; the note names it.

        Raises FileExistsError as ``commit``, and Refused (``delta-restore``) after VACUUM.
        """
        self.check_restorable(version)
        try:
            self.handle.restore(version, **_properties(app, batch, {**(note or {}), "restores": version}))
        except _errors() as error:
            raise self._overtaken() or self._unrestored(version, error) from error

    def _unrestored(self, version: int, error: Exception) -> Refused:
        return Refused(
            "delta-restore",
            f"The Delta table cannot be restored to version {version}: {error}",
            where=self.location,
            hint="VACUUM removes the files of old versions after delta.deletedFileRetentionDuration; without them "
            "rebuild at the last written batch, which removes nothing",
        )

    def _overtaken(self) -> FileExistsError | None:
        newest = _open(self.location, None).version()
        return FileExistsError(f"version {newest} of {self.location}") if newest != self.number else None


def damaged_files(store: ReadStore, sizes: Mapping[str, int]) -> Iterator[Damage]:
    """Missing files and wrong sizes; files elsewhere belong to different tables."""
    for path, expected in sizes.items():
        if "://" in path or path.startswith("/"):
            continue
        yield from size_damage(store.size, path, expected)


def create_like(location: str, table: DeltaVersion) -> None:
    """Create an empty table with equal columns, partitions and constraints.

    Repeatable. Raises Refused (``swap-unsupported``) if the library cannot.
    """
    try:
        library = _library()
        options = storage_options(location)
        if not library.DeltaTable.is_deltatable(location, options):
            partitions = list(table.partition_columns)
            library.DeltaTable.create(location, table.handle.schema(), partition_by=partitions, storage_options=options)
        created = _open(location, None)
        if _GENERATED in table.schema_json:
            created.alter.add_feature(library.TableFeatures.GeneratedColumns, allow_protocol_versions_increase=True)
        for name, expression in table.constraints.items():
            if CONSTRAINT + name not in created.metadata().configuration:
                created.alter.add_constraint({name: expression})
    except _library().exceptions.DeltaError as error:
        # Such as a constraint with a function of Spark's that the library does not have.
        raise unsupported(
            table.location, "columns and constraints that deltalake can give a new table", str(error)
        ) from error


def require_library() -> None:
    if find_spec("deltalake") is None:
        raise EnvironmentMissing(
            "extra-missing",
            "Reading and restoring a Delta table needs the deltalake library",
            hint="pip install deltalake",
        )


def storage_options(location: str) -> dict[str, str]:
    """Options from the environment, which the library, unlike fsspec, ignores.

    It needs an explicit choice for an endpoint without TLS; here a URL in ``AWS_ENDPOINT_URL``.
    """
    endpoints = (os.environ.get(name, "") for name in ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"))
    plain = next(filter(None, endpoints), "").startswith("http://")
    return {"allow_http": "true"} if plain and urlsplit(location).scheme in _S3 else {}


def _library() -> Any:
    """The library, imported lazily: the import takes longer than most commands."""
    require_library()
    import deltalake.exceptions  # noqa: PLC0415 - as above

    return deltalake


def _open(location: str, version: int | None) -> DeltaTable:
    try:
        table: DeltaTable = _library().DeltaTable(location, version, storage_options(location))
    except _errors() as error:
        if version is not None and not isinstance(error, OSError):
            raise Refused(
                "delta-log-cleaned",
                "The log of the Delta table no longer has all of one of its versions",
                where=f"version {version}",
                found=str(error),
                hint="the table's property delta.logRetentionDuration decides how long commits are kept",
            ) from error
        raise _unreadable(location, error) from error
    else:
        return table


def _unreadable(location: str, error: Exception) -> SinkUnreadable:
    return SinkUnreadable(
        "delta-unreadable",
        f"The Delta table cannot be read: {error}",
        where=location,
        hint="read it with Spark to see whether it is damaged or has a feature that deltalake does not support",
    )


def _errors() -> tuple[type[Exception], ...]:
    return _library().exceptions.DeltaError, OSError


def _properties(app: str, batch: int | None, note: Mapping[str, object]) -> dict[str, Any]:
    library = _library()
    transactions = [] if batch is None else [library.Transaction(app, batch)]
    # By default deltalake may also remove expired commits after its own, which a later cut or undo reads.
    hooks = library.PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    commit = library.CommitProperties({NOTE: json.dumps(note)}, max_commit_retries=0, app_transactions=transactions)
    return {"commit_properties": commit, "post_commithook_properties": hooks}
