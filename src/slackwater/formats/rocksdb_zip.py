"""``V.zip`` of a RocksDB store: ``metadata`` (the version's SST files) and RocksDB's small files."""

import io
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from slackwater.core.errors import FormatError
from slackwater.core.units import MIB
from slackwater.formats.frames import Budget
from slackwater.formats.text_log import integer_field, parse_object, shown, split_log, text_field

_METADATA = "metadata"
_WHAT = "zip metadata"
_METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""Methods that Java writes."""
DEFAULT_LIMIT = 256 * MIB


@dataclass(frozen=True, slots=True)
class TableFile:
    """An SST: RocksDB's name, its name in ``SSTs/``, and its size."""

    local_name: str
    stored_name: str
    size: int


@dataclass(frozen=True, slots=True)
class RocksDbVersion:
    """``rows`` is ``None`` if Spark did not count (``numKeys`` -1). ``column_families`` is name -> id; empty before 4.0
    and for stores without own families.
    """

    tables: tuple[TableFile, ...]
    rows: int | None
    column_families: Mapping[str, int] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


def parse_rocksdb_zip(data: bytes, *, with_files: bool = True, budget: Budget | None = None) -> RocksDbVersion:
    """``with_files`` unpacks the small files too. Raises ``FormatError``; ``too-large`` if the zip's files together
    pass the budget.
    """
    budget = budget or Budget(DEFAULT_LIMIT)
    if not data:
        raise FormatError("empty", "the file has no bytes", expected="a zip", found="0 bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            # The sizes are only what the directory of the zip has: `_read_member` checks each one against the bytes.
            budget.take(sum(member.file_size for member in members), len(data))
            files = {
                member.filename: _read_member(archive, member)
                for member in members
                if with_files or member.filename == _METADATA
            }
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError) as error:
        # zipfile raises all of these for damaged headers: RuntimeError for a flag of encryption, NotImplementedError
        # for an unknown version of the format.
        code = "torn" if data[:2] == b"PK" else "foreign"
        raise FormatError(code, "not a readable zip", expected="a zip", found=str(error)) from error
    if _METADATA not in files:
        raise FormatError("foreign", "the zip has no metadata", expected=_METADATA, found=shown(", ".join(files)))
    _, lines = split_log(files.pop(_METADATA), newest=1)
    record = parse_object("\n".join(lines), _WHAT)
    tables = record.get("sstFiles", [])
    families = record.get("columnFamilyMapping") or {}
    if not isinstance(tables, list) or not isinstance(families, dict):
        raise FormatError("foreign", "not the metadata of a version", expected="sstFiles", found=shown(repr(record)))
    if not all(isinstance(number, int) for number in families.values()):
        raise FormatError("foreign", "column families are not numbered", expected="ids", found=shown(repr(families)))
    rows = integer_field(record, "numKeys", _WHAT, -1)
    return RocksDbVersion(tuple(_parse_table(table) for table in tables), rows if rows >= 0 else None, families, files)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    if member.compress_type not in _METHODS:
        raise FormatError(
            "foreign", "a compression that Java does not write", expected="stored or deflated",
            found=f"method {member.compress_type}",
        )  # fmt: skip
    with archive.open(member) as stream:
        # Read without a size, zipfile expands all there is before it cuts it to the size that the zip promises.
        data = stream.read(member.file_size)
        if stream.read(1) or len(data) != member.file_size:
            raise zipfile.BadZipFile(f"{member.filename} does not have the length recorded in the zip")
    return data


def _parse_table(value: object) -> TableFile:
    if not isinstance(value, dict):
        raise FormatError("foreign", "an SST entry is no object", expected="{...}", found=shown(repr(value)))
    table = TableFile(
        text_field(value, "localFileName", _WHAT),
        text_field(value, "dfsSstFileName", _WHAT),
        integer_field(value, "sizeBytes", _WHAT),
    )
    # Both names become parts of paths, by which a damaged file could lead to other files.
    for name in (table.local_name, table.stored_name):
        if "/" in name or "\0" in name or name in {"", ".", ".."}:
            raise FormatError("foreign", "an SST with a path for a name", expected="a file name", found=shown(name))
    return table
