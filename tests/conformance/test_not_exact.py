"""What the guide does not call fault-tolerant: the socket source, the console and the memory sink.

Each is run, killed in the middle of a batch and run again, in JVMs of its own: what is lost or repeated is shown.
"""

import json
import re
import select
import socketserver
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from scripts.conformance import row_of
from tests.conformance.matrix import FILE, STREAMS_FAILED, Area, before_commit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
FILES = 6
IN_FILE = 27
WAIT_S = 400.0
REFUSED = 5
"""The exit code where a start would not be safe."""
OUT_OF_ORDER = "at 0 deleting 2" if pyspark.__version__.startswith("3.") else "Offsets committed out of order"
"""Spark 3.5 fails with a message of its Scala while it drops lines that it does not have."""
PRINTED = re.compile(r"^\|\d{4}-\d\d-\d\d .*\|$", re.MULTILINE)


class Lines(socketserver.ThreadingTCPServer):
    """A server that gives a client each line once, as they are added."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.given = 0
        self.added = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Handler)

    def add(self, *lines: str) -> None:
        """Add lines for whoever is connected, or will be."""
        with self.added:
            self.lines += lines
            self.added.notify_all()


class _Handler(socketserver.BaseRequestHandler):
    server: Lines

    def handle(self) -> None:
        while True:
            with self.server.added:
                if self._is_closed():
                    return
                if not self.server.added.wait_for(lambda: self.server.given < len(self.server.lines), timeout=0.5):
                    continue
                line = self.server.lines[self.server.given]
                self.server.given += 1
            self.request.sendall(f"{line}\n".encode())

    def _is_closed(self) -> bool:
        """Whether the client has ended: a line that is sent to it would be lost by this server, and not by Spark."""
        readable, _, _ = select.select([self.request], [], [], 0)
        return bool(readable) and self.request.recv(1) == b""


@contextmanager
def _lines() -> Iterator[Lines]:
    with Lines() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield server
        finally:
            server.shutdown()


def test_the_socket_source_loses_the_lines_of_an_interrupted_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _lines() as server:
        monkeypatch.setenv("LINES_PORT", str(server.server_address[1]))
        # Batch 0 has no lines, and each line is a batch. That of the second one is held before it reaches the output.
        workspace = Area("sources", ["socket"], {}, held={"socket": 2}).lay_down(tmp_path / "socket")
        commits = workspace.checkpoint("socket") / "commits"
        _add_after(server, commits, {0: "one", 1: "two"})
        workspace.kill_in_batch()
        _add_after(server, commits, {3: "three"})
        messages = workspace.refused("run", FILE, code=STREAMS_FAILED)

    assert "is not fault-tolerant" in messages
    assert OUT_OF_ORDER in messages
    assert workspace.rows("socket") == Counter(["one"])
    assert row_of("sources", "socket").after_kill == "lines lost"


def _add_after(server: Lines, commits: Path, lines: Mapping[int, str]) -> None:
    def add() -> None:
        deadline = time.monotonic() + WAIT_S
        for batch, line in lines.items():
            while not (commits / str(batch)).exists():
                if time.monotonic() > deadline:
                    return
                time.sleep(0.1)
            server.add(line)

    threading.Thread(target=add, daemon=True).start()


def test_the_console_prints_an_interrupted_batch_again_and_the_memory_sink_has_the_whole_table(tmp_path: Path) -> None:
    workspace = Area("sinks", ["console", "memory"], {}, holds_at=before_commit).lay_down(tmp_path / "sinks")
    seen = workspace.folder / "out" / "memory.seen"

    workspace.kill_in_batch()
    first = PRINTED.findall((workspace.folder / "killed.log").read_text())
    partly = json.loads(seen.read_text())
    seen.unlink()
    commits, counted = workspace.checkpoint("console") / "commits" / str(FILES - 1), FILES * IN_FILE

    def has_the_whole_table() -> bool:
        return seen.exists() and sum(row["count"] for row in json.loads(seen.read_text())) == counted

    log = workspace.run_until(lambda: commits.exists() and has_the_whole_table())
    again = PRINTED.findall(log)

    held = 3
    assert "at least once" in log
    assert (len(first), len(again)) == ((held + 1) * IN_FILE, (FILES - held) * IN_FILE)
    assert Counter(first) & Counter(again) == Counter(again[:IN_FILE]) == Counter(first[-IN_FILE:])
    assert row_of("sinks", "console").after_kill == "at-least-once"
    assert 0 < sum(row["count"] for row in partly) < counted
    assert row_of("sinks", "memory").after_kill == "exact"


@pytest.mark.thorough
def test_the_memory_sink_in_append_mode_is_refused_at_a_restart(tmp_path: Path) -> None:
    workspace = Area("sinks", ["memory"], {}).lay_down(tmp_path / "memory")
    example = workspace.folder / "sinks" / "memory.py"
    appended = example.read_text().replace(', output_mode="complete"', "").replace('.groupBy("kind").count()', "")
    example.write_text(appended)
    workspace.run()

    assert "memory-restart" in workspace.refused("run", FILE, "--until-caught-up", code=REFUSED)
