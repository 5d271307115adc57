"""The command that a finding of the number line names next: on a home it is typed, and does what it says without Spark.

That each can be parsed is in ``tests/diagnose/test_number_line.py``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path

import pytest

from slackwater.diagnose.number_line import RULES
from tests.refusals.of_streams import (
    another_range,
    as_it_is,
    damaged_output,
    foreign_manifest,
    left_halfway,
    no_checkpoint,
    no_output,
    older_checkpoint,
    torn_offsets,
    with_silent_sink,
)
from tests.refusals.scene import Scene
from tests.support.homes import HomeSpec

REFUSED = 5
IS_REFUSED = {foreign_manifest}
"""The files of another program's manifest are not known: they are not moved."""
ELSEWHERE = {
    "sink-marker-lost": "a sink in a database: tests/cli/test_lost_marker.py",
    "written-in-part": "several outputs: tests/sinks/test_all_of_killed.py",
    "watermark-misses-batch": "a watched query, whose home a run has not made: it is parsed only",
}
IN_A_HOME: tuple[tuple[str, Callable[[Scene], object], HomeSpec], ...] = (
    ("checkpoint-behind", older_checkpoint, HomeSpec()),
    ("checkpoint-damaged", torn_offsets, HomeSpec(6, 5, 5, 5)),
    ("checkpoint-lost", no_checkpoint, HomeSpec()),
    ("clean", as_it_is, HomeSpec()),
    ("commit-missing", as_it_is, HomeSpec(6, 5, 5, 6)),
    ("failed", as_it_is, HomeSpec(run="failed")),
    ("failed-permanently", lambda scene: _failed(scene, "state-schema"), HomeSpec(run="failed")),
    ("new", as_it_is, HomeSpec(-1, -1, None, -1)),
    ("operation-unfinished", left_halfway, HomeSpec()),
    ("output-damaged", damaged_output, HomeSpec()),
    ("output-damaged", foreign_manifest, HomeSpec()),
    ("range-changed", another_range, HomeSpec(6, 5, 5, 6)),
    ("sink-ahead", as_it_is, HomeSpec(3, 3, 3, 5)),
    ("sink-behind", as_it_is, HomeSpec(written=3)),
    ("sink-behind", no_output, HomeSpec()),
    ("sink-silent", with_silent_sink, HomeSpec()),
    ("state-lost", as_it_is, HomeSpec(state=3)),
)


def _failed(scene: Scene, code: str) -> None:
    scene.sql("UPDATE runs SET failure = 'permanent', failure_code = ?", values=(code,))


@pytest.mark.parametrize(
    ("code", "change", "spec"),
    [pytest.param(*one, id=f"{one[0]} {number}") for number, one in enumerate(IN_A_HOME)],
)
def test_in_a_home_it_is_carried_out(
    code: str,
    change: Callable[[Scene], object],
    spec: HomeSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))  # no command may start Spark
    scene = Scene(tmp_path, spec)
    change(scene)

    typed = scene.type(scene.next_of("status", code))
    if change in IS_REFUSED:
        assert typed.exit_code == REFUSED
        assert "hint:" in typed.text, f"it is refused, and says nothing of what is possible: {typed.text}"
    else:
        assert typed.exit_code == 0, typed.text


def test_every_command_is_typed() -> None:
    with_command = {rule.code for rule in RULES if "next=" in inspect.getsource(rule.find)}
    with_command.add("operation-unfinished")  # commands make this finding, too: by ``unfinished``

    assert {code for code, *_ in IN_A_HOME} | ELSEWHERE.keys() == with_command
