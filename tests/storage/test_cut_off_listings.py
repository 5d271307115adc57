"""A page of a listing that S3 does not send whole: it is sent again, or the listing fails; it is never shorter."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import pytest

from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from slackwater.storage.s3_filesystem import S3FileSystem
from tests.support.s3 import forget_clients
from tests.support.s3_proxy import PAGE_FAULTS, Fault, LosingProxy, losing_proxy

NAMES = frozenset(f"state/{number}" for number in range(7))
LISTINGS: tuple[Callable[[WriteStore], set[str]], ...] = (
    lambda store: {f"state/{entry.name}" for entry in store.list("state")},
    lambda store: {f"{folder.path}/{name}" for folder in store.folders() for name in folder.files},
    lambda store: {path for path, _ in store.written_ms()},
)
AFTER_ATTEMPTS = frozenset({Fault.CUT_OFF_UNNOTICED, Fault.EMPTY})
"""Only the service's own library sends these again, which makes one attempt here."""


@pytest.fixture
def proxy(s3_location: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    """Between this process and S3. What fails is sent again once, by s3fs, which pauses shortly."""
    assert s3_location
    with losing_proxy(s3_endpoint) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.endpoint)
        monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
        monkeypatch.setattr(S3FileSystem, "retries", 2)
        forget_clients()
        yield between


@pytest.fixture
def store(s3_location: str, proxy: LosingProxy) -> WriteStore:
    """Seven files in a folder, listed in pages of three names."""
    store = open_write_store(s3_location)
    for name in NAMES:
        store.write(name, b"data")
    proxy.page_size = 3
    return store


def test_a_page_is_sent_again(store: WriteStore, proxy: LosingProxy) -> None:
    for fault, listing in product(PAGE_FAULTS, LISTINGS):
        proxy.spoil_later_pages(fault, times=1)
        try:
            found = listing(store)
        except OSError:
            assert fault in AFTER_ATTEMPTS
        else:
            assert found == NAMES, fault
    assert proxy.lost == len(PAGE_FAULTS) * len(LISTINGS)


def test_a_page_that_never_arrives_is_an_error(store: WriteStore, proxy: LosingProxy) -> None:
    for fault, listing in product(PAGE_FAULTS, LISTINGS):
        proxy.spoil_later_pages(fault)
        with pytest.raises(OSError, match=r"\w") as raised:
            listing(store)
        assert raised.value.filename == store.location
        proxy.spoil_nothing()
        assert listing(store) == NAMES


def test_an_object_that_is_not_deleted_is_an_error(store: WriteStore, proxy: LosingProxy) -> None:
    proxy.spoils = lambda method, path: Fault.NOT_DELETED if method == "POST" and "delete" in path else None
    with pytest.raises(OSError, match="1 objects were not deleted; a: InternalError"):
        store.delete_tree()
    proxy.spoil_nothing()
    store.delete_tree()
    assert store.list() == ()


@pytest.mark.thorough
def test_a_listing_of_more_names_than_a_page_of_the_server_has(store: WriteStore, proxy: LosingProxy) -> None:
    more = {f"state/{number}" for number in range(1100)}
    with ThreadPoolExecutor(16) as pool:
        tuple(pool.map(partial(store.write, data=b"data"), more))
    proxy.page_size = None
    for listing in LISTINGS:
        proxy.spoil_later_pages(Fault.CUT_OFF, times=1)
        assert listing(store) == more
        proxy.spoil_later_pages(Fault.SLOW_DOWN)
        with pytest.raises(OSError, match="reduce your request rate"):
            listing(store)
    assert proxy.lost >= 2 * len(LISTINGS)
