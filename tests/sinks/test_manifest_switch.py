"""The entries of a manifest replaced by other ones: after each change Spark reads all of the old or all of the new."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.errors import Refused
from slackwater.formats.compactible import lay_out
from slackwater.sinks.files.manifest import Manifest
from slackwater.sinks.files.manifest_swap import entries_of, steps, switch
from slackwater.storage.local import LocalStore
from slackwater.storage.protocols import LEFTOVER
from tests.sinks.manifests import MANIFEST, spark_reads
from tests.support.errors import raises_code

INTERVAL = 10


class Stopped(Exception):
    """Raised before a change, as a kill would come."""


class Watched(LocalStore):
    """Checks after each change what Spark would read; stops before change ``stop``, from 1."""

    def __init__(self, root: Path, old: list[str], new: list[str], interval: int, stop: int = 0) -> None:
        super().__init__(root)
        self._allowed, self._interval, self._left = (old, new), interval, stop
        self.folder = root

    def write(self, path: str, data: bytes) -> None:
        self._count()
        assert not self.exists(path), f"{path} is replaced: not every store can in one step"
        super().write(path, data)
        self.check()

    def delete(self, path: str) -> None:
        self._count()
        super().delete(path)
        self.check()

    def check(self) -> None:
        entries = {path.name: path.read_text() for path in (self.folder / MANIFEST).iterdir()}
        assert spark_reads(entries, self._interval) in self._allowed

    def _count(self) -> None:
        self._left -= 1
        if self._left == 0:
            raise Stopped


def log_of(name: str, last: int, interval: int = INTERVAL) -> dict[str, str]:
    """What Spark keeps after batches 0 to ``last``, each with a file of its own, of a log with this interval."""
    return lay_out({batch: [_line(name, batch)] for batch in range(last + 1)}, last, interval)


def lines_of(name: str, last: int) -> list[str]:
    return [_line(name, batch) for batch in range(last + 1)]


def _line(name: str, batch: int) -> str:
    return (
        f'{{"path":"file:///out/{name}-{batch}.json","size":1,"isDir":false,"modificationTime":0,'
        '"blockReplication":1,"blockSize":1,"action":"add"}'
    )


def _written(folder: Path, entries: dict[str, str]) -> Path:
    (folder / MANIFEST).mkdir(parents=True)
    for name, content in entries.items():
        (folder / MANIFEST / name).write_text(content)
    return folder


@pytest.mark.parametrize("newest", [-1, 0, 12, 25])
@pytest.mark.parametrize("last", [-1, 3, 11, 39])
@pytest.mark.parametrize("interval", [2, INTERVAL])
def test_all_of_the_old_entries_or_all_of_the_new_ones(tmp_path: Path, newest: int, last: int, interval: int) -> None:
    old, new = log_of("old", newest, interval), log_of("new", last, interval)
    parties = (lines_of("old", newest), lines_of("new", last), interval)
    stopped, point = True, 0
    while stopped:
        point += 1
        folder = _written(tmp_path / str(point), old)
        try:
            switch(Watched(folder, *parties, stop=point), new)
            stopped = False
        except Stopped:
            # A write that was killed leaves a hidden file.
            (folder / MANIFEST / f".1.compact.x{LEFTOVER}").write_text("v1")
            store = Watched(folder, *parties)
            switch(store, new if point % 2 else old)
            assert entries_of(Manifest(store)) == (new if point % 2 else old)
            assert not [path for path in (folder / MANIFEST).iterdir() if path.name.endswith(LEFTOVER)]
            switch(store, new)
        assert entries_of(Manifest(LocalStore(folder))) == new
    assert point > 1 or old == new


def test_entries_that_spark_has_not_deleted_yet_are_kept(tmp_path: Path) -> None:
    older = {str(batch): "\n".join(["v1", _line("new", batch)]) for batch in range(7, 9)}
    new = {**log_of("new", 25), **older}
    folder = _written(tmp_path, {**log_of("old", 25), "18": "v1"})
    store = Watched(folder, lines_of("old", 25), lines_of("new", 25), INTERVAL)
    switch(store, new)
    assert entries_of(Manifest(store)) == new


def test_a_manifest_that_spark_cannot_read_is_refused_before_anything_is_changed(tmp_path: Path) -> None:
    entries = {**log_of("old", 3, 4), "9": "v1"}
    folder = _written(tmp_path, entries)
    with raises_code(Refused, "swap-unsupported"):
        switch(LocalStore(folder), log_of("new", 3))
    assert entries_of(Manifest(LocalStore(folder))) == entries


def test_few_steps_lead_from_any_entry_to_any_other() -> None:
    assert list(steps(10, 20)) == [20]
    assert list(steps(7, 7)) == []
    assert max(len(list(steps(count, 24))) for count in (10_001, 9_999, 8_192, 2**14 - 1)) <= 40


@given(st.integers(1, 100_000), st.integers(1, 100_000))
def test_the_distance_of_two_steps_divides_both(count: int, target: int) -> None:
    last = count
    for last, here in _pairs(count, steps(count, target)):
        assert here % abs(here - last) == 0
        assert last % abs(here - last) == 0
        count = here
    assert count == target


def _pairs(first: int, rest: Iterator[int]) -> Iterator[tuple[int, int]]:
    for here in rest:
        yield first, here
        first = here
