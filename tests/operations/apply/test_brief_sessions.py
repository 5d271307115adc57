"""Spark is started for a short life where an apply replays little, and for speed where it replays much."""

from pathlib import Path
from typing import Any

import pytest

from slackwater.core.commands import session_words
from slackwater.core.errors import OutcomeUnknown
from slackwater.operations.action import Display
from slackwater.operations.apply.apply_plan import apply_plan
from slackwater.runtime.session import SessionOptions
from slackwater.runtime.session.session import FIRST_COMPILER, end_session, start_session
from tests.support import warm_python
from tests.support.homes import STREAM
from tests.support.rebuilds import Project, StopBefore, StubReplayer, StubRuntime, make_project


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


# The commands that an apply prints repeat the options with which Spark was started: others would make other rows.


ZONE = {"spark.sql.session.timeZone": "Europe/Berlin"}
GIVEN = "--conf spark.sql.session.timeZone=Europe/Berlin"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make_project(tmp_path / "project")


def _apply(project: Project, display: Display) -> None:
    runtime = StubRuntime(StubReplayer(project.folder / "clicks.py"))
    with project.open() as workspace:
        session, plan = session_words(None, ZONE), project.plan("batch:3")
        apply_plan(workspace, plan, runtime, display, discard_others=True, session=session)


def test_an_interrupted_apply_is_continued_with_them(project: Project) -> None:
    with pytest.raises(KeyboardInterrupt) as interrupted:
        _apply(project, StopBefore("replay-batches"))

    (note,) = interrupted.value.__notes__
    assert f"plan.json --yes {GIVEN}; or go back: slackwater undo" in note
    assert GIVEN not in note.partition("or go back")[2], "undo starts no Spark"


def _fail() -> None:
    raise OSError("connection lost")


def test_so_is_one_that_was_applied_in_part(project: Project) -> None:
    with pytest.raises(OutcomeUnknown) as unknown:
        _apply(project, StopBefore("switch-generation", _fail))

    assert f"--yes {GIVEN};" in (unknown.value.hint or "")


def test_a_plan_names_them_for_the_next_step(project: Project) -> None:
    words = ("plan", "replay", STREAM, "--from", "batch:3", "--output", "cut", *GIVEN.split())
    planned = [
        warm_python.run([*words, *more], project.folder, {}).stderr.splitlines()[-1]
        for more in ((), ("--out", "plan.json"))
    ]

    assert f" {GIVEN} --out " in planned[0]
    assert planned[1] == f"next: slackwater apply plan.json {GIVEN}"


def test_secrets_are_not_repeated() -> None:
    given = {"spark.hadoop.fs.s3a.secret.key": "s3cret", "spark.app.db": "postgresql://me:s3cret@host/db", **ZONE}

    words = session_words("local[2]", given)

    assert words[:2] == ("--master", "local[2]")
    assert words[2:-2] == ("--conf", "spark.hadoop.fs.s3a.secret.key=VALUE", "--conf", "spark.app.db=VALUE")
    assert " ".join(words[-2:]) == GIVEN


def test_none_are_named_where_none_were_given() -> None:
    assert session_words(None, {}) == ()
