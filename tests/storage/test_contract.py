"""What every store promises, tried on each of them."""

import gc
import time
from collections.abc import Iterator

import pytest

from slackwater.storage.below import Below
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import FileTooLarge, WriteStore


def test_what_was_written_is_read(store: WriteStore) -> None:
    store.write("offsets/0", b"v1\n")
    assert store.read("offsets/0") == b"v1\n"
    assert store.exists("offsets/0")
    assert store.exists("offsets")
    assert store.size("offsets/0") == 3


def test_the_time_of_a_file_is_that_of_its_last_write(store: WriteStore) -> None:
    before = time.time() * 1000
    store.write("a/file", b"old")
    first = store.modified_ms("a/file")
    store.write("a/file", b"new")
    second = store.modified_ms("a/file")
    assert first is not None
    assert second is not None
    # Some stores have whole seconds.
    assert before - 2000 < first <= second < time.time() * 1000 + 2000
    with pytest.raises(FileNotFoundError):
        store.modified_ms("a/no file")


def test_write_replaces(store: WriteStore) -> None:
    store.write("a", b"old and longer")
    store.write("a", b"new")
    assert store.read("a") == b"new"
    assert [entry.name for entry in store.list()] == ["a"]


@pytest.mark.parametrize("size", [0, 1, 3_000_000, 12_000_000])
def test_pieces_are_written_and_read_as_one_file(store: WriteStore, size: int) -> None:
    data = bytes(range(251)) * (size // 251) + bytes(size % 251)
    store.write("a/large", b"old")
    store.write_pieces("a/large", (data[start : start + 700_000] for start in range(0, size, 700_000)))
    assert store.read("a/large") == data
    assert b"".join(store.read_pieces("a/large")) == data
    assert all(len(piece) <= 1 << 20 for piece in store.read_pieces("a/large"))
    assert [entry.name for entry in store.list("a")] == ["large"]


@pytest.mark.parametrize("pieces", [1, 12])
def test_pieces_that_fail_leave_the_old_file(store: WriteStore, pieces: int) -> None:
    def failing() -> Iterator[bytes]:
        for _ in range(pieces):
            yield bytes(1 << 20)
        raise ValueError("the source failed")

    store.write("a/file", b"old")
    with pytest.raises(ValueError, match="the source failed"):
        store.write_pieces("a/file", failing())
    # A file that was left open is written when it is collected; an error there is a warning of pytest's, and fails.
    gc.collect()
    assert store.read("a/file") == b"old"
    assert [entry.name for entry in store.list("a")] == ["file"]


def test_pieces_of_an_absent_file(store: WriteStore) -> None:
    with pytest.raises(FileNotFoundError):
        list(store.read_pieces("nothing"))


def test_empty_file(store: WriteStore) -> None:
    store.write("a/empty", b"")
    assert store.read("a/empty") == b""
    assert [entry.name for entry in store.list("a")] == ["empty"]


def test_a_read_takes_no_more_than_its_limit(store: WriteStore) -> None:
    store.write("a", bytes(1000))
    assert store.read("a", 1000) == bytes(1000)
    with pytest.raises(FileTooLarge) as raised:
        store.read("a", 999)
    assert raised.value.limit == 999
    store.write("empty", b"")
    assert store.read("empty", 0) == b""


def test_absent(store: WriteStore) -> None:
    assert store.list() == ()
    assert store.list("nothing/here") == ()
    assert list(store.folders("nothing")) == []
    assert not store.exists("nothing")
    for missing in ("nothing", "nothing/here"):
        with pytest.raises(FileNotFoundError):
            store.read(missing)
        with pytest.raises(FileNotFoundError):
            store.size(missing)


def test_delete(store: WriteStore) -> None:
    store.write("a", b"1")
    store.delete("a")
    store.delete("a")
    assert not store.exists("a")


def test_rename_moves_one_file(store: WriteStore) -> None:
    store.write("a/1", b"one")
    store.rename("a/1", "b/c/2")
    assert store.read("b/c/2") == b"one"
    assert not store.exists("a/1")


def test_rename_never_replaces(store: WriteStore) -> None:
    store.write("a", b"one")
    store.write("b", b"two")
    with pytest.raises(FileExistsError):
        store.rename("a", "b")
    assert store.read("a") == b"one"
    assert store.read("b") == b"two"


def test_rename_of_nothing(store: WriteStore) -> None:
    with pytest.raises(FileNotFoundError):
        store.rename("nothing", "b")


def test_list_tells_files_from_directories(store: WriteStore) -> None:
    store.write("file", b"1")
    store.write(".hidden", b"1")
    store.write("directory/inside", b"1")
    listed = {entry.name: entry.is_dir for entry in store.list()}
    assert listed == {"file": False, ".hidden": False, "directory": True}


def test_folders_give_every_file_once(store: WriteStore) -> None:
    paths = ["top", "a/1", "a/b/2", "a/b/c/3", "a/b/c/d/e/4", "z/5", ".h/.6"]
    for path in paths:
        store.write(path, path.encode())
    found = {
        f"{folder.path}/{name}".lstrip("/"): size
        for folder in store.folders()
        for name, size in zip(folder.files, folder.sizes or [None] * len(folder.files), strict=True)
    }
    assert sorted(found) == sorted(paths)
    assert all(size in {None, len(path)} for path, size in found.items())
    directories = {folder.path: set(folder.directories) for folder in store.folders()}
    assert directories["a/b/c"] == {"d"}
    assert directories["a/b/c/d"] == {"e"}
    assert directories[""] == {"a", "z", ".h"}


def test_folders_below_a_path(store: WriteStore) -> None:
    store.write("a/b/1", b"1")
    store.write("ab/2", b"2")
    assert {folder.path for folder in store.folders("a")} == {"a", "a/b"}


def test_names_lead_nowhere_else(store: WriteStore) -> None:
    for path in ("../outside", "a/../../outside", "a\0b"):
        with pytest.raises(FileNotFoundError):
            store.read(path)
        assert not store.exists(path)


def test_names_that_need_care(store: WriteStore) -> None:
    for name in ("with space", "ümlaut", "per%20cent", "plus+", "a=b", "hash#tag", "quest?"):
        store.write(f"d/{name}", name.encode())
    assert {entry.name for entry in store.list("d")} == {
        "with space", "ümlaut", "per%20cent", "plus+", "a=b", "hash#tag", "quest?",
    }  # fmt: skip
    assert store.read("d/per%20cent") == b"per%20cent"


def test_location_and_traits(store: WriteStore) -> None:
    assert store.location
    assert store.traits.remote == store.location.startswith(("s3", "gs", "abfs", "hdfs:"))
    local = store.local_path("a")
    assert (local is None) or local.endswith("/a")


def test_of_two_that_create_a_file_one_fails(store: WriteStore) -> None:
    store.create("a/file", b"first")
    with pytest.raises(FileExistsError):
        store.create("a/file", b"second")
    assert store.read("a/file") == b"first"
    assert [entry.name for entry in store.list("a")] == ["file"]


def test_bytes_are_put_behind_what_a_file_has_where_the_store_can(store: WriteStore) -> None:
    if not store.traits.append:
        with pytest.raises(OSError, match="cannot extend"):
            store.append("a/file", b"1\n", 0)
        return
    store.append("a/file", b"1\n2\nto", 0)
    store.append("a/file", b"3\n", len(b"1\n2\n"))
    assert store.read("a/file") == b"1\n2\n3\n"


def test_files_are_copied_from_another_folder_of_the_store(store: WriteStore) -> None:
    for name in ("1", "2", "3"):
        store.write(f"old/state/0/{name}", name.encode())
    new = Below(store, "new")
    source = Below(store, "old")
    new.copy_from(source, "state/0", ["1", "3"])
    target = (
        Below(store, "other") if store.location.startswith("hdfs:") else open_write_store(f"{store.location}/other")
    )
    whole = source if store.location.startswith("hdfs:") else open_write_store(source.location)
    target.copy_from(whole, "state/0", ["1", "3"])
    for copy in (new, target):
        assert {entry.name for entry in copy.list("state/0")} == {"1", "3"}
        assert copy.read("state/0/3") == b"3"
    source.delete_tree()
    assert target.read("state/0/1") == b"1"


def test_a_tree_is_removed_and_nothing_else(store: WriteStore) -> None:
    for path in ("a/1", "a/b/2", "ab/3"):
        store.write(path, b"")
    store.delete_tree("a")
    store.delete_tree("a")
    assert not store.exists("a")
    assert store.exists("ab/3")


def test_every_file_has_the_time_of_its_last_write(store: WriteStore) -> None:
    for path in ("1", "a/b/2"):
        store.write(path, b"")
    assert dict(store.written_ms()) == {path: store.modified_ms(path) for path in ("1", "a/b/2")}


def test_a_name_is_no_pattern(object_location: str) -> None:
    store = open_write_store(object_location)
    for path in ("a[1]/x", "a1/x", "a*/x", "ab/x"):
        store.write(path, path.encode())
    store.rename("a[1]/x", "a[1]/y")
    assert (store.read("a[1]/y"), store.read("a1/x")) == (b"a[1]/x", b"a1/x")
    store.delete("a[1]/x")
    store.delete_tree("a[1]")
    store.delete_tree("a*")
    assert {folder.path for folder in store.folders() if folder.files} == {"a1", "ab"}
