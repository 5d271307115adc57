"""The check before a start reads all state of format 2 that Spark loads: also what only a header names."""

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from slackwater.checkpoint.damage import FoundDamage, find_damage
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.core.checkpoint import Depth
from slackwater.storage.local import LOCAL, LocalStore
from slackwater.storage.protocols import READ_LIMIT
from tests.checkpoint.cases import checkpoint_folder, cut_after
from tests.support.sabotage import without_checksums

CASE = ("4.3.0", "agg_cpv2_rocksdb_changelog")
FAILED_ATTEMPT = "ffffffff-0000-0000-0000-000000000000"


class RemoteStore(LocalStore):
    """Local files that each take a request to be read."""

    traits = LOCAL._replace(remote=True)


class CountingStore(LocalStore):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: Counter[str] = Counter()

    def read(self, path: str, limit: int = READ_LIMIT) -> bytes:
        self.reads[path] += 1
        return super().read(path, limit)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Batch 7 is committed; a partition loads ``6_<id>.zip`` and its tables, ``7_<id>`` and ``8_<id>.changelog``."""
    folder = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), folder)
    cut_after(folder, 7)
    assert found_in(folder) == FoundDamage()
    return folder


def found_in(checkpoint: Path) -> FoundDamage:
    return find_damage(open_checkpoint(LocalStore(checkpoint)), "start")


def only(checkpoint: Path, pattern: str) -> Path:
    [file] = (checkpoint / "state/0/0").glob(pattern)
    return file


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0x40
    file.write_bytes(bytes(data))


@pytest.mark.parametrize("pattern", ["8_*.changelog", "7_*.changelog", "6_*.zip", "SSTs/000008-*.sst"])
def test_a_flipped_bit_of_what_is_loaded(checkpoint: Path, pattern: str) -> None:
    file = only(checkpoint, pattern)
    flip(file)

    [damage] = found_in(checkpoint).damage

    assert (damage.path, damage.kind) == (str(file.relative_to(checkpoint)), "checksum")


@pytest.mark.parametrize("pattern", ["5_*.changelog", "6_*.changelog"])
def test_what_is_not_loaded_is_for_the_thorough_check(checkpoint: Path, pattern: str) -> None:
    flip(only(checkpoint, pattern))

    assert found_in(checkpoint) == FoundDamage()


def test_a_file_of_a_failed_attempt_does_not_stand_in_for_the_lost_one(checkpoint: Path) -> None:
    lost = only(checkpoint, "7_*.changelog")
    lost.rename(lost.parent / f"7_{FAILED_ATTEMPT}.changelog")
    for checksum in lost.parent.glob(f"*{lost.name}.crc*"):
        checksum.unlink()

    [damage] = found_in(checkpoint).damage

    assert (damage.path, damage.kind, damage.expected) == ("state/0/0", "missing", lost.name)


def test_where_the_header_is_damaged_the_older_files_count_as_not_read(checkpoint: Path) -> None:
    newest = only(checkpoint, "8_*.changelog")
    newest.write_bytes(newest.read_bytes()[:-3])

    found = found_in(checkpoint)

    assert [item.path for item in found.damage] == [str(newest.relative_to(checkpoint))]
    assert [Path(path).name.partition("_")[0] for path in found.unread.paths] == ["6", "6", "7"]


def test_a_changelog_of_another_version_with_its_checksums(checkpoint: Path) -> None:
    newest, older = only(checkpoint, "8_*.changelog"), only(checkpoint, "7_*.changelog")
    for file in list(older.parent.glob(f"*{older.name}*")):
        shutil.copy(file, newest.parent / file.name.replace(older.name, newest.name))

    [damage] = found_in(checkpoint).damage

    assert (damage.path, damage.kind) == (str(newest.relative_to(checkpoint)), "foreign")


def test_without_checksums_the_changes_are_decompressed(checkpoint: Path) -> None:
    without_checksums(checkpoint)
    for checksum in checkpoint.glob("state/0/*/*.crc"):
        checksum.unlink()
    assert found_in(checkpoint).damage == ()
    flip(only(checkpoint, "7_*.changelog"))

    [damage] = found_in(checkpoint).damage

    assert damage.path.startswith("state/0/0/7_")


def test_on_a_remote_store_all_that_may_be_loaded_is_named_as_not_read(checkpoint: Path) -> None:
    opened = open_checkpoint(RemoteStore(checkpoint))

    unread = find_damage(opened, "start").unread

    names = {Path(path).name.partition("_")[0] for path in unread.paths}
    assert (names, unread.verified_by_store) == ({"6", "7", "8"}, True)
    assert find_damage(opened).unread.paths == ()


@pytest.mark.parametrize(("depth", "versions"), [("start", {"6", "7", "8"}), ("quick", {"8"})])
def test_each_file_is_read_once_and_for_a_status_only_the_newest(
    checkpoint: Path, depth: Depth, versions: set[str]
) -> None:
    store = CountingStore(checkpoint)

    find_damage(open_checkpoint(store), depth)

    reads = {path: times for path, times in store.reads.items() if path.endswith((".changelog", ".zip"))}
    assert {Path(path).name.partition("_")[0] for path in reads} == versions
    assert set(reads.values()) == {1}


def test_a_status_does_without_the_libraries_that_decompress(checkpoint: Path) -> None:
    program = (
        "import sys; from slackwater.checkpoint.damage import find_damage;"
        "from slackwater.checkpoint.opened import open_checkpoint; from slackwater.storage.local import LocalStore;"
        "find_damage(open_checkpoint(LocalStore(sys.argv[1])));"
        "print([name for name in ('numpy', 'pyarrow') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, checkpoint], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
