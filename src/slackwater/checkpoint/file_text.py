"""A checkpoint's file as text for people: logs as they are, binary files taken apart."""

from __future__ import annotations

from dataclasses import asdict

from slackwater.checkpoint.layout import parse_state_file
from slackwater.core.checkpoint import ReadLimits, StateFileKind
from slackwater.formats.frames import Budget, Surplus
from slackwater.formats.rocksdb_zip import parse_rocksdb_zip
from slackwater.formats.state_schema import parse_state_schema
from slackwater.formats.text_log import decode_text, render_json

_HADOOP_MAGIC = b"crc\0"


def file_text(path: str, data: bytes, limits: ReadLimits) -> str:
    """Raises ``FormatError`` if the file does not have the format of its name."""
    name = path.rstrip("/").rpartition("/")[2]
    state_file = parse_state_file(name)
    if state_file is not None and state_file.kind is StateFileKind.ZIP:
        version = parse_rocksdb_zip(data, budget=Budget(limits.archive, surplus=Surplus(limits.surplus)))
        tables = [asdict(table) for table in version.tables]
        families = dict(version.column_families)
        return render_json(
            {"tables": tables, "rows": version.rows, "families": families, "files": sorted(version.files)}
        )
    if state_file is not None:
        return _records(
            data,
            is_changelog=state_file.kind is StateFileKind.CHANGELOG,
            budget=Budget(limits.state, surplus=Surplus(limits.surplus)),
        )
    if name == "schema" or "/_stateSchema/" in path:
        return render_json(asdict(parse_state_schema(data)))
    if data.startswith(_HADOOP_MAGIC) or name.endswith(".sst"):
        return data.hex(" ", 4)
    # Kafka's initial offsets start with a NUL byte, which a terminal does not show.
    return decode_text(data).replace("\0", "\\0")


def _records(data: bytes, *, is_changelog: bool, budget: Budget) -> str:
    from slackwater.formats.changelog import decompressed_records  # noqa: PLC0415  (imports numpy and pyarrow)

    records, changelog = decompressed_records(data, is_changelog=is_changelog, budget=budget)
    lines = [render_json({"version": changelog.version, "lineage": changelog.lineage})] if changelog else []
    for index in range(len(records)):
        fields = {"op": records.operation(index), "key": records.key(index).hex(), "value": records.value(index).hex()}
        lines.append(render_json(fields))
    return "\n".join(lines)
