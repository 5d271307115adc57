"""Every file of some checkpoints damaged in every way: never an exception, never a hang, never silently wrong."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.checkpoint.opened import open_checkpoint
from slackwater.checkpoint.operators import OperatorReader
from slackwater.checkpoint.reader import read_checkpoint
from slackwater.checkpoint.state.reader import StateChoice, StateReader
from slackwater.core.checkpoint import CheckpointReport, Damage
from slackwater.storage.local import LocalStore
from tests.checkpoint.cases import CASES, checkpoint_folder
from tests.support.memory import folder_in_memory
from tests.support.sabotage import damaged_copies, files_below, without_checksums

STATE_SUFFIXES = {".delta", ".snapshot"}
SEED = 20_240_101
WANTED = (
    ("4.3.0", "agg_window_append_hdfs"),
    ("4.3.0", "named_sources_offsetv2_evolved"),
    ("4.3.0", "tws_pandas_ttl_rocksdb_changelog"),
    ("4.3.0", "retention_min_batches_2_filesink"),
    ("4.3.0", "row_checksum_agg_hdfs"),
    ("4.0.5", "agg_snappy_codec_rocksdb_changelog"),
    ("3.5.9", "session_window_rocksdb"),
    ("3.5.9", "agg_lzf_codec_hdfs"),
    ("3.5.9", "join_inner_hdfs"),
)
SABOTAGED = [case for case in WANTED if case in CASES]

Rows = dict[tuple[int, str, str], list[dict[str, Any]]]


@pytest.fixture
def folder() -> Iterator[Path]:
    """In memory: files are written tens of thousands of times."""
    with folder_in_memory() as made:
        yield made


def read(checkpoint: Path) -> tuple[CheckpointReport, Rows, list[Damage]]:
    opened = open_checkpoint(LocalStore(checkpoint))
    report = read_checkpoint(opened, state=True)
    operators = OperatorReader(opened.store, opened.listing, opened.inventory).operators()
    rows: Rows = {}
    damage: list[Damage] = []
    for operator in operators:
        for store in operator.stores:
            for family in store.families:
                found = StateReader(opened.batch_state(opened.logs.committed)).rows(
                    StateChoice(operator, store, family.name)
                )
                damage.extend(found.damage)
                if found.undecoded is not None:
                    damage.append(Damage(family.name, "undecoded", "", str(found.undecoded.column("reason")[0])))
                rows[operator.id, store.name, family.name] = sorted(found.table.to_pylist(), key=repr)
    return report, rows, damage


def differs(rows: Rows, truth: Rows) -> bool:
    return any(rows.get(key) != held for key, held in truth.items())


@pytest.mark.parametrize("case", SABOTAGED[:3], ids="-".join)
def test_damage_is_always_reported_where_there_are_checksums(case: tuple[str, str], folder: Path) -> None:
    original = checkpoint_folder(*case)
    truth = {path.relative_to(original): path.read_bytes() for path in files_below(original)}
    for edit, path, checkpoint in damaged_copies(original, folder, SEED):
        relative = path.relative_to(checkpoint)
        if path.is_file() and path.read_bytes() == truth[relative]:
            continue  # an empty file that was cut, or a swap of equals
        report = read_checkpoint(open_checkpoint(LocalStore(checkpoint)))
        assert report.damage, f"seed {SEED}: {edit} of {relative} was not noticed"


@pytest.mark.parametrize("case", SABOTAGED, ids="-".join)
def test_nothing_raises_without_checksums(case: tuple[str, str], folder: Path) -> None:
    original = folder / "original"
    shutil.copytree(checkpoint_folder(*case), original)
    without_checksums(original)
    for _, _, checkpoint in damaged_copies(original, folder, SEED, edits_per_file=1):
        read(checkpoint)


@pytest.mark.parametrize("case", SABOTAGED[:1], ids="-".join)
def test_sums_and_framing_of_lz4_tell_damage_of_state_alone(case: tuple[str, str], folder: Path) -> None:
    """On an object store no checksum file is next to a delta, but its blocks have checksums."""
    original = folder / "original"
    shutil.copytree(checkpoint_folder(*case), original)
    without_checksums(original)
    _, truth, _ = read(original)
    whole = {file.read_bytes() for file in original.rglob("*") if file.suffix in STATE_SUFFIXES}
    silent = []
    for edit, path, checkpoint in damaged_copies(original, folder, SEED):
        if path.suffix not in STATE_SUFFIXES or (path.is_file() and path.read_bytes() in whole):
            continue  # a whole state file of another version or kind: nothing in it shows that it is not this one
        report, rows, damage = read(checkpoint)
        if differs(rows, truth) and not (report.damage or damage):
            silent.append(f"{edit} of {path.relative_to(checkpoint)}")
    assert silent == [], f"seed {SEED}"
