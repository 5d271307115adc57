"""What the guide does not call fault-tolerant: the console and the memory sink.

Each is run, killed in the middle of a batch and run again, in JVMs of its own: what is lost or repeated is shown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from scripts.conformance import row_of
from tests.conformance.matrix import FILE, Area, before_commit

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
FILES = 8
IN_FILE = 27
REFUSED = 5
"""The exit code where a start would not be safe."""
PRINTED = re.compile(r"^\|\d{4}-\d\d-\d\d .*\|$", re.MULTILINE)


def test_the_console_prints_an_interrupted_batch_again(tmp_path: Path) -> None:
    workspace = Area("sinks", ["console"], {}, holds_at=before_commit).lay_down(tmp_path / "console")

    workspace.kill_in_batch()
    first = PRINTED.findall((workspace.folder / "killed.log").read_text())
    commits = workspace.checkpoint("console") / "commits" / str(FILES - 1)
    log = workspace.run_until(commits.exists)
    again = PRINTED.findall(log)

    held = 3
    assert "at least once" in log
    assert (len(first), len(again)) == ((held + 1) * IN_FILE, (FILES - held) * IN_FILE)
    assert Counter(first) & Counter(again) == Counter(again[:IN_FILE]) == Counter(first[-IN_FILE:])
    assert row_of("sinks", "console").after_kill == "at-least-once"


def test_the_memory_sink_has_the_whole_table_again_in_complete_mode(tmp_path: Path) -> None:
    workspace = Area("sinks", ["memory"], {}, holds_at=before_commit).lay_down(tmp_path / "memory")
    seen = workspace.folder / "out" / "memory.seen"

    workspace.kill_in_batch()
    partly = json.loads(seen.read_text())
    seen.unlink()
    counted = FILES * IN_FILE
    workspace.run_until(
        lambda: seen.exists() and sum(row["count"] for row in json.loads(seen.read_text() or "[]")) == counted
    )

    assert 0 < sum(row["count"] for row in partly) < counted
    assert row_of("sinks", "memory").after_kill == "exact"


def test_the_memory_sink_in_append_mode_is_refused_at_a_restart(tmp_path: Path) -> None:
    workspace = Area("sinks", ["memory"], {}).lay_down(tmp_path / "memory")
    example = workspace.folder / "sinks" / "memory.py"
    appended = example.read_text().replace(', output_mode="complete"', "").replace('.groupBy("kind").count()', "")
    example.write_text(appended)
    workspace.run()

    assert "memory-restart" in workspace.refused("run", FILE, "--until-caught-up", code=REFUSED)
