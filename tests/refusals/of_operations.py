"""What ``apply`` and ``undo`` refuse: what has changed since the plan, what a replay finds, operations left halfway."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from slackwater.operations.plan.document import parse, render
from tests.refusals.of_streams import CHECKPOINT, read_downstream
from tests.refusals.scene import APPLY, Scene
from tests.refusals.situations import Situation, brought_back, edit, removed_aside
from tests.support.homes import EMPTY_DELTA, LAYOUT, OPERATOR, SCHEMA, HomeSpec, checkpoint_logs, sink_log

FIRST = "build-generation"
CUT = "cut-sink"
SWITCH = "switch-generation"
VERIFY = "verify-generation"
UNDO = "undo"


def planned(scene: Scene) -> str:
    return scene.plan("--at", "batch:3")


def undo_of(scene: Scene) -> str:
    return f"undo {scene.operation} --yes"


def run_on(scene: Scene, generation: int = 1, written: int = 7, committed: int = 7, planned: int = 7) -> None:
    """Batches up to 7 are run, or as far as is asked for; the ledger has no record of them."""
    spec = HomeSpec(planned=planned, committed=committed, written=written)
    checkpoint = scene.checkpoint.parent / f"{generation:04d}"
    for log, entries in checkpoint_logs(spec, scene.folder).items():
        for entry, text in entries.items():
            if log != "sources/0" or not list((checkpoint / log).glob("*.compact")):
                _write(checkpoint / log / str(entry), text)
    for entry, text in sink_log(spec, scene.folder).items():
        _write(scene.folder / "out" / "_spark_metadata" / str(entry), text)
        _write(scene.folder / "out" / f"part-{entry}.parquet", f"rows of batch {entry}".ljust(1000))
    for number in range(planned + 1):
        _write(scene.folder / "clicks" / f"{number:03d}.json", "")
    for version in range(1, committed + 2):
        _write(checkpoint / "state" / "0" / "0" / f"{version}.delta", EMPTY_DELTA)
    _write(checkpoint / "state" / "0" / "_metadata" / "metadata", OPERATOR)
    _write(checkpoint / "state" / "0" / "0" / "_metadata" / "schema", SCHEMA)


def _write(file: Path, content: str | bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    if not file.exists():
        file.write_bytes(content.encode() if isinstance(content, str) else content)


def marks_moved(**marks: int) -> Callable[[Scene], str]:
    def move(scene: Scene) -> str:
        command = planned(scene)
        run_on(scene, **marks)
        return command

    return move


def applied_otherwise(scene: Scene) -> str:
    planned(scene)
    (scene.folder / "plan.json").rename(scene.folder / "older.json")
    planned(scene)
    scene.must(APPLY)
    return "apply older.json --yes"


def history_edited(scene: Scene) -> str:
    """A range that had been lost from the ledger is recorded with other settings."""
    command = planned(scene)
    scene.sql("DELETE FROM log_lines WHERE log = 'offsets' AND entry = 2")
    edit(scene, f"{CHECKPOINT}/offsets/2", '"conf":{', '"conf":{"a":"b",')
    return command


def code_edited(scene: Scene) -> str:
    command = planned(scene)
    (scene.folder / "clicks.py").write_text((scene.folder / "clicks.py").read_text() + "# edited\n")
    return command


def at_the_last_moment(kind: str, do: Callable[[Scene], object]) -> Callable[[Scene], str]:
    """Something happens before the first action of a kind."""

    def wait(scene: Scene) -> str:
        scene.before[kind] = lambda: do(scene)
        return planned(scene)

    return wait


def played(**values: object) -> Callable[[Scene], str]:
    def play(scene: Scene) -> str:
        for name, value in values.items():
            setattr(scene.player, name, value)
        return planned(scene)

    return play


def rows_are_back(scene: Scene) -> None:
    scene.player.counted = 100


def strayed_once(scene: Scene) -> str:
    command = planned(scene)
    scene.before["replay-batches"] = lambda: setattr(scene.player, "strays_to", 9)
    scene.before["remove-generation"] = lambda: setattr(scene.player, "strays_to", None)
    return command


def _built(scene: Scene) -> Path:
    return scene.checkpoint.parent / "0002"


def _another_watermark(scene: Scene) -> None:
    file = _built(scene) / "offsets" / "3"
    file.write_text(file.read_text().replace('"batchWatermarkMs":', '"batchWatermarkMs":1'))


def halfway(kind: str) -> Callable[[Scene], str]:
    def interrupt(scene: Scene) -> str:
        planned(scene)
        scene.interrupt(kind)
        return APPLY

    return interrupt


def edited_halfway(scene: Scene) -> str:
    halfway("verify-generation")(scene)
    journal = next(scene.stream.glob("operations/*/journal.jsonl"))
    # As if it had been killed while it replayed.
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if '"index": 1, "kind": "replay' not in line))
    scene.sql("UPDATE operation_files SET journal = ?", values=(journal.read_text(),))
    (scene.folder / "clicks.py").write_text((scene.folder / "clicks.py").read_text() + "# edited\n")
    return APPLY


def another_plan_of_this_id(scene: Scene) -> str:
    halfway(SWITCH)(scene)
    file = scene.folder / "plan.json"
    file.write_text(render(replace(parse(file.read_text(), "plan.json"), made_at="2026-01-01T00:00:00+00:00")))
    return APPLY


def _backup(scene: Scene) -> Path:
    return next(scene.stream.glob("operations/*/backup"))


def backup_lost(scene: Scene) -> str:
    halfway(SWITCH)(scene)
    (_backup(scene) / "part-5.parquet").rename(scene.folder / "lost")
    return undo_of(scene)


def backup_of_another_cut(scene: Scene) -> str:
    halfway(SWITCH)(scene)
    # The ledger has no copies of what the operation wrote, and the journal no hashes of its backup.
    scene.sql("DELETE FROM operation_files")
    journal = next(scene.stream.glob("operations/*/journal.jsonl"))
    records = [json.loads(line) for line in journal.read_text().splitlines()]
    for record in records:
        record.get("facts", {}).pop("backup", None)
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))
    file = _backup(scene) / "manifest.json"
    edit(scene, str(file.relative_to(scene.folder)), '"after": 3', '"after": 2')
    return undo_of(scene)


def output_edited(scene: Scene) -> str:
    """The undo was interrupted when it had restored the sink; then a restored file was changed."""
    halfway(SWITCH)(scene)
    file = scene.folder / "out" / "part-5.parquet"
    file.write_text("of another program")
    return undo_of(scene)


def output_as_it_was(scene: Scene) -> None:
    (scene.folder / "out" / "part-5.parquet").unlink()


def written_by_another_program(scene: Scene) -> str:
    halfway(SWITCH)(scene)
    manifest = scene.folder / "out" / "_spark_metadata"
    (manifest / "9").write_text(sink_log(HomeSpec(written=9), scene.folder)[9])
    return undo_of(scene)


def moved_out(scene: Scene) -> None:
    (scene.folder / "out" / "_spark_metadata" / "9").unlink()


def plan_edited(scene: Scene) -> str:
    halfway(SWITCH)(scene)
    file = next(scene.stream.glob("operations/*/plan.json"))
    file.write_text(render(replace(parse(file.read_text(), "plan.json"), undo=())))
    return undo_of(scene)


def plan_moved_away(scene: Scene) -> None:
    next(scene.stream.glob("operations/*/plan.json")).rename(scene.folder / "lost")


def old_checkpoint_lost(scene: Scene) -> str:
    planned(scene)
    scene.must(APPLY)
    scene.checkpoint.rename(scene.folder / "lost")
    return undo_of(scene)


def undone_halfway(scene: Scene) -> str:
    planned(scene)
    scene.must(APPLY)
    scene.interrupt("remove-generation", undo_of(scene))
    return APPLY


def run_since(scene: Scene) -> str:
    planned(scene)
    scene.must(APPLY)
    run_on(scene, generation=2, written=5, committed=5, planned=5)
    return undo_of(scene)


def all_run_since(scene: Scene) -> str:
    """The same of a rebuild from the beginning."""
    scene.plan("--at", "earliest")
    scene.must(APPLY)
    run_on(scene, generation=2, written=1, committed=1, planned=1)
    return undo_of(scene)


def applied_twice(scene: Scene) -> str:
    planned(scene)
    scene.must(APPLY)
    older = undo_of(scene)
    scene.plan()
    scene.must(APPLY)
    return older


def pruned_since(scene: Scene) -> str:
    older = applied_twice(scene)
    scene.must("prune per_page --keep 1 --yes")
    return older


def part_alone(scene: Scene) -> str:
    """The part of a plan that is about a later stage, in a file of its own."""
    read_downstream(scene)
    scene.plan("--at", "batch:3", "--downstream")
    whole = parse((scene.folder / "plan.json").read_text(), "plan.json")
    (scene.folder / "part.json").write_text(render(whole.downstream[0]))
    return "apply part.json --yes"


SITUATIONS = (
    Situation("plan-of-a-part", part_alone, lambda _: APPLY, "the parent plan"),
    # What has changed since the plan was made
    Situation("moved-generation", applied_otherwise),
    Situation("moved-planned", marks_moved(planned=7, committed=5, written=5)),
    Situation("moved-committed", marks_moved(planned=6, committed=6, written=6)),
    Situation("moved-written", marks_moved(planned=6, committed=5, written=6)),
    Situation("moved-history", history_edited),
    Situation("moved-pipeline", code_edited),
    Situation(
        "moved-source-files",
        at_the_last_moment(FIRST, lambda scene: removed_aside(scene, "clicks/004.json")),
        brought_back("clicks/004.json"),
        "restore the files",
    ),
    Situation("moved-readers", at_the_last_moment(CUT, read_downstream)),
    Situation("generation-exists", at_the_last_moment(FIRST, lambda scene: _built(scene).mkdir())),
    # What a replay finds
    Situation("base-not-empty", played(of_base=5)),
    Situation("retention-longer", played(layout=LAYOUT | {"retention_ms": 1_800_000, "windows_ms": [1_800_000]})),
    Situation("rows-differ", played(counted=99), rows_are_back, "restore the source's data"),
    Situation("replay-strayed", strayed_once),
    Situation("verify-marks", at_the_last_moment(VERIFY, lambda scene: (_built(scene) / "commits/3").unlink())),
    Situation(
        "verify-damage",
        at_the_last_moment(VERIFY, lambda scene: (_built(scene) / "state/0/0/4.delta").write_bytes(b"x")),
    ),
    Situation("verify-range", at_the_last_moment(VERIFY, _another_watermark)),
    # Operations left halfway
    Situation("pipeline-edited", edited_halfway),
    Situation("plan-differs", another_plan_of_this_id),
    Situation("undo-unfinished", undone_halfway),
    Situation("plan-changed", plan_edited, plan_moved_away, "move the plan away"),
    Situation(
        "checkpoint-changed",
        old_checkpoint_lost,
        brought_back(lambda scene: scene.checkpoint),
        "restore the checkpoint from a backup",
    ),
    Situation(
        "backup-damaged",
        backup_lost,
        brought_back(lambda scene: _backup(scene) / "part-5.parquet"),
        "restore it from a copy",
    ),
    Situation(
        "backup-foreign",
        backup_of_another_cut,
        brought_back(lambda scene: _backup(scene) / "manifest.json"),
        "restore the operation's own backup",
    ),
    Situation("output-changed", output_edited, output_as_it_was, "which program writes"),
    Situation("restore-conflict", written_by_another_program, moved_out, "which program"),
    # Operations that have been applied
    Situation("undo-late", run_since),
    Situation("undo-late", all_run_since),
    Situation("undo-superseded", applied_twice),
    Situation("undo-pruned", pruned_since),
)
