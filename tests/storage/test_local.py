"""What only a local disk can promise or do."""

import os
import tracemalloc
import uuid
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.storage.local import LocalStore
from slackwater.storage.open import is_uri, local_file_of, local_path_of, open_read_store
from slackwater.storage.protocols import FileTooLarge
from slackwater.storage.remote import RemoteStore
from tests.support.hadoop import HADOOP, FailingFileSystem, Lost


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    store.write("a/b", b"1")
    with pytest.raises(OSError, match="directory"):
        store.write("a", b"2")
    assert [entry.name for entry in store.list()] == ["a"]
    assert [entry.name for entry in store.list("a")] == ["b"]


def test_links_to_directories_are_followed_but_not_for_ever(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "1").write_bytes(b"1")
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    folders = {folder.path: folder for folder in LocalStore(tmp_path).folders()}
    assert folders["link"].files == ("1",)


def test_a_sparse_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with (tmp_path / "7").open("wb") as file:
        file.truncate(20 << 30)
    tracemalloc.start()
    try:
        with pytest.raises(FileTooLarge) as raised:
            LocalStore(tmp_path).read("7")
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert raised.value.size == 20 << 30


def test_a_named_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "7")
    with pytest.raises(OSError, match="not a regular file"):
        LocalStore(tmp_path).read("7")
    with pytest.raises(OSError, match="not a regular file"):
        LocalStore("/dev").read("zero")


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/a/b", "/a/b"),
        ("a b", "a b"),
        ("file:/a/b", "/a/b"),
        ("file:///a/b%20c", "/a/b c"),
        ("FILE:///a", "/a"),
        ("s3://bucket/a", None),
        ("memory://a", None),
    ],
)
def test_local_path_of(location: str, path: str | None) -> None:
    assert local_path_of(location) == path


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:/a%20b/c%2Bd", "/a b/c+d"),
        ("file:///c", "/c"),
        ("/a%20b", "/a%20b"),
        ("s3a://bucket/a", None),
        # Named as data came, and refused where somebody gives it as a place.
        ("file:///in/AKIAABCDEFGHIJKLMNOP.json", "/in/AKIAABCDEFGHIJKLMNOP.json"),
    ],
)
def test_the_path_of_a_file_in_a_log(uri: str, path: str | None) -> None:
    assert local_file_of(uri) == path


def test_is_uri() -> None:
    assert is_uri("s3a://b/c")
    assert not is_uri("C:/x")
    assert not is_uri("a/b:c")


def test_unknown_scheme() -> None:
    with pytest.raises(UsageError, match="no store is known"):
        open_read_store("gopher://a/b")


# Writing where a rename does not replace its target (HDFS): no failure in between loses both contents.


def store_on(filesystem: FailingFileSystem) -> RemoteStore:
    return RemoteStore(filesystem, f"/{uuid.uuid4()}", "hdfs://test", HADOOP)


def calls_of_a_write() -> int:
    filesystem = FailingFileSystem()
    store = store_on(filesystem)
    store.write("offsets/7", b"old")
    filesystem.calls.clear()
    store.write("offsets/7", b"new")
    return len(filesystem.calls)


CASES = [
    (number, after, for_good)
    for number in range(1, calls_of_a_write() + 1)
    for after in (False, True)
    for for_good in (False, True)
]


@pytest.mark.parametrize(("number", "after", "for_good"), CASES)
def test_a_write_that_fails_leaves_the_old_or_the_new_content(number: int, after: bool, for_good: bool) -> None:
    filesystem = FailingFileSystem()
    store = store_on(filesystem)
    store.write("offsets/7", b"old")
    filesystem.calls.clear()
    filesystem.fails_at, filesystem.after, filesystem.for_good = number, after, for_good
    with pytest.raises(Lost):
        store.write("offsets/7", b"new")
    filesystem.fails_at = None

    assert store.read("offsets/7") in {b"old", b"new"}
    assert store.exists("offsets/7")
    assert store.size("offsets/7") == 3
    assert "7" in {entry.name for entry in store.list("offsets")}
    assert any("7" in folder.files for folder in store.folders("offsets"))

    store.write("offsets/7", b"newest")
    assert store.read("offsets/7") == b"newest"
    visible = [entry.name for entry in store.list("offsets") if not entry.name.startswith(".")]
    assert visible == ["7"]
    store.delete("offsets/7")
    assert not store.exists("offsets/7"), "a copy that was set aside came back"


@pytest.mark.parametrize("act", ["delete", "rename", "rename-onto"])
def test_what_a_killed_write_left_is_settled_first(act: str) -> None:
    filesystem = FailingFileSystem()
    store = store_on(filesystem)
    store.write("offsets/7", b"old")
    written = next(path for path in filesystem.store if path.endswith("/7"))
    # Not replace: the folder's random name can begin with a 7.
    filesystem.store[written.removesuffix("7") + ".7.replaced.tmp"] = filesystem.store.pop(written)
    assert store.read("offsets/7") == b"old"

    if act == "delete":
        store.delete("offsets/7")
    elif act == "rename":
        store.rename("offsets/7", "offsets/8")
        assert store.read("offsets/8") == b"old"
    else:
        store.write("offsets/8", b"other")
        with pytest.raises(FileExistsError):
            store.rename("offsets/8", "offsets/7")
        assert store.read("offsets/7") == b"old"
        return
    assert not store.exists("offsets/7")


def test_a_rename_that_the_server_did_not_do_is_an_error() -> None:
    class Deaf(FailingFileSystem):
        def mv(self, path1: str, path2: str, **_: Any) -> None:
            """As WebHDFS, whose refusal fsspec ignores."""

    store = store_on(Deaf())
    with pytest.raises(OSError, match="was not renamed"):
        store.write("a", b"1")
