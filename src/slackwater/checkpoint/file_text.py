"""One file of a checkpoint as text for people: text logs as they are, binary files taken apart but not interpreted."""

from __future__ import annotations

from dataclasses import asdict

from slackwater.checkpoint.layout import parse_state_file
from slackwater.formats.frames import Budget
from slackwater.formats.rocksdb_zip import parse_rocksdb_zip
from slackwater.formats.state_schema import parse_state_schema
from slackwater.formats.text_log import decode_text, render_json
from slackwater.model.read_options import ReadLimits
from slackwater.model.state import StateFileKind

_HADOOP_MAGIC = b"crc\0"


def file_text(path: str, data: bytes, limits: ReadLimits) -> str:
    """The content of the file at ``path``. Raises ``FormatError`` if it does not have the format of its name."""
    name = path.rstrip("/").rpartition("/")[2]
    state_file = parse_state_file(name)
    if state_file is not None and state_file.kind is StateFileKind.ZIP:
        version = parse_rocksdb_zip(data, limit=limits.archive)
        tables = [asdict(table) for table in version.tables]
        families = dict(version.column_families)
        return render_json(
            {"tables": tables, "rows": version.rows, "families": families, "files": sorted(version.files)}
        )
    if state_file is not None:
        return _records(data, is_changelog=state_file.kind is StateFileKind.CHANGELOG, limit=limits.state)
    if name == "schema" or "/_stateSchema/" in path:
        return render_json(asdict(parse_state_schema(data)))
    if data.startswith(_HADOOP_MAGIC) or name.endswith(".sst"):
        return data.hex(" ", 4)
    return decode_text(data).replace("\0", "\\0")


def _records(data: bytes, *, is_changelog: bool, limit: int) -> str:
    """One line of JSON for each record, keys and values in hex."""
    from slackwater.formats.changelog import parse_changelog  # noqa: PLC0415  (imports numpy and pyarrow)
    from slackwater.formats.codecs import decompress  # noqa: PLC0415
    from slackwater.formats.state_records import DELETED, walk_records  # noqa: PLC0415

    plain = decompress(data, budget=Budget(limit))
    changelog = parse_changelog(plain) if is_changelog else None
    records = changelog.records if changelog else walk_records(plain)
    lines = [render_json({"version": changelog.version, "lineage": changelog.lineage})] if changelog else []
    for index in range(len(records)):
        deleted = int(records.value_lengths[index]) == DELETED
        merged = records.merges is not None and bool(records.merges[index])
        kind = "delete" if deleted else "merge" if merged else "put"
        lines.append(render_json({"op": kind, "key": records.key(index).hex(), "value": records.value(index).hex()}))
    return "\n".join(lines)
