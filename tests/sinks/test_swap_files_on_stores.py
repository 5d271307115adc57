"""Outputs of files on stores that cannot exchange directories, swapped by their manifest: killed at each change."""

import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import Owner
from slackwater.sinks import files
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.common.staging import MARK
from slackwater.sinks.files.sink import FilesOutput
from slackwater.storage.open import open_write_store
from tests.sinks.manifests import MANIFEST, spark_reads, write_batches
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code
from tests.support.kill_points import kill_points
from tests.support.memory import folder_in_memory
from tests.support.s3 import before_requests
from tests.support.shelf_kind import SCHEME, registered

OPERATION = "20260105T093000-1a2b3c"
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
ASIDE = f".a b.slackwater-{OPERATION}"
LAST, STAGED, KEPT = 12, 9, 10
CHANGING = frozenset({"PUT", "POST", "DELETE"})
SEED = int(os.environ.get("SLACKWATER_TEST_SEED", random.randrange(2**32)))
EVERY = int(os.environ.get("SLACKWATER_TEST_EVERY", "11"))
Bytes = Mapping[str, bytes]


class Scene(SwapScene):
    """An output with batches 0 to LAST on a store, and a staged one: with batches of its own, or with 0 to KEPT."""

    def __init__(self, folder: Path, location: str, *, kept: bool) -> None:
        self.folder, self.location = folder, location
        # Elsewhere a kill takes seconds, because all files are put back: each run takes a part, another one each time.
        step = min(3, EVERY) if location.startswith(SCHEME) else EVERY
        self.every = range(1 + SEED % step, sys.maxsize, step)
        self.store = open_write_store(location)
        self._local = folder / "local"
        recorded = write_batches(self._local / "a b", LAST, 10)
        self.recorded = {batch: self._at_location(entry) for batch, entry in recorded.items()}
        self._upload(self._local / "a b")
        self.output.claim(OWNER)
        self.store.write("a b/notes.txt", b"of another program")
        self.output.stage(OPERATION, KEPT if kept else -1, self.recorded)
        if kept:
            self._write_two_more()
        else:
            write_batches(self._local / ASIDE, STAGED, 4, purged=True, partitioned=True)
            self._upload(self._local / ASIDE)
        self.output.staged(OPERATION).claim(OWNER)
        self.last = KEPT + 2 if kept else STAGED
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)
        self.before = self.held()

    @property
    def output(self) -> FilesOutput:
        return FilesOutput(f"{self.location}/a b")

    def held(self) -> dict[str, bytes]:
        return {
            path: self.store.read(path)
            for folder in self.store.folders()
            for path in (f"{folder.path}/{name}".lstrip("/") for name in folder.files)
        }

    def restore(self, state: Bytes) -> None:
        """Put the files on the store back, and remove the record of the swap."""
        now = self.held()
        for path in now.keys() - state.keys():
            self.store.delete(path)
        for path, data in state.items():
            if now.get(path) != data:
                self.store.write(path, data)
        self.backup.delete("swap.json")

    def visible(self) -> set[bytes]:
        """What the files hold that Spark reads; they are all in the directory of the output."""
        held = self.held()
        entries = {
            name: data.decode()
            for path, data in held.items()
            for folder, _, name in [path.rpartition("/")]
            if folder == f"a b/{MANIFEST}"
        }
        uris = [json.loads(line)["path"] for line in spark_reads(entries)]
        return {held[f"a b/{self.output.relative_path(uri)}"] for uri in uris}

    def _upload(self, folder: Path) -> None:
        named = b"".join(path.read_bytes() for path in (folder / MANIFEST).iterdir())
        for path in folder.rglob("*"):
            if path.is_file() and (path.parent.name == MANIFEST or f"/{path.name}".encode() in named):
                self.store.write(path.relative_to(self._local).as_posix(), self._at_location(path.read_text()).encode())

    def _at_location(self, text: str) -> str:
        return text.replace(self._local.as_uri(), self.location)

    def _write_two_more(self) -> None:
        for batch in (KEPT + 1, KEPT + 2):
            name = f"day=0/part-staged-{batch}.json"
            content = f"rows of batch {batch} once more\n".encode()
            self.store.write(f"{ASIDE}/{name}", content)
            uri = f"{self.location}/{ASIDE.replace(' ', '%20')}/{name}"
            line = {"path": uri, "size": len(content), "isDir": False, "modificationTime": 0, "action": "add"}
            self.store.write(f"{ASIDE}/{MANIFEST}/{batch}", f"v1\n{json.dumps(line)}".encode())


@contextmanager
def counted(folder: Path, location: str) -> Iterator[None]:
    """Each request that changes a store counts as a change to a file, for ``kill_points``."""

    def count(method: str, _: str) -> None:
        if method in CHANGING:
            sys.audit("os.mkdir", str(folder / "object"), 0o700, -1)

    def sent(event: str, arguments: tuple[object, ...]) -> None:
        if event == "http.client.send" and isinstance(arguments[1], bytes):
            count(arguments[1].partition(b" ")[0].decode("latin-1"), "")

    if location.startswith("s3a:"):
        with before_requests(count):
            yield
        return
    if location.startswith("hdfs:"):
        sys.addaudithook(sent)
    yield


@pytest.fixture(
    params=[
        "shelf",
        pytest.param("s3", marks=pytest.mark.thorough),
        pytest.param("hdfs", marks=[pytest.mark.thorough, pytest.mark.spark]),
    ]
)
def place(request: pytest.FixtureRequest) -> Iterator[tuple[Path, str]]:
    """A folder of this machine, and a location where nothing is yet."""
    with folder_in_memory() as folder, registered():
        if request.param == "shelf":
            yield folder, f"{SCHEME}{folder}/store"
        else:
            yield folder, request.getfixturevalue(f"{request.param}_location")


@pytest.fixture(params=["fresh", "kept"])
def scene(place: tuple[Path, str], request: pytest.FixtureRequest) -> Scene:
    """A staged output that is about to be swapped in."""
    return Scene(*place, kept=request.param == "kept")


def test_swapped_and_swapped_back(scene: Scene) -> None:
    old, entries = scene.visible(), scene.output.log()
    assert entries is not None
    for _ in range(2):
        scene.make()
        assert scene.output.last_written() == scene.last
        assert (scene.output.damage("all"), scene.output.orphans()) == ((), ("notes.txt",))
        assert scene.output.owner() == OWNER
        assert json.loads(scene.store.read(f"{ASIDE}/{MARK}"))["state"] == "replaced"
    new = scene.visible()
    assert new != old
    assert len(new) == len([batch for batch in range(scene.last + 1) if batch % 3 != 2 or batch > KEPT])

    # The stream has continued before the swap is undone.
    name, content = f"day=1/part-{scene.last + 1}.json", b"rows of the next batch\n"
    scene.store.write(f"a b/{name}", content)
    line = {"path": f"{scene.location}/a%20b/{name}", "size": len(content), "isDir": False, "modificationTime": 0}
    scene.store.write(f"a b/{MANIFEST}/{scene.last + 1}", f"v1\n{json.dumps(line)}".encode())
    for _ in range(2):
        scene.undo()
        held = scene.held()
        assert _real(held) == _real(scene.before)
        assert f"{ASIDE}/{name}" in held
    scene.make()
    assert (scene.output.last_written(), scene.visible()) == (scene.last + 1, new | {content})


@pytest.mark.parametrize("action", ["swap", "undo"])
def test_killed_before_each_change(scene: Scene, action: str) -> None:
    old = scene.visible()
    scene.make()
    new, swapped = scene.visible(), scene.held()
    record = scene.backup.read("swap.json")

    def prepare() -> None:
        scene.restore(scene.before if action == "swap" else swapped)
        if action == "undo":
            scene.backup.write("swap.json", record)

    def act() -> None:
        with counted(scene.folder, scene.location):
            scene.make() if action == "swap" else scene.undo()

    points = 0
    for points in kill_points(act, scene.folder, prepare, every=scene.every):
        assert scene.visible() in (old, new), f"killed before change {points}"
        assert scene.store.read("a b/notes.txt") == b"of another program"
        if points % 2:
            scene.make()
            assert scene.visible() == new, f"killed before change {points}, then swapped"
            assert (scene.output.last_written(), scene.output.damage("all")) == (scene.last, ())
            assert _real(scene.held()) == _real(swapped)
        scene.output.check_swap_back(scene.swap, scene.backup)
        scene.undo()
        assert _real(scene.held()) == _real(scene.before), f"killed before change {points}, then undone"
    assert points > 10, f"SLACKWATER_TEST_SEED={SEED}"


def test_staging_and_discarding_killed_before_each_change(place: tuple[Path, str]) -> None:
    scene = Scene(*place, kept=True)
    whole = scene.held()

    def stage() -> None:
        with counted(scene.folder, scene.location):
            scene.output.stage(OPERATION, KEPT, scene.recorded)

    def discard() -> None:
        with counted(scene.folder, scene.location):
            scene.output.discard(OPERATION, "staged")

    for _ in kill_points(stage, scene.folder, lambda: scene.output.discard(OPERATION, "staged"), every=scene.every):
        scene.output.stage(OPERATION, KEPT, scene.recorded)
        assert scene.output.staged(OPERATION).last_written() == KEPT
    for _ in kill_points(discard, scene.folder, lambda: scene.restore(whole), every=scene.every):
        scene.output.discard(OPERATION, "staged")
        assert scene.held() == _real(whole)
    scene.restore(whole)
    scene.make()
    scene.output.discard(OPERATION, "staged")
    scene.output.check_swap_back(scene.swap, scene.backup)
    scene.output.discard(OPERATION, "replaced")
    assert scene.held().keys() == _real(scene.held()).keys()
    assert scene.output.damage("all") == ()
    assert {entry.name for entry in scene.store.list()} == {"a b"}


class TestRefused:
    """Before anything is changed; on one kind of store, as no store is asked for more than its files."""

    @pytest.fixture
    def scene(self) -> Iterator[Scene]:
        with folder_in_memory() as folder, registered():
            yield Scene(folder, f"{SCHEME}{folder}/store", kept=True)

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            (lambda scene: scene.store.delete(f"{ASIDE}/day=0/part-staged-11.json"), "staged-damaged"),
            (lambda scene: scene.store.write(f"{ASIDE}/day=0/part-staged-11.json", b"torn"), "staged-damaged"),
            (lambda scene: scene.store.delete(f"{ASIDE}/{MANIFEST}/11"), "staged-damaged"),
            (lambda scene: scene.store.write(f"{ASIDE}/{MANIFEST}/12", b"v1\n{"), "staged-damaged"),
            (lambda scene: scene.store.delete(f"{ASIDE}/{MARK}"), "staged-foreign"),
            (lambda scene: scene.output.discard(OPERATION, "staged"), "staged-absent"),
            (lambda scene: scene.store.delete(f"{ASIDE}/_slackwater.json"), "swap-foreign"),
            (lambda scene: scene.store.write(f"a b/{MANIFEST}/13", b"v1"), "swap-moved"),
            (lambda scene: scene.store.write("a b/day=0/part-staged-11.json", b"of another"), "swap-unsupported"),
        ],
    )
    def test_a_swap(self, scene: Scene, change: Callable[[Scene], object], code: str) -> None:
        change(scene)
        before = scene.held()
        with raises_code(Refused, code):
            scene.make()
        assert scene.held() == before

    @pytest.mark.parametrize(
        "change",
        [
            lambda scene: scene.store.delete(f"{ASIDE}/part-12.json"),
            lambda scene: scene.store.delete(f"{ASIDE}/_slackwater_replaced/{MANIFEST}/11"),
            lambda scene: scene.output.discard(OPERATION, "replaced"),
        ],
    )
    def test_an_undo(self, scene: Scene, change: Callable[[Scene], object]) -> None:
        scene.make()
        change(scene)
        before = scene.held()
        with raises_code(Refused, "backup-damaged"):
            scene.output.check_swap_back(scene.swap, scene.backup)
        assert scene.held() == before

    def test_batches_that_the_output_does_not_have(self, scene: Scene) -> None:
        scene.output.discard(OPERATION, "staged")
        with raises_code(Refused, "stage-incomplete"):
            scene.output.stage(OPERATION, LAST + 1, scene.recorded)


def test_undoing_a_swap_that_never_started_changes_nothing(scene: Scene) -> None:
    scene.undo()
    assert scene.held() == scene.before


def test_the_sink_and_the_output_name_one_place() -> None:
    sink, output = files("json", "s3://bucket/data/out"), FilesOutput("s3a://bucket/data/out")
    staged = f"s3://bucket/data/.out.slackwater-{OPERATION}"
    assert sink.staged(OPERATION).path == staged
    assert open_output(sink.staged(OPERATION).identity()).location == output.staged(OPERATION).location == staged


def _real(held: Bytes) -> dict[str, bytes]:
    return {path: data for path, data in held.items() if path.startswith("a b/")}
