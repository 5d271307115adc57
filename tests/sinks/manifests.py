"""Outputs of Spark's file sink, written and read without the code under test."""

import json
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from slackwater.formats.compactible import DEFAULT_INTERVAL, derive_interval, lay_out
from tests.support.outputs import manifest_ids

MANIFEST = "_spark_metadata"


def write_batches(
    output: Path,
    last: int,
    interval: int,
    *,
    purged: bool = False,
    partitioned: bool = False,
    side_files: bool = False,
    spared: tuple[int, int] = (0, 0),
) -> dict[int, str]:
    """Write batches 0 to ``last``, every third empty; each batch's own manifest entry.

    ``purged`` keeps only what Spark must keep, and the range ``spared``; ``side_files`` adds Hadoop's ``.crc`` files.
    """
    lines = {batch: [] if batch % 3 == 2 else [_line(output, batch, partitioned)] for batch in range(last + 1)}
    manifest = output / MANIFEST
    manifest.mkdir(parents=True, exist_ok=True)
    for batch in lines:
        for name, content in lay_out({b: lines[b] for b in range(batch + 1)}, batch, interval).items():
            (manifest / name).write_text(content)
        data = data_file(output, batch, partitioned=partitioned)
        data.parent.mkdir(exist_ok=True)
        data.write_bytes(content_of(batch))
    if purged:
        kept = set(lay_out(lines, last, interval))
        for path in manifest.iterdir():
            if path.name not in kept and int(path.name.removesuffix(".compact")) not in range(*spared):
                path.unlink()
    if side_files:
        for path in [path for path in output.rglob("*") if path.is_file()]:
            path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + str(hash(path.name)).encode()[:4])
    return {batch: "\n".join(["v1", *own]) for batch, own in lines.items()}


def data_file(output: Path, batch: int, *, partitioned: bool = False) -> Path:
    """The one data file of a batch that is not empty."""
    return (output / f"day={batch % 2}" if partitioned else output) / f"part-{batch}.json"


def content_of(batch: int) -> bytes:
    """Ten bytes and more, different for each batch."""
    return f"rows of batch {batch}\n".encode()


def listed_files(output: Path) -> list[Path]:
    """The files that Spark would read: the newest compacted entry and each one behind it, which must exist."""
    manifest, batches = output / MANIFEST, manifest_ids(output)
    compacted = max((batch for batch in batches if (manifest / f"{batch}.compact").exists()), default=0)
    found: list[Path] = []
    for batch in range(compacted, max(batches, default=-1) + 1):
        entry = manifest / f"{batch}.compact"
        text = (entry if entry.exists() else manifest / str(batch)).read_text()
        found += [Path(unquote(urlsplit(json.loads(line)["path"]).path)) for line in text.split("\n")[1:] if line]
    return found


def spark_reads(entries: Mapping[str, str], setting: int = DEFAULT_INTERVAL) -> list[str]:
    """The lines that ``CompactibleFileStreamLog.allFiles`` returns of entries by name; KeyError where it fails."""
    names = [name for name in entries if name.removesuffix(".compact").isdigit()]
    newest = max((int(name.removesuffix(".compact")) for name in names), default=-1)
    interval = derive_interval(names, setting)
    first = max(0, (newest + 1) // interval * interval - 1)
    numbers = range(first, newest + 1)
    read = [f"{batch}.compact" if (batch + 1) % interval == 0 else str(batch) for batch in numbers]
    return [line for name in read for line in entries[name].split("\n")[1:] if line]


def _line(output: Path, batch: int, partitioned: bool) -> str:
    return json.dumps(
        {
            "path": data_file(output, batch, partitioned=partitioned).as_uri(),
            "size": len(content_of(batch)),
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
    )
