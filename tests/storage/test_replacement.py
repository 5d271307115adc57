"""Writing where a rename does not replace its target (HDFS): no failure in between loses both contents."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from slackwater.storage.remote import RemoteStore
from tests.support.hadoop import HADOOP, FailingFileSystem, Lost


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
