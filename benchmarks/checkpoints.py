"""A checkpoint of many files, for the benchmarks that read one: 200 partitions x 3 operators x 100 versions.

Its state files are those that Spark wrote for one small query, repeated; they are whole, and so is the checkpoint.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.support.corpus import corpus_case

PARTITIONS, OPERATORS, VERSIONS = 200, 3, 100
SNAPSHOT_EVERY = 10
"""The newest version, 100, is then the snapshot of 91 and nine deltas: the most that a start reads."""
WRITTEN = 9
"""How many versions Spark wrote of the state that is repeated."""


def large_files(partitions: int = PARTITIONS, versions: int = VERSIONS) -> list[tuple[str, bytes]]:
    """Paths and contents of the generated checkpoint."""
    conf = {"spark.sql.shuffle.partitions": str(partitions)}
    metadata = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf})
    files = [("metadata", b'{"id":"d697b2ca-114d-480b-b96b-546de1fcba19"}')]
    for batch in range(versions):
        files.append((f"offsets/{batch}", f'v1\n{metadata}\n{{"clicks":{{"0":{batch}}}}}'.encode()))
        files.append((f"commits/{batch}", b'v1\n{"nextBatchWatermarkMs":0}'))
    schema, state = _written(versions)
    for operator in range(OPERATORS):
        store = [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": partitions}]
        info = {"operatorInfo": {"operatorId": operator, "operatorName": "stateStoreSave"}, "stateStoreInfo": store}
        files.append((f"state/{operator}/_metadata/metadata", f"v1\n{json.dumps(info)}".encode()))
        files.append((f"state/{operator}/0/_metadata/schema", schema))
        for partition in range(partitions):
            files += [(f"state/{operator}/{partition}/{name}", data) for name, data in state]
    return files


def _written(versions: int) -> tuple[bytes, list[tuple[str, bytes]]]:
    """The schema of Spark's state, and its files as those of one partition with so many versions."""
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = corpus_case("4.3.0", "agg_window_append_hdfs", Path(folder)) / "checkpoint"
        partition = checkpoint / "state/0/0"
        deltas = [(partition / f"{version}.delta").read_bytes() for version in range(1, WRITTEN + 1)]
        snapshot = (partition / "6.snapshot").read_bytes()
        files = [(f"{version}.delta", deltas[version % WRITTEN]) for version in range(1, versions + 1)]
        files += [(f"{version}.snapshot", snapshot) for version in range(1, versions + 1, SNAPSHOT_EVERY)]
        return (partition / "_metadata/schema").read_bytes(), files


def make_large(folder: Path, partitions: int = PARTITIONS, versions: int = VERSIONS) -> None:
    """Write the generated checkpoint to this disk."""
    for name, data in large_files(partitions, versions):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
