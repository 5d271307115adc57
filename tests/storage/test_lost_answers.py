"""S3 has done what was asked, and its answer is lost: what was written is there, whatever the client is left with."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from slackwater.core.sink import Owner
from slackwater.sinks.common.directory import claim, read_owner
from slackwater.storage.local import LocalStore
from slackwater.storage.open import open_write_store
from slackwater.storage.protocols import WriteStore
from tests.sinks.test_swap_files_on_stores import Scene
from tests.support.memory import folder_in_memory
from tests.support.s3 import forget_clients
from tests.support.s3_proxy import LosingProxy, losing_proxy

LARGE = bytes(12 << 20)
"""Uploaded in parts."""
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")


@pytest.fixture
def proxy(s3_location: str, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[LosingProxy]:
    assert s3_location
    with losing_proxy(s3_endpoint) as between:
        monkeypatch.setenv("AWS_ENDPOINT_URL", between.endpoint)
        forget_clients()
        yield between


@pytest.fixture
def store(s3_location: str, proxy: LosingProxy) -> WriteStore:
    assert proxy.lost == 0
    return open_write_store(s3_location)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        (lambda store: store.write("a", b"new"), {"a": b"new", "b": b"b"}),
        (lambda store: store.write_pieces("a", iter((b"n", b"ew"))), {"a": b"new", "b": b"b"}),
        (lambda store: store.delete("a"), {"b": b"b"}),
        (lambda store: store.rename("b", "c"), {"a": b"old", "c": b"b"}),
        (lambda store: claim(store, OWNER), None),
        (lambda store: store.delete_tree(), {}),
    ],
)
def test_a_change_is_sent_again(
    store: WriteStore, proxy: LosingProxy, change: Callable[[WriteStore], object], found: dict[str, bytes] | None
) -> None:
    store.write("a", b"old")
    store.write("b", b"b")
    proxy.lose_first_answers()
    change(store)
    assert proxy.lost >= 1
    if found is None:
        assert read_owner(store) == OWNER
    else:
        assert _held(store) == found


def test_a_file_that_is_uploaded_in_parts_is_whole(store: WriteStore, proxy: LosingProxy) -> None:
    proxy.lose_first_answers()
    store.write_pieces("large", iter((LARGE, b"end")))
    assert proxy.lost >= 1
    assert store.read("large") == LARGE + b"end"


@pytest.mark.thorough
def test_a_store_that_answers_nothing_more_is_an_error(store: WriteStore, proxy: LosingProxy) -> None:
    proxy.lose_from(1)
    with pytest.raises(OSError, match=r"\w"):
        store.write("a", b"new")
    proxy.lose_none()
    assert _held(store) == {"a": b"new"}


@pytest.mark.thorough
@pytest.mark.parametrize("kept", [False, True])
def test_a_swap_is_finished_or_undone(s3_location: str, proxy: LosingProxy, *, kept: bool) -> None:
    with folder_in_memory() as folder:
        scene = Scene(folder, s3_location, kept=kept)
        old = scene.visible()
        proxy.lose_first_answers()
        scene.make()
        new, swapped = scene.visible(), scene.held()
        scene.undo()
        assert (scene.visible(), _output(scene.held())) == (old, _output(scene.before))
        scene.make()
        assert (scene.visible(), _output(scene.held())) == (new, _output(swapped))
        assert proxy.lost > 10


@pytest.mark.thorough
@pytest.mark.parametrize("number", [1, 7])
def test_a_cut_goes_on_after_its_answers_were_lost(
    s3_location: str, proxy: LosingProxy, number: int, tmp_path: Path
) -> None:
    scene = Scene(tmp_path, s3_location, kept=True)
    backup = LocalStore(tmp_path / "cut")
    cut = scene.output.cut_after(4, scene.recorded)
    act = partial(scene.output.cut, cut, scene.recorded, backup)
    proxy.lose_from(number)
    with pytest.raises(OSError, match=r"\w"):
        act()
    proxy.lose_none()
    act()
    assert (scene.output.last_written(), scene.output.damage("all")) == (4, ())
    scene.output.restore(cut, backup)
    assert scene.held() == scene.before


def _held(store: WriteStore) -> dict[str, bytes]:
    return {entry.name: store.read(entry.name) for entry in store.list()}


def _output(held: dict[str, bytes]) -> dict[str, bytes]:
    return {path: data for path, data in held.items() if path.startswith("a b/")}
