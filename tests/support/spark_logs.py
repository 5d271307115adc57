"""Log entries as Spark writes them, for tests of what reads them."""

from collections.abc import Iterable

from slackwater.core.checkpoint import SinkFile, SourceFile
from slackwater.formats.text_log import render_json


def entry_name(entry: int, interval: int) -> str:
    return f"{entry}.compact" if (entry + 1) % interval == 0 else str(entry)


def render_source_file(file: SourceFile) -> str:
    return render_json({"path": file.path, "timestamp": file.timestamp_ms, "batchId": file.log_offset})


def render_file_source_log(files: Iterable[SourceFile]) -> bytes:
    return "\n".join(["v1", *map(render_source_file, files)]).encode()


def render_sink_file(file: SinkFile) -> str:
    return render_json(
        {
            "path": file.path,
            "size": file.size,
            "isDir": file.is_dir,
            "modificationTime": file.modification_time_ms,
            "blockReplication": file.block_replication,
            "blockSize": file.block_size,
            "action": file.action,
        }
    )


def render_file_sink_log(files: Iterable[SinkFile]) -> bytes:
    """A whole log file with these entries; ``v1`` alone for none, as Spark writes it."""
    return "\n".join(["v1", *map(render_sink_file, files)]).encode()


def render_query_metadata(query_id: str) -> bytes:
    return render_json({"id": query_id}).encode()
