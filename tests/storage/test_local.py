"""What only a local disk can promise or do."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from slackwater.core.errors import UsageError
from slackwater.storage.local import LocalStore
from slackwater.storage.open import is_uri, local_file_of, local_path_of, open_read_store
from slackwater.storage.protocols import FileTooLarge


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
