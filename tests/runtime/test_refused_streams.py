"""Streams that are refused, cannot be built or are held elsewhere: the others of the file run, and each is named."""

import pytest

from slackwater.ledger.lease import Lease
from tests.runtime.project import PIPELINE as WORK
from tests.runtime.project import Project

pytestmark = pytest.mark.spark

PIPELINE = """
import slackwater as sw
from pyspark.sql import functions as F

pipeline = sw.Pipeline("work")

def source(spark):
    return spark.readStream.schema("id LONG").option("maxFilesPerTrigger", 4).json("in")

def fails(spark):
    raise ValueError("no such table")

def batch(spark):
    return spark.read.schema("id LONG").json("in")

def unowned(spark):
    return source(spark).where("raise_error('x') IS NULL AND nowhere = 1")

def clicks(spark):
    return source(spark).select("id", F.timestamp_seconds("id").alias("at")).withWatermark("at", "1 minute")

def left(spark):
    return clicks(spark).join(clicks(spark), ["id", "at"], "leftOuter")

def reads_fails(spark, context):
    return spark.readStream.schema("id LONG").json(context.output("fails"))

for name, function in {
    "fails": fails, "reads_fails": reads_fails, "batch": batch, "unresolved": unowned,
    "continuous": source, "held": source, "owned": source, "changed": source, "sound": source,
}.items():
    trigger = sw.triggers.continuous("1 second") if name == "continuous" else sw.triggers.available_now()
    pipeline.stream(name=name, sink=sw.sinks.files("json", f"{ROOT}/{name}"), trigger=trigger)(function)

once = sw.triggers.available_now()
pipeline.stream(name="left", sink=sw.sinks.noop(), output_mode="update", trigger=once)(left)
"""
SAID = {
    "fails": ("stream-fails", "repeat the command with --debug"),
    "batch": ("stream-return", "Slackwater starts the query"),
    "unresolved": ("stream-fails", "--debug"),
    "continuous": ("trigger-continuous", "use triggers.processing_time"),
    "held": ("lease-held", "wait until it has ended: slackwater status work/held"),
    "owned": ("sink-owned", "give the stream an output directory of its own"),
    "changed": ("sink-changed", "give the changed stream a new name"),
}


def test_the_other_streams_run_and_each_refused_one_is_named_with_its_hint(project: Project) -> None:
    project.add_files(4)
    project.write(f"ROOT = 'before'\n{PIPELINE}")
    project.run("--stream", "changed")
    project.write(f"ROOT = 'out'\n{PIPELINE}")
    (project.folder / "out" / "owned").mkdir(parents=True)
    owner = '{"stream_id": "another", "stream": "other/stream", "home": "/elsewhere"}'
    (project.folder / "out" / "owned" / "_slackwater.json").write_text(owner)

    with project.ledger() as ledger:
        lease = Lease.acquire(ledger, f"{WORK}/held", project.home.stream_folder(WORK, "held"), "apply rebuild")
        with lease:
            command = project.run("--until-caught-up", "--debug", expected=7)
            # A stream that was refused is free for the operation that its hint names.
            assert (free := ledger.lease(f"{WORK}/changed")) is not None
            assert free.holder is None

    assert project.ids("out/sound") == list(range(4)), command.log
    assert f"{WORK}/sound: finished" in command.log
    for name, (code, hint) in SAID.items():
        assert f"{WORK}/{name}: failed: {code}: " in command.log, command.log
        [said] = [line for line in command.log.splitlines() if f"{WORK}/{name} does not start: {code}: " in line]
        assert hint in said.partition("(hint: ")[2], said
    [said] = [line for line in command.log.splitlines() if f"{WORK}/left does not start: query-refused: " in line]
    assert "uses a join of two streams in a mode other than append, which is not supported on a stream" in said
    assert "aggregat" not in said
    assert "Traceback" in command.log
    assert "in fails" in command.log, "--debug, which the hint names, shows the user's own lines"
    assert f"{WORK}/reads_fails: not-started: fails, whose output it reads, failed" in command.log


def test_a_run_without_a_stream_that_can_start_ends_with_the_first_error(project: Project) -> None:
    project.add_files(1)
    project.write(f"ROOT = 'out'\n{PIPELINE}")

    command = project.run("--stream", "continuous", "--stream", "fails", expected=2)

    assert f"{WORK}/fails does not start: stream-fails: " in command.log
    assert "error trigger-continuous: " in command.log
