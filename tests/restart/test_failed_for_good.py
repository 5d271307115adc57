"""Failures that a restart cannot fix: said with a next step that works where there is one; several watermarks, too."""

from pathlib import Path

import pytest

from tests.restart.scenario import CONF, SCHEMA, STREAM
from tests.restart.small import BODY, CAUGHT_UP, HEADER, PIPELINE, SOURCE, SmallWorkspace, follow
from tests.support.homes import edit_ledger

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
SUM = 'F.sum("n").alias("n")'
RENAMED_STATE = PIPELINE.replace(SUM, 'F.collect_set("n").cast("string").alias("n")')
REMOVED_OPERATOR = PIPELINE.replace(
    BODY[BODY.index("    return") :], '    return marked.select(F.window("ts", "30 minutes"), "page", "n")\n'
)
ADDED_SOURCE = PIPELINE.replace(f"rows = {SOURCE}", f"rows = {SOURCE}.union({SOURCE.replace('landing', 'more')})")
FAILING = (
    HEADER
    + "\nfrom pyspark.sql.types import LongType\n\n\n@F.udf(LongType())\ndef broken(value):\n    return value // 0\n"
    + BODY.replace(SUM, 'F.sum(broken("n")).alias("n")')
)
JOINED = (
    HEADER
    + f'''
@pipeline.stream(sink=sw.sinks.files("parquet", "out"))
def per_page(spark):
    left = {SOURCE}.withWatermark("ts", "10 minutes")
    right = spark.readStream.schema("{SCHEMA}").json("more").withWatermark("ts", "10 minutes")
    right = right.select(F.col("ts").alias("at"), F.col("page").alias("there"))
    return left.join(right, F.expr("page = there AND at BETWEEN ts AND ts + INTERVAL 10 MINUTES"))
'''
)


def _fails(workspace: SmallWorkspace, pipeline: str, *accepted: str) -> dict[str, object]:
    """Run the changed pipeline, which fails; the verdict of ``status`` then, with what comes next."""
    workspace.write(pipeline)
    workspace.slackwater(*CAUGHT_UP, *accepted, code=7)
    status = workspace.status(code=7)
    assert status["verdict"]["code"] == "failed-permanently"
    return next(finding for finding in status["findings"] if finding["code"] == "failed-permanently")


def test_changes_that_the_state_does_not_survive_lead_to_a_rebuild(tmp_path: Path) -> None:
    workspace = SmallWorkspace(tmp_path / "changed")
    (workspace.folder / "more").mkdir()
    workspace.add("first", range(100))
    workspace.caught_up()
    before = workspace.rows()
    workspace.add("second", range(100, 200))

    failing = _fails(workspace, FAILING, "--accept", "aggregates-changed")
    assert "next" not in failing
    assert "clicks.py" in str(failing["advice"])
    for pipeline, code in ((REMOVED_OPERATOR, "operators-changed"), (ADDED_SOURCE, "sources-changed")):
        workspace.write(pipeline)
        assert code in workspace.slackwater(*CAUGHT_UP, code=5).stderr
    # Without a recorded program Spark finds this change itself.
    workspace.forget_programs()
    changed = _fails(workspace, RENAMED_STATE)
    assert workspace.rows() == before

    assert str(changed["next"]).startswith("slackwater plan rebuild")
    typed = follow(workspace, str(changed["next"]), lambda: workspace.checkpoint.name == "0002")
    assert [command.split()[0] for command in typed] == ["plan", "plan", "apply"], "planned to be read, then to a file"
    following = workspace.status()["next"]
    follow(workspace, following, lambda: workspace.rows() - before != {}, steps=1)
    assert workspace.rows(last=1) == before
    assert workspace.status()["verdict"]["code"] == "clean"


def test_several_watermarks_that_are_not_recorded_are_said_at_the_start_in_the_plan_and_in_the_status(
    tmp_path: Path,
) -> None:
    workspace = SmallWorkspace(tmp_path / "joined", JOINED)
    workspace.add("left", range(100))
    workspace.add("right", range(100), folder="more")
    assert "several watermarks" not in workspace.caught_up().stderr
    assert "several-watermarks" not in [finding["code"] for finding in workspace.status()["findings"]]
    assert "several watermarks" not in workspace.slackwater("plan", "rebuild", STREAM).stdout

    edit_ledger(workspace.folder / ".slackwater", "DELETE FROM log_lines WHERE log = 'input-watermarks'")
    assert "several-watermarks" in [finding["code"] for finding in workspace.status()["findings"]]
    assert "several watermarks" in workspace.slackwater("plan", "rebuild", STREAM).stdout
    workspace.add("more-left", range(100, 150))
    assert "several watermarks" in workspace.slackwater("run", "clicks.py", "--until-caught-up", *CONF).stderr
