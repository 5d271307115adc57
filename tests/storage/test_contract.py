"""What every store promises, tried on each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from slackwater.storage.protocols import FileTooLarge, WriteStore


def test_what_was_written_is_read(store: WriteStore) -> None:
    store.write("offsets/0", b"v1\n")
    assert store.read("offsets/0") == b"v1\n"
    assert store.exists("offsets/0")
    assert store.exists("offsets")
    assert store.size("offsets/0") == 3


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


def test_pieces_that_fail_leave_the_old_file(store: WriteStore) -> None:
    def failing() -> Iterator[bytes]:
        yield b"new"
        raise ValueError("the source failed")

    store.write("a/file", b"old")
    with pytest.raises(ValueError, match="the source failed"):
        store.write_pieces("a/file", failing())
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
    assert store.traits.remote == store.location.startswith(("s3", "hdfs:"))
    local = store.local_path("a")
    assert (local is None) or local.endswith("/a")
