"""All kinds of state, drawn, on each state store with 1 and 2 partitions, rebuilt from each kind of checkpoint.

With 200, Spark's default, three kinds: a batch of them takes seconds. A run has a kind of state for each treatment of
a checkpoint (``treatments.py``). A draw is repeated with ``SLACKWATER_TEST_SEED``.
"""

import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.conformance.matrix import EXACT, compared
from tests.conformance.treatments import (
    HDFS,
    PROVIDER,
    ROCKSDB,
    TREATMENTS,
    area_of,
    change_partitions,
    damage,
    delete,
    run_twice,
)

pytestmark = [pytest.mark.spark, pytest.mark.thorough, pytest.mark.timeout(3600)]
KINDS = (
    *("grouped_by_event_time", "tumbling_window", "sliding_window", "session_window", "session_window_dynamic"),
    *("window_of_window", "window_time", "drop_duplicates", "drop_duplicates_watermark", "deduplicated_window"),
    *("inner", "inner_watermark", "left_outer", "right_outer", "full_outer", "left_semi", "self_join"),
    *("cascade", "window_join", "join_then_window", "windows_join_windows"),
)
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
CHECKSUMS = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
PARTITIONS = "spark.sql.shuffle.partitions"
Treatment = Callable[[Path], None]
STORES = {
    "hdfs": {PROVIDER: HDFS, CHECKSUMS: "false"},
    "hdfs-checksums": {PROVIDER: HDFS, CHECKSUMS: "true"},
    "rocksdb": {PROVIDER: ROCKSDB, CHANGELOG: "false", CHECKSUMS: "false"},
    "rocksdb-changelog": {PROVIDER: ROCKSDB, CHANGELOG: "true", CHECKSUMS: "false"},
    "rocksdb-changelog-checksums": {PROVIDER: ROCKSDB, CHANGELOG: "true", CHECKSUMS: "true"},
}


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize("store", STORES)
def test_a_rebuild_is_exact(store: str, partitions: int, tmp_path: Path) -> None:
    seed = int(os.environ.get("SLACKWATER_TEST_SEED", time.time_ns() % 1_000_000))
    chance = random.Random(f"{seed} {store} {partitions}")
    kinds = chance.sample(KINDS, len(TREATMENTS))
    treated = dict(zip(kinds, TREATMENTS, strict=True))
    drawn = f"seed {seed}: {[(kind, treatment.__name__) for kind, treatment in treated.items()]}"
    _check_rebuilt(tmp_path, treated, {**STORES[store], PARTITIONS: str(partitions)}, drawn)


def _check_rebuilt(folder: Path, treated: Mapping[str, Treatment], settings: Mapping[str, str], told: str) -> None:
    workspace = area_of(list(treated), settings).lay_down(folder / "rebuilt")
    expected, bring_back = run_twice(workspace, folder / "saved")
    assert [kind for kind in treated if workspace.rows(kind) == expected[kind]] == [], told

    refused = {kind: workspace.rebuild(kind, treatment) for kind, treatment in treated.items()}
    bring_back()
    workspace.run()

    found = {kind: refused[kind] or compared(workspace.rows(kind), expected[kind]) for kind in treated}
    assert found == dict.fromkeys(treated, EXACT), told


WITH_200 = {
    "hdfs-checksums": {"tumbling_window": delete, "drop_duplicates_watermark": damage, "left_outer": change_partitions},
    # Each store of RocksDB has a memory of its own: the join's 800 and these together took 6 GiB.
    "rocksdb-changelog": {"tumbling_window": delete},
}


@pytest.mark.parametrize("store", WITH_200)
def test_a_rebuild_with_200_partitions_is_exact(store: str, tmp_path: Path) -> None:
    _check_rebuilt(tmp_path, WITH_200[store], {**STORES[store], PARTITIONS: "200"}, store)
