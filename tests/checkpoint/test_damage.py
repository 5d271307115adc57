"""Cheap and thorough checks of a checkpoint: silent on what Spark wrote, and not silent on any recorded edit."""

import random
import re
import shutil
from itertools import combinations
from pathlib import Path

import pytest

from slackwater.checkpoint.damage import find_damage
from slackwater.checkpoint.opened import open_checkpoint
from slackwater.core.checkpoint import Depth
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, NAMES, checkpoint_folder, cut_after
from tests.support.sabotage import EDITS, damaged_copies, files_below, without_checksums

SEED = 20_261_121


DEPTHS: tuple[Depth, ...] = ("quick", "all")


CASE = ("4.3.0", "join_inner_hdfs")
LZ4_HEADER_BYTES = 21
"""Before each block, and of the empty block that ends a stream."""
WITHOUT_CHECKSUMS = ("empty", "cut-third", "cut-most", "noise", "directory", "remove")
"""Edits that show in the bytes or names of every kind of file."""


@pytest.mark.parametrize(("version", "case"), CASES, ids=NAMES)
def test_nothing_is_found_where_spark_stopped_cleanly(version: str, case: str) -> None:
    store = LocalStore(checkpoint_folder(version, case))
    assert find_damage(open_checkpoint(store)).damage == ()
    assert find_damage(open_checkpoint(store), "start").damage == ()
    assert find_damage(open_checkpoint(store), "all").damage == ()


def test_an_empty_folder_and_a_fresh_checkpoint_are_sound(tmp_path: Path) -> None:
    for depth in DEPTHS:
        assert find_damage(open_checkpoint(LocalStore(tmp_path / "nothing")), depth).damage == ()
    (tmp_path / "metadata").write_text('{"id":"x"}')
    (tmp_path / "offsets").mkdir()
    for depth in DEPTHS:
        assert find_damage(open_checkpoint(LocalStore(tmp_path)), depth).damage == ()


def read_at_start(checkpoint: Path) -> list[str]:
    """What Spark opens of the join when it starts: newest log entries, what each source read, and state version 6."""
    state = [
        str(path.relative_to(checkpoint))
        for path in files_below(checkpoint / "state")
        if path.name in {"6.delta", "5.snapshot"}
    ]
    sources = [
        str(path.relative_to(checkpoint))
        for path in files_below(checkpoint / "sources")
        if path.name in {"2.compact", "3", "4", "4.compact"}
    ]
    assert len(sources) > len(["sources/0/4", "sources/1/4"])
    return ["metadata", "offsets/5", "offsets/4", "commits/5", *sources, *state]


@pytest.mark.parametrize(
    ("edit", "checksums"), [*((edit, True) for edit in EDITS), *((edit, False) for edit in WITHOUT_CHECKSUMS)]
)
def test_damage_of_what_the_next_start_reads_is_found(edit: str, checksums: bool, tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), checkpoint)
    if not checksums:
        without_checksums(checkpoint)
    paths = read_at_start(checkpoint)
    assert len(paths) > 12
    chance = random.Random(SEED)
    for name in paths:
        path = checkpoint / name
        saved = {other: other.read_bytes() for other in files_below(path.parent) if other.parent == path.parent}
        EDITS[edit](path, chance, files_below(checkpoint))
        changed = not path.is_file() or path.read_bytes() != saved[path]
        if changed and not is_harmless(edit, name, checksums=checksums):
            assert find_damage(open_checkpoint(LocalStore(checkpoint))).damage, (
                f"seed {SEED}: {edit} of {name} was not found"
            )
        if path.is_dir():
            path.rmdir()
        for other, data in saved.items():
            other.write_bytes(data)


def test_one_bit_of_state_is_found_before_a_start_without_checksums_beside(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), checkpoint)
    without_checksums(checkpoint)
    assert find_damage(open_checkpoint(LocalStore(checkpoint)), "start").damage == ()
    chance, tried = random.Random(SEED), 0
    for name in (name for name in read_at_start(checkpoint) if name.startswith("state/")):
        path = checkpoint / name
        whole = path.read_bytes()
        if len(whole) <= 2 * LZ4_HEADER_BYTES:
            continue  # a stream without a row has headers only
        place = chance.randrange(LZ4_HEADER_BYTES, len(whole) - LZ4_HEADER_BYTES)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1 << chance.randrange(8)]) + whole[place + 1 :])
        tried += 1
        found = [item.path for item in find_damage(open_checkpoint(LocalStore(checkpoint)), "start").damage]
        path.write_bytes(whole)
        assert found == [name], f"seed {SEED}: bit at byte {place} of {name}"
    assert tried > 5


def is_harmless(edit: str, name: str, *, checksums: bool) -> bool:
    """A killed run leaves a batch without its commit, and a version without a snapshot is loaded from its deltas."""
    if checksums:
        return False
    return (edit, name) == ("remove", "commits/5") or (edit in {"remove", "directory"} and name.endswith(".snapshot"))


def test_thorough_finds_damage_anywhere(tmp_path: Path) -> None:
    original = checkpoint_folder(*CASE)
    truth = {path.relative_to(original): path.read_bytes() for path in files_below(original)}
    tried = 0
    for edit, path, checkpoint in damaged_copies(original, tmp_path, SEED, edits_per_file=1):
        relative = path.relative_to(checkpoint)
        if path.is_file() and path.read_bytes() == truth[relative]:
            continue  # an empty file that was cut, or a swap of equals
        tried += 1
        assert find_damage(open_checkpoint(LocalStore(checkpoint)), "all").damage, (
            f"seed {SEED}: {edit} of {relative} was not found"
        )
    assert tried > 50


def test_older_state_is_for_the_thorough_check(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), checkpoint)
    old = checkpoint / "state/0/0/left-keyToNumValues/3.delta"
    old.write_bytes(old.read_bytes()[:-3])
    assert find_damage(open_checkpoint(LocalStore(checkpoint))).damage == ()
    assert [item.path for item in find_damage(open_checkpoint(LocalStore(checkpoint)), "all").damage] == [
        str(old.relative_to(checkpoint))
    ]


def test_the_plan_before_the_newest_is_needed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), checkpoint)
    for folder in ("offsets", "commits"):
        for batch in range(5):
            (checkpoint / folder / str(batch)).unlink()
            (checkpoint / folder / f".{batch}.crc").unlink()
    assert [(item.path, item.kind) for item in find_damage(open_checkpoint(LocalStore(checkpoint))).damage] == [
        ("offsets/4", "missing")
    ]


def test_the_quick_check_reads_500_files_of_the_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each of 200 partitions with 4 stores."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder(*CASE), checkpoint)
    for partition in range(2, 200):
        shutil.copytree(checkpoint / "state/0/0", checkpoint / f"state/0/{partition}")
    for path in (checkpoint / "offsets").glob("[0-9]*"):
        text = path.read_text()
        path.write_text(text.replace('shuffle.partitions":"2"', 'shuffle.partitions":"200"'))
        (path.parent / f".{path.name}.crc").unlink()
    opened: list[str] = []
    read = LocalStore.read

    def noted(store: LocalStore, path: str, *limit: int) -> bytes:
        opened.append(path)
        return read(store, path, *limit)

    monkeypatch.setattr(LocalStore, "read", noted)
    assert find_damage(open_checkpoint(LocalStore(checkpoint))).damage == ()
    state = [path for path in opened if re.fullmatch(r"state/0/\d+/.*(delta|snapshot)", path)]
    assert len(state) == 500


def read_twice(folder: Path, *, logs: int) -> LocalStore:
    """A checkpoint of a query that reads two sources, the first of them twice, with so many logs of sources."""
    shutil.copytree(checkpoint_folder(*CASE), folder)
    for entry in (folder / "offsets").iterdir():
        if entry.name.isdigit():
            entry.write_text(entry.read_text() + "\n" + entry.read_text().splitlines()[-1])
            (folder / "offsets" / f".{entry.name}.crc").unlink()
    if logs == 1:
        shutil.rmtree(folder / "sources" / "1")
    return LocalStore(folder)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_dataframe_that_is_read_twice_has_one_log(tmp_path: Path, depth: Depth) -> None:
    opened = open_checkpoint(read_twice(tmp_path / "whole", logs=2))

    assert find_damage(opened, depth, source_logs={"0": "0", "1": "0", "2": "1"}).damage == ()
    # Without a record of the query it is unknown which sources share a log.
    assert find_damage(opened, depth).damage == ()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_log_that_is_lost_is_found_beside_a_dataframe_that_is_read_twice(tmp_path: Path, depth: Depth) -> None:
    opened = open_checkpoint(read_twice(tmp_path / "lost", logs=1))

    found = find_damage(opened, depth, source_logs={"0": "0", "1": "0", "2": "1"}).damage

    assert [item.path for item in found] == ["sources/1/4"]


@pytest.mark.parametrize(
    ("entry", "old", "new"),
    [
        ("sources/0/6", '"batchId":6', '"batchId":5'),
        ("sources/0/5.compact", '"batchId":5', '"batchId":4'),
        ("sources/0/5.compact", '"batchId":2', '"batchId":4'),
    ],
)
def test_files_under_the_number_of_another_entry(tmp_path: Path, entry: str, old: str, new: str) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", "file_json_to_parquet_filesink"), checkpoint)
    without_checksums(checkpoint)
    file = checkpoint / entry
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))

    for depth in DEPTHS:
        [damage] = find_damage(open_checkpoint(LocalStore(checkpoint)), depth).damage
        assert (damage.path, damage.kind) == (entry, "foreign")


def test_an_entry_without_files_is_not_that_of_another(tmp_path: Path) -> None:
    """Some write an empty entry in place of a lost one, to let Spark start."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", "file_json_to_parquet_filesink"), checkpoint)
    without_checksums(checkpoint)
    (checkpoint / "sources/0/6").write_text("v1")

    assert find_damage(open_checkpoint(LocalStore(checkpoint))).damage == ()


def test_a_changelog_of_an_older_version_under_the_name_of_a_newer_one(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", "agg_cpv2_rocksdb_changelog"), checkpoint)
    without_checksums(checkpoint)
    # Spark reads the changelog of a version only where it has no zip.
    cut_after(checkpoint, 7)
    store = checkpoint / "state/0/0"
    for checksum in store.glob("*.crc"):
        checksum.unlink()
    newest = max((int(file.name.partition("_")[0]), file) for file in store.glob("*.changelog"))[1]
    [older] = store.glob(f"{int(newest.name.partition('_')[0]) - 1}_*.changelog")
    shutil.copy(older, newest)

    [damage] = find_damage(open_checkpoint(LocalStore(checkpoint)), "start").damage
    assert (damage.path, damage.kind) == (str(newest.relative_to(checkpoint)), "foreign")
    found = {item.path: item.kind for item in find_damage(open_checkpoint(LocalStore(checkpoint)), "all").damage}
    # The state cannot be loaded, either.
    assert found == {damage.path: "foreign", "state/0/0": "missing"}


def test_a_table_of_another_attempt_under_its_name(tmp_path: Path) -> None:
    """Of the same size, and sound: only RocksDB, which compares the id in it, finds it."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", "offline_repartition_rocksdb"), checkpoint)
    without_checksums(checkpoint)
    tables = sorted((checkpoint / "state" / "0").glob("?/SSTs/*.sst"))
    one, other = next(pair for pair in combinations(tables, 2) if pair[0].stat().st_size == pair[1].stat().st_size)
    shutil.copy(other, one)

    [damage] = find_damage(open_checkpoint(LocalStore(checkpoint)), "all").damage

    assert (Path(damage.path).parent, Path(damage.path).suffix) == (one.parent.parent.relative_to(checkpoint), ".zip")
    assert (damage.kind, "Mismatch in unique ID on table file" in str(damage.found)) == ("torn", True)
    assert find_damage(open_checkpoint(LocalStore(checkpoint))).damage == ()


@pytest.mark.parametrize("case", ["join_inner_hdfs", "tws_pandas_rocksdb"])
def test_a_schema_of_state_that_was_cut_or_changed(tmp_path: Path, case: str) -> None:
    """A state file is whole without it, and Spark compares the query with it at each start."""
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", case), checkpoint)
    without_checksums(checkpoint)
    files = files_below(checkpoint / "state")
    schemas = [path for path in files if path.name == "schema" or "_stateSchema" in path.parts]
    assert schemas
    for schema in schemas:
        whole = schema.read_bytes()
        others = (whole.replace(b'"long"', b'"lonk"'), whole.replace(b'"nullable"', b'"nullabel"'))
        for content in (b"", whole[:1], whole[: len(whole) // 2], whole[:-1], *others):
            schema.write_bytes(content)
            found = find_damage(open_checkpoint(LocalStore(checkpoint)), "start").damage
            assert [item.path for item in found] == [str(schema.relative_to(checkpoint))], content
        schema.write_bytes(whole)
    assert find_damage(open_checkpoint(LocalStore(checkpoint)), "start").damage == ()


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_stray_number_in_the_log_of_a_source_is_one_hole(tmp_path: Path, depth: Depth) -> None:
    checkpoint = tmp_path / "checkpoint"
    shutil.copytree(checkpoint_folder("4.3.0", "file_json_to_parquet_filesink"), checkpoint)
    (checkpoint / "sources/0" / str(10**17)).write_bytes((checkpoint / "sources/0/7").read_bytes())

    found = {item.path: item for item in find_damage(open_checkpoint(LocalStore(checkpoint)), depth).damage}

    assert found.keys() == {f"sources/0/{10**17}", "sources/0/8"}
    assert found["sources/0/8"].expected == f"entries 8 to {10**17 - 1}, as later ones are there"
