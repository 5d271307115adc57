"""The file sink's output without a JVM: what was last written, and cutting it back to any batch."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.errors import Refused, SinkUnreadable
from slackwater.formats.compactible import lay_out
from slackwater.sinks.files.output import FilesOutput
from slackwater.storage.local import LocalStore
from tests.support.outputs import manifest_ids


def _line(output: Path, batch: int) -> str:
    file = output / f"part-{batch}.parquet"
    return json.dumps(
        {
            "path": file.as_uri(),
            "size": 10,
            "isDir": False,
            "modificationTime": 0,
            "blockReplication": 1,
            "blockSize": 1,
            "action": "add",
        }
    )


def _write(output: Path, last: int, interval: int, *, purged: bool = False) -> dict[int, list[str]]:
    """A sink after batches 0 to ``last``; every third batch is empty. ``purged``: only what Spark would keep."""
    lines = {batch: [] if batch % 3 == 2 else [_line(output, batch)] for batch in range(last + 1)}
    manifest = output / "_spark_metadata"
    manifest.mkdir(parents=True)
    for batch in lines:
        for name, text in lay_out({b: lines[b] for b in range(batch + 1)}, batch, interval).items():
            (manifest / name).write_text(text)
        (output / f"part-{batch}.parquet").write_bytes(b"0123456789")
    if purged:
        kept = set(lay_out(lines, last, interval))
        for path in manifest.iterdir():
            if path.name not in kept:
                path.unlink()
    return lines


def _listed(output: Path) -> list[str]:
    """The files that Spark would read: the newest compacted entry and what comes after it."""
    ids, manifest = manifest_ids(output), output / "_spark_metadata"
    compacted = max((batch for batch in ids if (manifest / f"{batch}.compact").exists()), default=0)
    names = [f"{batch}.compact" if (manifest / f"{batch}.compact").exists() else str(batch) for batch in ids]
    texts = [(manifest / name).read_text() for name, batch in zip(names, ids, strict=True) if batch >= compacted]
    return [json.loads(line)["path"] for text in texts for line in text.split("\n")[1:] if line]


def test_last_written_is_the_newest_entry(tmp_path: Path) -> None:
    output = FilesOutput(LocalStore(tmp_path))
    assert output.last_written() == -1
    _write(tmp_path / "out", 12, 10)
    assert FilesOutput(LocalStore(tmp_path / "out")).last_written() == 12


@pytest.mark.parametrize("text", ["", "v", "v9\n", 'v1\n{"path":"file:///x"', "v1\nnothing"])
def test_newest_entry_that_does_not_decode_is_an_error(tmp_path: Path, text: str) -> None:
    _write(tmp_path, 3, 10)
    (tmp_path / "_spark_metadata" / "4").write_text(text)
    with pytest.raises(SinkUnreadable) as caught:
        FilesOutput(LocalStore(tmp_path)).last_written()
    assert caught.value.code == "sink-unreadable"
    assert str(caught.value.where).endswith("_spark_metadata/4")


@given(last=st.integers(0, 25), interval=st.integers(1, 10), after=st.integers(-1, 25), purged=st.booleans())
def test_cut_leaves_exactly_the_batches_before(
    tmp_path_factory: pytest.TempPathFactory, last: int, interval: int, after: int, *, purged: bool
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lines = _write(folder / "out", last, interval, purged=purged)
    output = FilesOutput(LocalStore(folder / "out"))

    recorded = {batch: "\n".join(["v1", *own]) for batch, own in lines.items()}
    found, backup = output.cut_after(after, recorded), LocalStore(folder / "operation" / "backup")
    output.cut(found, recorded, backup)
    output.cut(found, recorded, backup)

    kept = [json.loads(line)["path"] for batch in range(min(after, last) + 1) for line in lines[batch]]
    assert output.last_written() == min(after, last)
    assert sorted(_listed(folder / "out")) == sorted(kept)
    assert len(found.files) + len(kept) == sum(map(len, lines.values()))
    for name in found.files:
        assert not (folder / "out" / name).exists()
        assert (folder / "operation" / "backup" / name).read_bytes() == b"0123456789"


def test_cut_is_refused_where_nobody_remembers_what_a_batch_wrote(tmp_path: Path) -> None:
    _write(tmp_path, 9, 10, purged=True)
    with pytest.raises(Refused) as caught:
        FilesOutput(LocalStore(tmp_path)).cut_after(6, {})
    assert caught.value.code == "sink-cut-unknown"
