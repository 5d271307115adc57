"""Examples of Spark's own distribution (``pyspark/examples/src/main/python/sql/streaming``), as they are installed."""

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.support.killing import kill_with_children
from tests.support.processes import descendants

pytestmark = [pytest.mark.spark, pytest.mark.thorough]
EXAMPLES = Path(pyspark.__file__).parent / "examples/src/main/python/sql/streaming"
LINES = ("the quick brown fox", "jumps over the lazy dog", "the fox")
WORDS = Counter(" ".join(LINES).split())
ROW = re.compile(r"^\|(.+)\|$", re.MULTILINE)


@contextmanager
def serving() -> Iterator[int]:
    """A port that sends the lines to whoever connects, and then stays open."""
    with socket.create_server(("localhost", 0)) as server, closing(_Served(server)):
        yield int(server.getsockname()[1])


class _Served:
    def __init__(self, server: socket.socket) -> None:
        self._server = server
        self._open: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            connection.sendall("".join(f"{line}\n" for line in LINES).encode())

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        for connection in self._open:
            connection.close()
        self._thread.join(10)


def printed(text: str, columns: tuple[int, int]) -> Counter[str]:
    """The highest count of each word in the tables on the console."""
    found: Counter[str] = Counter()
    for row in ROW.findall(text):
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) > max(columns) and cells[columns[1]].isdigit():
            word, count = (cells[column] for column in columns)
            found[word] = max(found[word], int(count))
    return found


def run(words: list[str], folder: Path, columns: tuple[int, int]) -> tuple[Counter[str], str]:
    """Run a program until it has printed all words, then end it; what it has printed, and its log.

    It waits for more words for ever, and Ctrl-C ends it with an error of PySpark's, by itself and run by Slackwater.
    """
    (folder / "spark-defaults.conf").write_text("spark.sql.shuffle.partitions 2\nspark.ui.enabled false\n")
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(folder)}
    shown, log = folder / "shown.txt", folder / "log.txt"
    with shown.open("w") as out, log.open("w") as err:
        process = subprocess.Popen(
            [sys.executable, *words], cwd=folder, env=environment, stdout=out, stderr=err, start_new_session=True
        )
    deadline = time.monotonic() + 240
    try:
        while (found := printed(shown.read_text(), columns)) != WORDS:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline, f"{found}\n{log.read_text()}"
            time.sleep(0.2)
    finally:
        kill_with_children(process, descendants(process.pid))
    return found, log.read_text()


@pytest.mark.parametrize(
    ("name", "arguments", "columns"),
    [
        ("structured_network_wordcount", (), (0, 1)),
        ("structured_network_wordcount_windowed", ("86400",), (1, 2)),
        ("structured_network_wordcount_session_window", (), (0, 1)),
    ],
)
def test_it_prints_what_it_prints_without_slackwater(
    tmp_path: Path, name: str, arguments: tuple[str, ...], columns: tuple[int, int]
) -> None:
    program = str(EXAMPLES / f"{name}.py")
    with serving() as port:
        given = ["localhost", str(port), *arguments]
        (tmp_path / "plain").mkdir()
        (tmp_path / "run").mkdir()
        plain, _ = run([program, *given], tmp_path / "plain", columns)
        words = ["-m", "slackwater", "run", program, "--", *given]
        found, log = run(words, tmp_path / "run", columns)
    assert found == plain == WORDS
    assert "a query without a checkpoint location is run, and not recorded" in log
