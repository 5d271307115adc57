"""Names of objects that fsspec would take for patterns, which other objects match."""

from slackwater.storage.open import open_write_store


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
