"""A source file counts as the one that was read by its time and, where it was recorded, its size."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.core.checkpoint import ChangedFile, SourceFile
from slackwater.formats.compactible import render_source_file
from slackwater.ledger.recording.source_availability import StoreAvailability
from slackwater.sources.common.contract import SourceRange, sizes_as_read
from slackwater.sources.files import Files
from slackwater.storage.open import open_write_store
from tests.support.s3 import before_requests

READ_MS = 1_700_000_000_123
TEXT = '{"n": 1}\n'
PART = "part-00000-3d2f0a52-8d3c-4a0b-9d5a-0f6e6f3b9a11-c000.json"


def _write(file: Path, text: str, at_ms: int = READ_MS) -> None:
    file.write_text(text)
    os.utime(file, ns=(at_ms * 1_000_000, at_ms * 1_000_000))


def _replaced(file: Path, *, sized: bool, read_ms: int = READ_MS, edit: Callable[[Path], object]) -> list[ChangedFile]:
    recorded = SourceFile(file.as_uri(), read_ms, 0)
    sizes = sizes_as_read([recorded], StoreAvailability()) if sized else {}
    edit(file)
    span = SourceRange("0", None, '{"logOffset":0}', {0: f"v1\n{render_source_file(recorded)}"}, sizes)
    return list(Files().replaced(span, StoreAvailability()))


def _linked(file: Path) -> None:
    os.link(file, file.with_name("other name"))


def _renamed_copy(file: Path) -> None:
    copy = file.with_name("copy")
    shutil.copy2(file, copy)
    copy.replace(file)


@pytest.mark.parametrize("sized", [True, False])
@pytest.mark.parametrize(
    "edit", [lambda _: None, lambda file: file.chmod(0o600), _linked, _renamed_copy, Path.unlink]
)  # fmt: skip
def test_a_file_with_its_content_is_not_replaced(edit: Callable[[Path], object], sized: bool, tmp_path: Path) -> None:
    file = tmp_path / "a b.json"
    _write(file, TEXT)
    assert _replaced(file, sized=sized, edit=edit) == []


@pytest.mark.parametrize(
    ("edit", "sized", "found"),
    [
        (lambda file: _write(file, '{"n": 2}\n', READ_MS + 5), False, (READ_MS + 5, None)),
        (lambda file: _write(file, '{"n": 2}\n', READ_MS + 5), True, (READ_MS + 5, 9)),
        (lambda file: _write(file, '{"n": 22}\n'), True, (READ_MS, 10)),
        (lambda file: _write(file, TEXT, READ_MS - 60_000), True, (READ_MS - 60_000, 9)),
    ],
    ids=["other-time", "other-time-same-size", "other-size-same-time", "touched"],
)
def test_a_file_that_may_have_other_rows_is_replaced(
    edit: Callable[[Path], object], sized: bool, found: tuple[int, int | None], tmp_path: Path
) -> None:
    file = tmp_path / "a b.json"
    _write(file, TEXT)
    size = len(TEXT) if sized else None
    assert _replaced(file, sized=sized, edit=edit) == [ChangedFile(file.as_uri(), READ_MS, found[0], size, found[1])]


def test_a_store_without_milliseconds_shows_the_same_second(tmp_path: Path) -> None:
    file, second = tmp_path / "a.json", READ_MS // 1000 * 1000
    _write(file, TEXT)
    assert _replaced(file, sized=False, edit=lambda one: _write(one, TEXT, second)) == []
    assert _replaced(file, sized=False, edit=lambda one: _write(one, TEXT, second + 1000)) != []


def test_a_name_that_spark_gives_once_stands_for_its_content(tmp_path: Path) -> None:
    file = tmp_path / PART
    _write(file, TEXT)
    assert _replaced(file, sized=True, edit=lambda one: _write(one, TEXT, READ_MS + 60_000)) == []
    _write(file, TEXT)
    assert _replaced(file, sized=True, edit=lambda one: _write(one, TEXT + TEXT, READ_MS + 60_000)) != []


def test_the_size_of_a_file_that_was_written_since_is_not_recorded(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    _write(file, TEXT, READ_MS + 5)
    assert sizes_as_read([SourceFile(file.as_uri(), READ_MS, 0)], StoreAvailability()) == {}


def test_an_object_is_known_by_its_time_and_size(s3_location: str) -> None:
    store, path = open_write_store(s3_location), f"{s3_location.replace('s3:', 's3a:')}/in/a.json"
    store.write("in/a.json", TEXT.encode())
    written_ms = StoreAvailability().modified_ms(path)
    assert written_ms is not None

    def replaced(read_ms: int, sizes: dict[str, int]) -> list[ChangedFile]:
        log = {0: f"v1\n{render_source_file(SourceFile(path, read_ms, 0))}"}
        return list(Files().replaced(SourceRange("0", None, '{"logOffset":0}', log, sizes), StoreAvailability()))

    assert sizes_as_read([SourceFile(path, written_ms, 0)], StoreAvailability()) == {path: len(TEXT)}
    assert replaced(written_ms, {path: len(TEXT)}) == []
    assert replaced(written_ms, {path: 1}) == [ChangedFile(path, written_ms, written_ms, 1, len(TEXT))]
    assert replaced(written_ms - 60_000, {}) == [ChangedFile(path, written_ms - 60_000, written_ms)]


def test_many_objects_are_known_by_listings_of_their_folders(s3_location: str) -> None:
    store, base = open_write_store(s3_location), s3_location
    names = [f"in/day={day}/{number}.json" for day in (1, 2) for number in range(3)] + ["in/top.json"]
    for name in names:
        store.write(name, TEXT.encode())
    paths = [f"{base}/{name}" for name in names]
    asked: list[str] = []
    with before_requests(lambda method, url: asked.append(f"{method} {url}")):
        found = StoreAvailability().all_modified_ms([*paths, f"{base}/in/missing.json", f"{base}/no/folder.json"])
    assert found == {path: StoreAvailability().modified_ms(path) for path in paths}
    assert len(asked) < len(paths), asked
    # A folder that does not exist may be an object: that is asked.
    assert [one for one in asked if "list-type=2" not in one and "/in/" in one] == []
