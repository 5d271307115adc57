"""The user's own jars and those of connectors in one session: none is dropped, and none is there twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from slackwater.runtime.session import session

SPARK_SUBMIT = Path(sys.prefix) / "bin" / "spark-submit"
PROGRAM = """
import json, sys
from pathlib import Path
from slackwater.runtime.session.session import end_session, start_session
from slackwater.runtime.session.options import SessionOptions

spark = start_session(SessionOptions("jars", "local[1]", connectors=("postgresql",)), lambda text: None)
jars = spark.sparkContext._jsc.sc().listJars().toList()
Path("found.json").write_text(json.dumps([jars.apply(at) for at in range(jars.size())]))
end_session(spark)
"""


@pytest.mark.parametrize(
    ("connector", "brought"),
    [
        ("kafka", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3"),
        ("kafka", "/srv/spark-sql-kafka-0-10_2.13-4.1.3.jar"),
        ("delta", "io.delta:delta-spark_4.1_2.13:4.4.0"),
        ("delta", "hdfs://nn/jars/delta-spark_2.13-4.0.0.jar"),
        ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"),
        ("postgresql", "org.postgresql:postgresql:42.7.13"),
        ("postgresql", "postgresql-42.7.13.jar"),
        ("postgresql", "file:/srv/postgresql.jar"),
    ],
)
def test_a_connector_that_the_user_brings(connector: str, brought: str) -> None:
    assert session._brings(["/srv/mine.jar", f" {brought}"], connector)


@pytest.mark.parametrize(
    ("connector", "brought"),
    [
        ("postgresql", "/srv/postgresql/udfs.jar"),
        ("postgresql", "/srv/postgresql-udfs.jar"),
        ("postgresql", "org.postgresql:udfs:1"),
        ("delta", "/srv/delta-spark-2/mine.jar"),
        ("avro", "com.example:my-spark-avro_2.13:1"),
        ("kafka", ""),
    ],
)
def test_a_name_elsewhere_brings_no_connector(connector: str, brought: str) -> None:
    assert not session._brings([brought], connector)


def test_what_is_set_here_counts_before_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages org.postgresql:postgresql:42.7.13\n")
    assert session._jars(["postgresql"], {}, print) == []
    (jar,) = session._jars(["postgresql"], {"spark.jars.packages": "com.example:mine:1"}, print)
    assert Path(jar).name.startswith("postgresql-")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages com.example:mine:1 pyspark-shell")
    assert session._jars(["postgresql"], {}, print) == [jar]
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages org.postgresql:postgresql:42.7.12 pyspark-shell")
    assert session._jars(["postgresql"], {}, print) == []


@pytest.mark.spark
@pytest.mark.parametrize(
    "way",
    [
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("spark-defaults.conf", "PYSPARK_SUBMIT_ARGS")),
        "spark-submit",
    ],
)
def test_the_users_jars_are_kept_with_those_of_connectors(tmp_path: Path, way: str) -> None:
    with zipfile.ZipFile(tmp_path / "mine.jar", "w") as jar:
        jar.writestr("mine.txt", "mine")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(tmp_path)}
    words = [sys.executable]
    if way == "PYSPARK_SUBMIT_ARGS":
        environment[way] = f"--jars {tmp_path}/mine.jar pyspark-shell"
    elif way == "spark-submit":
        words = [str(SPARK_SUBMIT), "--master", "local[1]", "--jars", str(tmp_path / "mine.jar")]
    else:
        (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {tmp_path}/mine.jar\n")

    done = subprocess.run(
        [*words, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    names = [Path(address).name for address in json.loads((tmp_path / "found.json").read_text())]
    assert (names.count("mine.jar"), sum(name.startswith("postgresql-") for name in names), len(names)) == (1, 1, 2)
