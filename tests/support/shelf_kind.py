"""A made-up kind of store: a folder of this machine that can do no more than an object store, as ``shelf:///folder``."""

from collections.abc import Iterator
from contextlib import contextmanager

from fsspec.implementations.local import LocalFileSystem

from slackwater.storage.protocols import OBJECT_STORE, WriteStore
from slackwater.storage.registry import STORES, StoreKind
from slackwater.storage.remote import RemoteStore

SCHEME = "shelf://"


class Shelf(StoreKind):
    """No rename and no append: a put is atomic, and nothing else is. Hadoop knows its folders as ``file:``."""

    def open(self, location: str, *, private: bool = False) -> WriteStore:  # noqa: ARG002 - it has no modes
        return RemoteStore(LocalFileSystem(auto_mkdir=True), location.removeprefix(SCHEME), location, self.traits)

    def spark_uri(self, location: str) -> str:
        return "file://" + location.removeprefix(SCHEME)


STORE = Shelf(("shelf",), OBJECT_STORE)


@contextmanager
def registered() -> Iterator[None]:
    STORES.register("shelf", STORE)
    yield
    STORES.unregister("shelf")
