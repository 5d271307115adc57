"""Mistakes of a user: each gives a code, a place or a comparison, and its exit code; never a traceback."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest

from slackwater.operations.plan.document import digest_of
from tests.cli.conftest import Slackwater
from tests.support.homes import make_home

HEAD = "import slackwater as sw\np = sw.Pipeline('x')\n"
STREAM = "@p.stream(sink=sw.sinks.files('parquet', 'out'))\ndef a(spark): ...\n"
NO_POSITIONS = ("", "earliest", "batch:", "batch:-1", "batch:x", "batch:1e3")
NO_RANGES = ("", "x", "5..3", "1...2", "-1", "1.2", "\u0663")


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("x = (\n", "pipeline-fails", "pipeline.py:1"),
        ("import no_such_module_here\n", "pipeline-import", "pipeline.py:1"),
        ("\nraise ValueError('one\\ntwo')\n", "pipeline-fails", "pipeline.py:2"),
        ("raise SystemExit(3)\n", "pipeline-fails", "pipeline.py:1"),
        ("x = 1\n", "pipeline-count", "pipeline.py"),
        ("from pyspark import pipelines as dp\n\n@dp.table\ndef a(): ...\n", "program-kind", "spark-pipelines"),
        ("# COMMAND ----------\nrows = spark.readStream.table('a')\n", "program-kind", "code of a notebook"),
        ("dbutils.widgets.get('a')\nspark.range(1).writeStream.start('b')\n", "program-kind", "spark, dbutils"),
        (HEAD + "q = sw.Pipeline('y')\n" + STREAM, "pipeline-count", "pipeline.py"),
        (HEAD, "pipeline-empty", "pipeline.py"),
        ("import slackwater as sw\np = sw.Pipeline('a/b')\n", "pipeline-name", "pipeline.py:2"),
        (HEAD + STREAM.replace("sink=", "name='../a', sink="), "stream-name", "pipeline.py:3"),
        (HEAD + STREAM + STREAM.replace("'out'", "'other'"), "stream-duplicate", "pipeline.py:5"),
        (HEAD + STREAM + STREAM.replace("'out'", "'x/../out/'").replace("def a", "def b"), "sink-shared", "out"),
        (HEAD + STREAM.replace("sw.sinks.files('parquet', 'out')", "'out'"), "sink-kind", "x/a"),
        (HEAD + STREAM.replace("parquet", "parquett"), "sink-format", "pipeline.py:3"),
        (HEAD + STREAM.replace("files('parquet', ", "hudi("), "sink-unknown", "pipeline.py:3"),
        (HEAD + STREAM.replace("files('parquet', ", "nosuch("), "sink-unknown", "one of slackwater.sinks.files"),
        ("\nfrom slackwater.sinks import hudi\n", "sink-unknown", "pipeline.py:2"),
        (HEAD + STREAM.replace("'out')", "'out'), output_mode='update'"), "output-mode", "x/a"),
        (HEAD + STREAM.replace("'out')", "'out'), trigger=5"), "trigger-interval", "pipeline.py:3"),
        (HEAD + "@p.stream\ndef a(spark): ...\n", "pipeline-fails", "pipeline.py:3"),
    ],
)
def test_pipeline_files(slackwater: Slackwater, tmp_path: Path, text: str, code: str, place: str) -> None:
    (tmp_path / "pipeline.py").write_text(text)

    done = slackwater("run", "pipeline.py")

    assert done.code == 2
    assert done.err.startswith(f"error {code}: ")
    assert f"{place}" in done.err.splitlines()[0]
    assert "Traceback" not in done.err


FAILING = "import slackwater as sw\n\ndef helper():\n    raise ValueError('one')\n\nhelper()\n"


def test_debug_shows_the_users_own_frames_and_no_others(slackwater: Slackwater, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(FAILING)

    done = slackwater("run", "pipeline.py", "--debug")

    assert done.code == 2
    *traceback, error, _hint = done.err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert [line for line in traceback if line.startswith("  File ")] == [
        '  File "<folder>/pipeline.py", line 6, in <module>',
        '  File "<folder>/pipeline.py", line 4, in helper',
    ]
    assert traceback[-1] == "ValueError: one"
    assert error.startswith("error pipeline-fails: ")


@pytest.mark.parametrize("verb", [("apply", "absent.json", "--yes"), ("plan", "rebuild", "absent")])
def test_debug_is_taken_by_the_other_verbs_that_read_a_pipeline(slackwater: Slackwater, verb: tuple[str, ...]) -> None:
    done = slackwater(*verb, "--debug")

    assert "Traceback" not in done.err
    assert done.err.startswith("error ")


@pytest.mark.parametrize("reference", ["absent.py", "absent_module", "absent.module", "folder"])
def test_a_pipeline_that_is_not_there(slackwater: Slackwater, tmp_path: Path, reference: str) -> None:
    (tmp_path / "folder").mkdir()

    done = slackwater("run", reference)

    assert (done.code, done.err.split(":")[0]) == (2, "error pipeline-absent")


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        ("plan rebuild per_page --at yesterday", "target", 2),
        ("plan rebuild per_page --at batch:99", "target-unwritten", 5),
        ("plan rebuild per_page --retention long", "duration", 2),
        ("plan rebuild per_page --out no/such/folder/plan.json", "out-unwritable", 2),
        ("plan rebuild per_page --pipeline absent.py", "pipeline-absent", 2),
        ("plan backfill per_page --output aside", "backfill-directory", 2),
        ("plan backfill per_page --into older", "backfill-directory", 2),
        ("plan backfill per_page --output keep --into older", "backfill-directory", 2),
        ("plan backfill per_page --output aside --into ' '", "usage", 2),
        ("plan backfill per_page --output aside --into '~/older'", "sink-path", 2),
        ("plan backfill per_page --output aside --into s3://bucket/a%20b", "sink-path", 2),
        ("plan backfill per_page --output swap --into older", "usage", 2),
        *((f"offsets per_page --at={at}", "target", 2) for at in NO_POSITIONS),
        *((f"ledger per_page --batches={wanted}", "batch-range", 2) for wanted in NO_RANGES),
    ],
)
def test_values_that_cannot_be(slackwater: Slackwater, tmp_path: Path, words: str, code: str, exit_code: int) -> None:
    make_home(tmp_path)

    done = slackwater(*shlex.split(words), "--format", "json")

    assert (done.code, done.error["code"]) == (exit_code, code)


def test_a_plan_whose_source_files_do_not_exist(slackwater: Slackwater, tmp_path: Path) -> None:
    make_home(tmp_path)
    shutil.rmtree(tmp_path / "clicks")

    done = slackwater("plan", "rebuild", "per_page", "--format", "json")

    assert (done.code, done.error["code"]) == (5, "source-files-lost")


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("slackwater.plan/1", "slackwater.plan/2", "plan-schema"),
        ('"planned": 5', '"planned": "five"', "plan-damaged"),
        ('"kind": "verify-generation"', '"kind": "destroy-everything"', "plan-damaged"),
        ("{", "", "plan-unreadable"),
    ],
)
def test_damaged_plans(slackwater: Slackwater, tmp_path: Path, old: str, new: str, code: str) -> None:
    plan = _plan(slackwater, tmp_path)
    plan.write_text(plan.read_text().replace(old, new, 1))

    done = slackwater("apply", "plan.json", "--yes", "--format", "json")

    assert (done.code, done.error["code"]) == (2, code)
    assert done.error["where"] == "plan.json"


def test_a_plan_of_another_home(slackwater: Slackwater, tmp_path: Path) -> None:
    plan = _plan(slackwater, tmp_path)
    document = json.loads(plan.read_text()) | {"stream": "clicks/other"}
    document.pop("digest")
    plan.write_text(json.dumps(document | {"digest": digest_of(document)}))

    done = slackwater("apply", "plan.json", "--yes", "--format", "json")

    assert (done.code, done.error["code"]) == (4, "stream-unknown")


@pytest.mark.parametrize(
    ("name", "expected"), [("absent.json", (4, "plan-absent")), ("folder", (2, "plan-unreadable"))]
)
def test_a_plan_that_cannot_be_read(
    slackwater: Slackwater, tmp_path: Path, name: str, expected: tuple[int, str]
) -> None:
    (tmp_path / "folder").mkdir()

    done = slackwater("apply", name, "--yes", "--format", "json")

    assert (done.code, done.error["code"]) == expected


def test_a_plan_file_can_be_named_after_a_batch(slackwater: Slackwater, tmp_path: Path) -> None:
    _plan(slackwater, tmp_path).rename(tmp_path / "replay-batch:3.json")
    done = slackwater("apply", "replay-batch:3.json")
    assert (done.code, "error unconfirmed" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("nope",), "slackwater --help"),
        (("run",), "slackwater run --help"),
        (("status", "--nope"), "slackwater status --help"),
        (("status", "--format", "yaml"), "slackwater status --help"),
        (("plan",), "slackwater plan --help"),
    ],
)
def test_command_lines(slackwater: Slackwater, arguments: tuple[str, ...], hint: str) -> None:
    done = slackwater(*arguments)

    assert done.code == 2
    assert done.err.startswith("error usage: ")
    assert done.err.splitlines()[-1].endswith(hint)


@pytest.mark.parametrize(
    ("arguments", "suggestion"),
    [
        (("staus",), "did you mean status?"),
        (("initt", "x"), "did you mean init?"),
        (("plan", "rebuid", "x"), "did you mean rebuild?"),
        (("connectors", "lst"), "did you mean list?"),
        (("run", "x.py", "--until-caugt-up"), "did you mean --until-caught-up?"),
        (("run", "x.py", "--home-folder=x"), "did you mean --home?"),
        (("plan", "rebuild", "x", "--ot", "plan.json"), "did you mean --out"),
    ],
)
def test_a_misspelt_word_gets_a_suggestion(slackwater: Slackwater, arguments: tuple[str, ...], suggestion: str) -> None:
    done = slackwater(*arguments)

    assert done.code == 2
    assert suggestion in done.err.splitlines()[0]


@pytest.mark.parametrize("arguments", [("qqq",), ("status", "--qqq")])
def test_a_word_like_no_other_gets_none(slackwater: Slackwater, arguments: tuple[str, ...]) -> None:
    done = slackwater(*arguments)

    assert done.code == 2
    assert "did you mean" not in done.err


def test_help_is_no_error(slackwater: Slackwater) -> None:
    for arguments in ((), ("--help",), ("status", "--help")):
        assert slackwater(*arguments).code == 0


@pytest.mark.parametrize("verb", [("stop", "per_page"), ("stop", "per_page", "--wait", "1s")])
def test_stopping_what_does_not_run(slackwater: Slackwater, tmp_path: Path, verb: tuple[str, ...]) -> None:
    make_home(tmp_path)

    done = slackwater(*verb, "--format", "json")

    assert (done.code, done.error["code"]) == (4, "not-running")
    assert done.error["hint"] == "slackwater status clicks/per_page"


def test_a_ledger_that_is_none(slackwater: Slackwater, tmp_path: Path) -> None:
    home = make_home(tmp_path)
    for file in home.glob("ledger.db*"):
        file.unlink()
    (home / "ledger.db").write_text("this is no database, whatever its name says")

    done = slackwater("status", "--format", "json")

    assert (done.code, done.error["code"]) == (3, "ledger-unreadable")


@pytest.mark.parametrize("verb", [("status",), ("ledger",), ("offsets", "per_page"), ("plan", "rebuild", "per_page")])
def test_every_verb_takes_a_home(slackwater: Slackwater, tmp_path: Path, verb: tuple[str, ...]) -> None:
    make_home(tmp_path)
    shutil.move(tmp_path / ".slackwater", tmp_path / "elsewhere")

    for shown_as in ("text", "json"):
        done = slackwater(*verb, "--home", "elsewhere", "--format", shown_as)
        assert done.code in {0, 5}
        assert "ledger-missing" not in done.err


def _plan(slackwater: Slackwater, folder: Path) -> Path:
    make_home(folder)
    assert slackwater("plan", "rebuild", "per_page", "--out", "plan.json").code == 0
    assert json.loads((folder / "plan.json").read_text())["stream"] == "clicks/per_page"
    return folder / "plan.json"
