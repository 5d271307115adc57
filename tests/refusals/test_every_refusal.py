"""Every refusal leads on: what it prints is typed until the stream can run, or it says what a person has to do."""

import json
from pathlib import Path

import pytest

from slackwater.core.facts import Severity
from slackwater.diagnose.catalogue import error_codes
from slackwater.diagnose.doctor import checks
from slackwater.diagnose.number_line import RULES
from tests.refusals import of_operations, of_streams
from tests.refusals.scene import Scene, Typed
from tests.refusals.situations import Situation

SITUATIONS = of_streams.SITUATIONS + of_operations.SITUATIONS
ROOT = Path(__file__).resolve().parents[2]
REFUSED = 5
STEPS = 8
ELSEWHERE = {
    "adopt-known": "tests/cli/test_adopt.py",
    "adopt-replaced": "tests/cli/test_adopt.py",
    "adopt-sink": "tests/cli/test_adopt.py",
    "adopt-taken": "tests/cli/test_adopt.py",
    "audit-target": "tests/audit/test_audit_on_spark.py",
    "backfill-kept": "tests/operations/apply/test_backfill.py",
    "backfill-overlaps": "tests/operations/apply/test_backfill.py",
    "backfill-replaces": "tests/operations/apply/test_backfill.py",
    "backfill-stateful": "tests/operations/apply/test_backfill.py",
    "backfill-unknown": "tests/operations/apply/test_backfill.py",
    "batch-written": "tests/sinks/test_foreach_batch.py",
    "backfill-watched": "tests/operations/apply/test_backfill_of_applications.py",
    "connect-session": "tests/unchanged/test_connect.py",
    "query-checkpoint": "tests/unchanged/test_references.py",
    "query-duplicate": "tests/unchanged/test_references.py",
    "checkpoint-fixed": "tests/operations/apply/test_adopted.py",
    "checkpoint-in-use": "tests/operations/apply/test_adopted.py",
    "code-needed": "tests/operations/apply/test_adopted.py",
    "cut-mismatch": "tests/sinks/test_files_output.py",
    "cut-was-read-by-version": "tests/restart/delta_tables.py",
    "downstream-cycle": "tests/operations/apply/test_downstream.py",
    "delta-commit": "tests/sinks/test_delta_output.py",
    "delta-log-cleaned": "tests/sinks/test_delta_output.py",
    "delta-path": "tests/sinks/test_delta_on_spark.py",
    "delta-restore": "tests/sinks/test_delta_output.py",
    "replay-leaves-out": "tests/runtime/test_lost_rows_of_a_replay.py",
    "source-ends-early": "tests/runtime/test_early_end.py",
    "source-files-too-old": "tests/restart/test_files_left_out.py",
    "variable-set": "tests/runtime/test_process_environment.py",
    "folder-read-only": "tests/operations/apply/test_touched_operations.py",
    "iceberg-ahead": "tests/sinks/test_iceberg_on_spark.py",
    "iceberg-expired": "tests/sinks/test_iceberg_output.py",
    "iceberg-restore": "tests/sinks/test_iceberg_output.py",
    "init-not-empty": "tests/bad_input/first_steps.py",
    "lease-lost": "tests/ledger/lease/test_lease.py",
    "memory-restart": "tests/restart/test_silent_sinks.py",
    "moved-number": "tests/operations/apply/test_backfill_into_directory.py",
    "moved-others": "tests/restart/test_rows_of_others.py",
    "moved-backfill-directory": "tests/operations/apply/test_backfill_into_directory.py",
    "moved-writer": "tests/operations/apply/test_adopted.py",
    "name-mistyped": "tests/cli/test_confirmation.py",
    "operation-foreign": "tests/operations/apply/test_touched_operations.py",
    "output-overlaps": "tests/runtime/test_outputs_apart.py",
    "query-name": "tests/operations/apply/test_adopted.py",
    "release-kept": "tests/cli/test_adopt.py",
    "release-pipeline": "tests/cli/test_adopt.py",
    "rows-of-others": "tests/restart/test_rows_of_others.py",
    "backfill-directory-occupied": "tests/operations/apply/test_backfill_into_directory.py",
    "backfill-directory-shared": "tests/operations/apply/test_backfill_into_directory.py",
    "backfill-directory-was-read": "tests/operations/apply/test_backfill_into_directory.py",
    "sink-fenced": "tests/sinks/test_postgres_spark.py",
    "sink-marker-lost": "tests/cli/test_lost_marker.py",
    "sink-grant": "tests/sinks/test_postgres_publish.py",
    "source-rows-lost": "tests/restart/test_kafka.py",
    "target-out-of-range": "tests/runtime/test_positions.py",
    "target-unsupported": "tests/runtime/test_positions.py",
    "stage-incomplete": "tests/sinks/test_swap_files.py",
    "staged-absent": "tests/sinks/test_swap_files.py",
    "staged-damaged": "tests/sinks/test_swap_files.py",
    "staged-foreign": "tests/sinks/test_swap_files.py",
    "swap-foreign": "tests/sinks/test_swap_files.py",
    "swap-moved": "tests/sinks/test_swap_files.py",
    "swap-unsupported": "tests/sinks/test_swap_postgres.py",
    "program-changed": "tests/restart/test_changed_program.py",
    "rebuild-insufficient": "tests/restart/test_changed_program.py",
    "SW-DELTA-005": "tests/diagnose/live/test_delta.py",
    "SW-KAFKA-002": "tests/diagnose/edits/kafka.py",
    "SW-KAFKA-003": "tests/restart/test_kafka.py",
    "SW-KAFKA-015": "tests/diagnose/edits/kafka.py",
}
"""Refusals that are not of a stream's state, or that need a server or a table, and the file of their tests."""


@pytest.mark.parametrize("situation", [pytest.param(one, id=f"{one.code} {one.make.__name__}") for one in SITUATIONS])
def test_what_is_printed_leads_on(situation: Situation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "my project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    # A plan for changed code would start Spark; without Java it counts all batches.
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    scene = Scene(folder, situation.spec)

    refused = scene.type(situation.make(scene))

    assert (situation.shown_as or situation.code) in _codes(scene, refused), refused.text
    _follow(scene, situation, refused)


def test_every_refusal_has_its_situation() -> None:
    refusals = {error.code for error in error_codes().values() if error.kind.exit_code == REFUSED}
    stops = {rule.code for rule in RULES if rule.severity is Severity.STOP}
    stops |= {check.code for check in checks() if check.at_start and check.severity is Severity.STOP}

    assert {situation.code for situation in SITUATIONS} | ELSEWHERE.keys() == refusals | stops
    for code, file in ELSEWHERE.items():
        assert code in (ROOT / file).read_text()


def _follow(scene: Scene, situation: Situation, at: Typed) -> None:
    """Type what is printed, the first command that was not typed since something was changed."""
    typed, by_hand, story = [at.command], situation.by_hand, [at]
    while not at.started:
        assert len(story) < STEPS, _told(story)
        following = next((command for command in at.named if command not in typed), None)
        if following is None:
            assert by_hand is not None, f"the text names no other command:\n{_told(story)}"
            assert situation.says in at.text, _told(story)
            following, by_hand, typed = by_hand(scene) or at.command, None, []
        elif by_hand is None and situation.by_hand is not None and following in typed:
            raise AssertionError(_told(story))
        at = scene.type(following)
        story.append(at)
        typed = [following] if at.exit_code == 0 and following.split()[0] in {"apply", "undo"} else [*typed, following]
    assert by_hand is None, f"nothing had to be done by hand:\n{_told(story)}"


def _codes(scene: Scene, typed: Typed) -> list[str]:
    """The code of the error; of a status, those of all findings."""
    if not typed.command.startswith("status "):
        return [typed.code or "none"]
    document = json.loads(scene.type(f"{typed.command} --format json").text)
    return [finding["code"] for stream in document["streams"] for finding in stream["findings"]]


def _told(story: list[Typed]) -> str:
    return "\n".join(f"$ slackwater {one.command}  -> {one.exit_code}\n{one.text}" for one in story)
