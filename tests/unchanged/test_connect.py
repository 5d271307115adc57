"""A program with a session of Spark Connect, with a real server: recognised, refused, and its checkpoint is of use."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.support import warm_python
from tests.support.standalone_cluster import SPARK_HOME
from tests.unchanged.scene import Scene

IS_SHIPPED = any((SPARK_HOME / "jars").glob("spark-connect_*.jar"))
pytestmark = [
    pytest.mark.spark,
    pytest.mark.xfail(
        not IS_SHIPPED,
        raises=FileNotFoundError,
        strict=True,
        reason=f"PySpark {pyspark.__version__} has no server of Spark Connect in its jars folder",
    ),
]
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
FILES = 3
REFUSED = 5
WAIT_S = 240
WAYS = {
    "remote": "from pyspark.sql import SparkSession\nspark = SparkSession.builder.remote({address!r}).getOrCreate()",
    "environment": "import os\nos.environ['SPARK_REMOTE'] = {address!r}\n"
    "from pyspark.sql import SparkSession\nspark = SparkSession.builder.getOrCreate()",
    "client": "from pyspark.sql.connect.session import SparkSession\n"
    "spark = SparkSession.builder.remote({address!r}).getOrCreate()",
}
QUERY = """
clicks = spark.readStream.schema("page STRING").json("data/in")
writer = clicks.writeStream.format("json").trigger(availableNow=True).option("checkpointLocation", "other")
writer.start("elsewhere").awaitTermination()
"""
WATCHED = """
import sys
import slackwater
from pyspark.sql import SparkSession
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
assert spark.range(3).count() == 3
try:
    slackwater.watch(spark, ledger=".slackwater/ledger.db")
except slackwater.SlackwaterError as error:
    print(error.code)
spark.stop()
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of Spark Connect, started as ``start-connect-server.sh`` does."""
    if not IS_SHIPPED:
        raise FileNotFoundError(f"no spark-connect jar in {SPARK_HOME / 'jars'}")
    folder = tmp_path_factory.mktemp("server")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
    }
    conf = [word for key, value in settings.items() for word in ("--conf", f"{key}={value}")]
    words = [str(SPARK_HOME / "bin/spark-submit"), "--class", SERVER, "--master", "local[2]", *conf, "spark-internal"]
    log = folder / "server.log"
    with log.open("w") as out:
        server = subprocess.Popen(words, cwd=folder, stdout=out, stderr=out, start_new_session=True)
    try:
        deadline = time.monotonic() + WAIT_S
        while not _listens(port):
            assert server.poll() is None, log.read_text()
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        yield f"sc://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def test_a_program_of_spark_connect_is_recognised_and_its_checkpoint_examined(tmp_path: Path, address: str) -> None:
    scene = Scene(tmp_path, "connected.py")
    scene.add_files("data", FILES)
    python(scene, str(scene.program), str(tmp_path / "data"), address)
    assert scene.rows("data/out").total() > 30

    adopted = typed(scene, "adopt", "data/checkpoint", "--sink", "data/out", "--name", "clicks", "--format", "json")
    marks = json.loads(adopted[adopted.index("{") :])["marks"]
    assert (marks["committed"], marks["written"]) == (FILES - 1, FILES - 1)
    assert typed(scene, "doctor", "clicks")
    shown = json.loads(typed(scene, "inspect", "clicks", "--format", "json"))
    assert shown["marks"]["committed"] == FILES - 1
    looked = typed(scene, "watch", "data/checkpoint", "--sink", "data/out", "--once", "--format", "json")
    assert json.loads(looked)["marks"]["written"] == FILES - 1

    for way, session in WAYS.items():
        (tmp_path / f"{way}.py").write_text(session.format(address=address) + QUERY)
        for words in (("run", f"{way}.py"), ("check", f"{way}.py")):
            refused = typed(scene, *words, exit_code=REFUSED)
            assert "error connect-session" in refused, refused
            assert "slackwater adopt LOCATION" in refused
    assert not (tmp_path / "other").exists()
    (tmp_path / "watched.py").write_text(WATCHED)
    assert python(scene, "watched.py", address) == "connect-session\n"


def typed(scene: Scene, *words: str, exit_code: int = 0) -> str:
    ended = warm_python.run(words, scene.folder, {}, in_one=True)
    assert ended.returncode == exit_code, ended.stdout
    return str(ended.stdout)


def python(scene: Scene, *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, *words], cwd=scene.folder, env={**os.environ}, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
