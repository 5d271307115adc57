"""Spark is started for a short life where an apply replays little, and for speed where it replays much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from slackwater.operations.action import Display
from slackwater.operations.apply.apply_plan import apply_plan
from slackwater.runtime.session.options import SessionOptions
from slackwater.runtime.session.session import FIRST_COMPILER, end_session, start_session
from tests.support.rebuilds import StubReplayer, StubRuntime, make_project


@pytest.mark.parametrize(("took_ms", "brief"), [(500, True), (60_000, False), (None, False)])
def test_a_short_replay_asks_for_a_short_life(tmp_path: Path, took_ms: int | None, brief: bool) -> None:
    project = make_project(tmp_path / "project")
    project.claim_output()
    with project.open() as workspace:
        for batch in workspace.ledger.batches(project.stream):
            durations = {} if took_ms is None else {"triggerExecution": took_ms}
            workspace.ledger.record_batch(batch._replace(durations_ms=durations))
    plan = project.plan()
    assert (plan.cost.apply.batches > 0, plan.cost.apply.duration_ms is None) == (True, took_ms is None)
    runtime = StubRuntime(StubReplayer(project.folder / "clicks.py"))
    with project.open() as workspace:
        apply_plan(workspace, plan, runtime, Display(), discard_others=True)
    assert runtime.asked_brief == [brief]


@pytest.mark.thorough
@pytest.mark.spark
def test_its_jvm_has_the_first_compiler_alone_unless_the_user_gives_options() -> None:
    def times_given(options: SessionOptions) -> int:
        spark = start_session(options, lambda _: None)
        try:
            jvm: Any = spark.sparkContext._jvm
            arguments = jvm.java.lang.management.ManagementFactory.getRuntimeMXBean().getInputArguments()
            return list(arguments).count(FIRST_COMPILER)
        finally:
            end_session(spark)

    usual = times_given(SessionOptions("usual", "local[1]"))
    assert times_given(SessionOptions("brief", "local[1]", brief=True)) == usual + 1
    own = {"spark.driver.extraJavaOptions": "-Dmine=1"}
    assert times_given(SessionOptions("own", "local[1]", own, brief=True)) == usual
