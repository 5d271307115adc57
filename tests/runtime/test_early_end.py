"""A run that ends by itself, with a connector whose source fixes the end of the run after one batch."""

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.connectors.cache import WAYS, Jar
from slackwater.sources import kind_named
from tests.conformance.matrix import EXAMPLES
from tests.support.outputs import rows_of

ICEBERG = kind_named("iceberg").early_end
OLD = Jar(
    "org.apache.iceberg",
    "iceberg-spark-runtime-4.0_2.13",
    "1.10.0",
    "0480f1248e0a8b50ae2a730d7ad3e1a727351c362ca63f4a0c35182087a49323",
)
CATALOG = {
    "spark.sql.catalog.guide": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.guide.type": "hadoop",
    "spark.sql.catalog.guide.warehouse": "tables/iceberg",
}
LIMIT = "streaming-max-files-per-micro-batch"
PIPELINE = """import slackwater as sw

pipeline = sw.Pipeline("old")


@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def readings(spark):
    return spark.readStream{option}.table("guide.db.readings")
"""


@pytest.mark.parametrize(
    ("version", "option", "value", "found"),
    [
        ("1.10.0", "Streaming-Max-Files-Per-Micro-Batch", "1", True),
        ("1.5.2-vendor-3", "streaming-max-rows-per-micro-batch", "10", True),
        ("1.10.0", LIMIT, "2147483647", False),
        ("1.10.0", "stream-from-timestamp", "1", False),
        ("1.11.0", LIMIT, "1", False),
        ("2.0", LIMIT, "1", False),
        ("unknown", LIMIT, "1", False),
    ],
)
def test_old_versions_end_early_where_a_batch_is_limited(version: str, option: str, value: str, found: bool) -> None:
    assert ICEBERG is not None

    assert ICEBERG.limit_of(version, {"path": "p", option: value}) == (option if found else None)


@pytest.mark.spark
@pytest.mark.thorough
@pytest.mark.timeout(900)
def test_a_run_until_caught_up_with_an_old_jar_is_refused_where_it_would_end_early(tmp_path: Path) -> None:
    # The jar of a version that Slackwater does not lock.
    jar = tmp_path / OLD.file_name
    for way in WAYS:
        if not jar.is_file():
            way([OLD], tmp_path)
    assert hashlib.sha256(jar.read_bytes()).hexdigest() == OLD.sha256
    for maker in ("make_input.py", "make_tables.py"):
        subprocess.run([sys.executable, str(EXAMPLES / maker), str(tmp_path)], check=True)
    limited = f'.option("{LIMIT}", 1)'

    (tmp_path / "pipeline.py").write_text(PIPELINE.format(option=limited))
    refused = _run(tmp_path, jar)
    (tmp_path / "pipeline.py").write_text(PIPELINE.format(option=""))
    whole = _run(tmp_path, jar)

    assert refused.returncode != 0
    assert "source-ends-early" in refused.stderr
    assert "version 1.10.0" in refused.stderr
    assert LIMIT in refused.stderr
    assert whole.returncode == 0, whole.stderr
    files = len(list((tmp_path / "readings").glob("*.json")))
    assert files > 1
    lines = sum(len(file.read_text().splitlines()) for file in (tmp_path / "readings").glob("*.json"))
    assert rows_of(tmp_path / "out").total() == lines


def _run(folder: Path, jar: Path) -> subprocess.CompletedProcess[str]:
    """In a JVM of its own, whose class path has this version of the connector alone."""
    settings = {**CATALOG, "spark.jars": str(jar), "spark.sql.shuffle.partitions": "1"}
    words = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command = [sys.executable, "-m", "slackwater", "run", "pipeline.py", "--until-caught-up", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
