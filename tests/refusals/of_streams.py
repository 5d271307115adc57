"""What ``run``, ``status`` and ``plan`` refuse: the number line, whose home and output it is, and plans."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable

from slackwater.core.commands import copy_again_command
from slackwater.core.records import OperationRecord
from slackwater.ledger.lease import Lease
from slackwater.ledger.ledger import Ledger
from tests.refusals.scene import Scene
from tests.refusals.situations import RUN, Situation, another_output, brought_back, edit, removed_aside, spoilt
from tests.support.homes import LAYOUT, RAN_MS, START_MS, STATELESS, STREAM, HomeSpec
from tests.support.stages import add_stage

CHECKPOINT = ".slackwater/streams/clicks/per_page/checkpoints/0001"
UNFINISHED = HomeSpec(planned=6, state=None, layout=STATELESS)
IN_ORDER = HomeSpec()
PLAN = "plan rebuild per_page"
SILENT = """import slackwater
from slackwater.sinks.files.sink import FilesSink
class Silent(FilesSink):
    def identity(self): return {"kind": "silent"}
pipeline = slackwater.Pipeline("clicks")
@pipeline.stream(sink=Silent("parquet", "out"))
def per_page(spark): ...
"""


def as_it_is(_: Scene) -> str:
    """The marks of the home are enough."""
    return RUN


def edited_offsets(scene: Scene) -> str:
    """The range of a committed batch was edited, so that its rows would be read again."""
    edit(scene, f"{CHECKPOINT}/offsets/5", '"logOffset":5', '"logOffset":4')
    return RUN


def torn_offsets(scene: Scene) -> str:
    file = scene.checkpoint / "offsets" / "6"
    file.write_bytes(file.read_bytes()[:20])
    return RUN


def older_checkpoint(scene: Scene) -> str:
    """A checkpoint from a backup, behind a sink that does not show what it holds."""
    with_silent_sink(scene)
    for log, last in (("offsets", 3), ("commits", 3)):
        for path in (scene.checkpoint / log).iterdir():
            if int(path.name) > last:
                path.unlink()
    return "status per_page"


def with_silent_sink(scene: Scene) -> None:
    """The stream has had a sink all along that shows nothing of its batches."""
    (scene.folder / "clicks.py").write_text(SILENT)
    code, identity = hashlib.sha256(SILENT.encode()).hexdigest(), {"kind": "silent"}
    scene.sql("UPDATE streams SET sink = ?", values=(json.dumps(identity),))
    scene.sql("UPDATE runs SET code = ?", values=(code,))
    scene.sql("DELETE FROM log_lines WHERE log = 'sink'")
    file = scene.stream / "stream.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"sink": identity}))


def owned_by_another(scene: Scene) -> str:
    fields = {"stream_id": "another", "stream": "web/other", "home": "/elsewhere"}
    (scene.folder / "out" / "_slackwater.json").write_text(json.dumps(fields))
    return RUN


def moved_home(scene: Scene) -> str:
    scene.must(PLAN)
    (scene.folder / ".slackwater").rename(scene.folder / "home")
    return f"{RUN} --home home"


def copied_home(scene: Scene) -> str:
    """``cp -a`` of a project; the copy is worked in."""
    scene.must(PLAN)
    shutil.copytree(scene.folder / ".slackwater", scene.folder / "home")
    return f"{RUN} --home home"


def declared(how: str) -> Callable[[Scene], str]:
    """Accept the home; of a copy the output stays the original's, and a new one is needed."""

    def declare(scene: Scene) -> str:
        if how == "--copied":
            another_output(scene)
        scene.must(f"home accept {how} --home home")
        return f"{RUN} --home home"

    return declare


def copied_with_its_ledger(scene: Scene) -> str:
    scene.must(PLAN)
    shutil.copytree(scene.folder / ".slackwater", scene.folder / "home")
    (scene.folder / "slackwater.toml").write_text(f'ledger = "{scene.folder}/home/ledger.db"\n')
    return "home accept --copied --home home"


def a_ledger_of_its_own(scene: Scene) -> str:
    (scene.folder / "slackwater.toml").unlink()
    return declared("--copied")(scene)


def copied_by_links(scene: Scene) -> str:
    scene.must(PLAN)
    shutil.copytree(scene.folder / ".slackwater", scene.folder / "home", copy_function=os.link)
    return "home accept --copied --home home"


def copied_again(scene: Scene) -> str:
    command = copy_again_command(str(scene.folder / ".slackwater"), str(scene.folder / "home"))
    subprocess.run(["bash", "-c", command], check=True, timeout=60)
    return declared("--copied")(scene)


def left_halfway(scene: Scene) -> str:
    scene.plan("--at", "batch:3")
    scene.interrupt("switch-generation")
    return RUN


def working_on_it(scene: Scene) -> str:
    """An apply in another process; here it only holds the lease."""
    with Ledger.open(scene.project.home / "ledger.db", create=False) as ledger:
        record = OperationRecord("20260105T093000-1a2b3c", STREAM, "rebuild", "applying", RAN_MS, summary="x")
        ledger.begin_operation(record)
        Lease.acquire(ledger, STREAM, scene.stream, "apply rebuild")
    return "status per_page"


def a_lease_of_an_apply(scene: Scene) -> str:
    working_on_it(scene)
    return RUN


def it_has_ended(scene: Scene) -> str:
    scene.sql("UPDATE leases SET host = NULL", "UPDATE operations SET ended_ms = 1, status = 'undone'")
    (scene.stream / "lease.json").unlink(missing_ok=True)
    return RUN


def nothing_recorded(scene: Scene) -> str:
    removed_aside(scene, CHECKPOINT)
    scene.sql("DELETE FROM log_lines", "DELETE FROM batches")
    return PLAN


def old_ranges_lost(scene: Scene) -> str:
    for batch in range(3):
        (scene.checkpoint / "offsets" / str(batch)).unlink()
    scene.sql("CREATE TABLE saved AS SELECT * FROM log_lines", "DELETE FROM log_lines WHERE entry < 3")
    return f"{PLAN} --at batch:3"


def ledger_restored(scene: Scene) -> None:
    scene.sql("INSERT OR IGNORE INTO log_lines SELECT * FROM saved", "DROP TABLE saved")


def one_range_lost(scene: Scene) -> str:
    (scene.checkpoint / "offsets" / "3").unlink()
    scene.sql("DELETE FROM log_lines WHERE log = 'offsets' AND entry = 3")
    return f"{PLAN} --at batch:3"


def query_id_lost(scene: Scene) -> str:
    removed_aside(scene, f"{CHECKPOINT}/metadata")
    scene.sql("UPDATE generations SET query_id = NULL", "DELETE FROM log_lines WHERE log = 'metadata'")
    return PLAN


def compacted_manifest(scene: Scene) -> str:
    manifest = scene.folder / "out" / "_spark_metadata"
    lines = [(manifest / str(batch)).read_text().split("\n")[1] for batch in range(5)]
    (manifest / "4.compact").write_text("\n".join(["v1", *lines]))
    for batch in range(5):
        (manifest / str(batch)).unlink()
    scene.sql("DELETE FROM log_lines WHERE log = 'sink'")
    return f"{PLAN} --at batch:3"


def foreign_manifest(scene: Scene) -> str:
    edit(scene, "out/_spark_metadata/5", f"file://{scene.folder}/out", "file:///elsewhere/out")
    scene.sql("DELETE FROM log_lines WHERE log = 'sink'")
    return f"{PLAN} --at batch:3"


def manifest_restored(scene: Scene) -> None:
    brought_back("out/_spark_metadata/5")(scene)
    scene.sql("DELETE FROM log_lines WHERE log = 'sink'")


def read_downstream(scene: Scene) -> str:
    add_stage(scene.project, "day", "out", HomeSpec(planned=4, committed=4, state=4, written=4))
    return f"{PLAN} --at batch:3"


def read_to_the_end(scene: Scene) -> str:
    """The sink is ahead, and its last batch was read."""
    add_stage(scene.project, "day", "out", HomeSpec(planned=6, committed=6, state=6, written=6))
    return PLAN


def input_time_restored(scene: Scene) -> None:
    written_ns = (START_MS + 5) * 1_000_000
    os.utime(scene.folder / "clicks/005.json", ns=(written_ns, written_ns))


def offsets_of_another_kind(scene: Scene) -> str:
    for file in (scene.checkpoint / "offsets").iterdir():
        file.write_text(file.read_text().replace('"logOffset":', '"somewhere":'))
    shutil.rmtree(scene.checkpoint / "sources")
    scene.sql("DELETE FROM log_lines WHERE log = 'offsets' OR log LIKE 'sources%'")
    return f"{PLAN} --at batch:3"


def other_sink(scene: Scene) -> str:
    older_checkpoint(scene)
    return f"{PLAN} --at batch:3"


no_checkpoint = spoilt(lambda scene: shutil.rmtree(scene.checkpoint))
damaged_output = spoilt(lambda scene: (scene.folder / "out" / "part-5.parquet").unlink())
no_output = spoilt(lambda scene: shutil.rmtree(scene.folder / "out"), PLAN)
another_range = spoilt(lambda scene: edit(scene, f"{CHECKPOINT}/offsets/6", '"logOffset":6', '"logOffset":5'))
"""The sink has batch 6; the checkpoint plans it with another range than the one recorded."""
commits_lost = spoilt(with_silent_sink)
"""Batches after the newest commit were planned, as of a backup of an older commits/, and no sink shows them."""

SITUATIONS = (
    # The number line
    Situation("sink-ahead", as_it_is, spec=HomeSpec(written=6)),
    Situation("sink-behind", as_it_is, spec=HomeSpec(written=3)),
    Situation(
        "sink-foreign",
        as_it_is,
        lambda scene: removed_aside(scene, "out"),
        "output directory of its own, or move this one away",
        spec=HomeSpec(planned=-1, committed=-1, state=None, written=4, run="none"),
    ),
    Situation("range-changed", another_range, spec=HomeSpec(planned=6, written=6)),
    Situation("checkpoint-lost", no_checkpoint),
    Situation("checkpoint-damaged", torn_offsets),
    Situation("checkpoint-behind", older_checkpoint),
    Situation("output-damaged", damaged_output),
    Situation("state-lost", as_it_is, spec=HomeSpec(state=3)),
    Situation("state-not-kept", lambda _: "plan resume per_page", spec=HomeSpec(state=3)),
    Situation(
        "source-files-missing",
        spoilt(lambda scene: removed_aside(scene, "clicks/006.json")),
        brought_back("clicks/006.json"),
        "restore the files",
    ),
    Situation(
        "sink-unreadable",
        spoilt(lambda scene: edit(scene, "out/_spark_metadata/5", "v1\n{", "v1\n")),
        brought_back("out/_spark_metadata/5"),
        "mv -T",
    ),
    Situation("SW-LOG-011", edited_offsets, spec=IN_ORDER),
    Situation("SW-LOG-009", commits_lost, spec=HomeSpec(6, 3, state=None, layout=STATELESS)),
    Situation("operation-unfinished", left_halfway),
    Situation("operation-running", working_on_it, it_has_ended, "in progress"),
    Situation("lease-held", a_lease_of_an_apply, it_has_ended, "in progress"),
    # Whose home and output it is
    Situation("sink-owned", owned_by_another, another_output, "output directory of its own"),
    Situation("home-moved", moved_home, declared("--moved")),
    Situation("home-copied", copied_home, declared("--copied")),
    Situation("home-shares-files", copied_by_links, copied_again, "cp -rL"),
    Situation("home-shares-ledger", copied_with_its_ledger, a_ledger_of_its_own, "set a different ledger"),
    Situation(
        "sink-changed",
        spoilt(lambda scene: edit(scene, "clicks.py", '"out"', '"elsewhere"')),
        brought_back("clicks.py"),
        "from its usual directory",
    ),
    # Plans
    Situation("target-unwritten", lambda _: f"{PLAN} --at batch:9"),
    Situation("target-unwritten", lambda _: "plan replay per_page --from batch:9"),
    Situation("backfill-unready", lambda _: "plan backfill per_page", spec=UNFINISHED),
    Situation("output-skips", lambda _: "plan replay per_page --from batch:4 --output keep"),
    Situation("target-unknown", one_range_lost),
    Situation("history-empty", nothing_recorded, brought_back(CHECKPOINT), "restore the ledger or the checkpoint"),
    Situation("history-short", old_ranges_lost, ledger_restored, "restore the ledger or the checkpoint"),
    Situation("query-id-unknown", query_id_lost, brought_back(f"{CHECKPOINT}/metadata"), "restore the file metadata"),
    Situation("sink-empty", no_output),
    Situation(
        "sink-cut-unknown", compacted_manifest, lambda _: f"{PLAN} --at batch:4", "cut back to batch 4", spec=IN_ORDER
    ),
    Situation("manifest-foreign", foreign_manifest, manifest_restored, "move the output back"),
    Situation("cut-was-read", read_downstream),
    Situation("cut-was-read", read_to_the_end, spec=HomeSpec(written=6)),
    Situation(
        "source-files-lost",
        spoilt(lambda scene: removed_aside(scene, "clicks/004.json"), f"{PLAN} --at batch:3"),
        brought_back("clicks/004.json"),
        "restore the files",
    ),
    Situation(
        "source-files-replaced",
        spoilt(lambda scene: (scene.folder / "clicks/005.json").touch(), PLAN),
        input_time_restored,
        "set the time back: touch",
    ),
    Situation("source-unsupported", offsets_of_another_kind),
    Situation("sink-uncuttable", other_sink),
    Situation(
        "state-not-reproducible",
        lambda _: PLAN,
        spec=HomeSpec(layout=LAYOUT | {"operators": ["TransformWithStateInPySpark"]}),
    ),
)
