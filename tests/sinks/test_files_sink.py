"""What ``sinks.files`` takes, and when two streams have one output."""

from pathlib import Path

import pytest

import slackwater as sw
from slackwater.core.errors import PipelineError, SinkUnreadable
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code


def test_a_path_may_be_a_pathlib_path(tmp_path: Path) -> None:
    assert sw.sinks.files("json", tmp_path / "out") == sw.sinks.files("json", f"{tmp_path}/out")


@pytest.mark.parametrize("path", ["out", "a#b", "a%20b", "a?b", "a:b", "file:///a b", "s3a://bucket/a b"])
def test_the_identity_keeps_the_path_as_the_user_wrote_it(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    identity = sw.sinks.files("json", path).identity()
    assert identity["path"] == (path if "://" in path else f"{tmp_path}/{path}")


@pytest.mark.parametrize("other", ["real/out", "link/out", "real/x/../out", "real/out/", "file://{folder}/link/out"])
def test_two_streams_on_one_output_are_recognised(other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real" / "x").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.chdir(tmp_path)
    pipeline = sw.Pipeline("work")
    pipeline.stream(name="one", sink=sw.sinks.files("json", "real/out"))(_source)
    with raises_code(PipelineError, "sink-shared"):
        pipeline.stream(name="two", sink=sw.sinks.files("json", other.format(folder=tmp_path)))(_source)
    pipeline.stream(name="three", sink=sw.sinks.files("json", "real/other"))(_source)


def test_two_streams_may_share_an_output_that_skips_nothing() -> None:
    pipeline = sw.Pipeline("work")
    for name in ("one", "two"):
        pipeline.stream(name=name, sink=Unregistered("json", "out"))(_source)
    assert list(pipeline.streams) == ["one", "two"]


class Unregistered(sw.sinks.FilesSink):
    def identity(self) -> dict[str, str]:
        return {"kind": "unregistered"}


def test_defining_streams_opens_no_store() -> None:
    pipeline = sw.Pipeline("work")
    for number in range(2):
        pipeline.stream(name=f"s{number}", sink=sw.sinks.files("json", f"gs://bucket/{number}"))(_source)
    with raises_code(PipelineError, "sink-shared"):
        pipeline.stream(name="again", sink=sw.sinks.files("json", "gs://bucket/1/"))(_source)


@pytest.mark.parametrize("identity", [{"kind": "files"}, {"kind": "files", "path": ""}])
def test_an_incomplete_identity_is_an_error(identity: dict[str, str]) -> None:
    with raises_code(SinkUnreadable, "sink-identity"):
        open_output(identity)


def _source(spark: object) -> object:
    return spark


def test_an_error_of_the_library_answers_as_errors_of_pyspark_do() -> None:
    with pytest.raises(sw.SlackwaterError) as caught:
        sw.sinks.files("xml", "out/")

    assert caught.value.getCondition() == "sink-format"
    assert caught.value.getMessageParameters() == {
        "expected": "parquet, orc, json, csv, text, avro",
        "found": "'xml'",
        "hint": 'for example sinks.files("parquet", "out/")',
    }
