"""Settings reach Spark without appearing in the command line of a process."""

import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.runtime.session import session
from slackwater.runtime.session.launch import default_setting, launch, parse, render
from tests.runtime.project import Project

SECRETS = {
    "spark.hadoop.fs.s3a.secret.key": "hunter2-from-conf",
    "spark.hadoop.fs.s3a.session.token": "hunter2-from-toml",
    "spark.test.odd": " hunter2 \\ with:odd=#characters\\u0041 é ",
}

PIPELINE = """
import json
from pathlib import Path
import slackwater as sw

pipeline = sw.Pipeline("work")

@pipeline.stream(sink=sw.sinks.files("json", "out"))
def rows(spark):
    found = {"spark.conf " + key: spark.conf.get(key) for key in KEYS}
    found |= {"context " + key: value for key, value in spark.sparkContext.getConf().getAll() if key in KEYS}
    found["heap"] = spark.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() // 2**20
    Path("part.txt").write_text(json.dumps(found))
    Path("part.txt").rename("found.json")
    return spark.readStream.schema("id LONG").json("in")
"""


@pytest.mark.spark
def test_no_process_shows_a_secret_while_a_session_runs(project: Project) -> None:
    keys = [*SECRETS, "spark.test.default", "spark.test.overridden"]
    project.write(f"KEYS = {keys!r}\n{PIPELINE}")
    token = json.dumps(SECRETS["spark.hadoop.fs.s3a.session.token"])
    with (project.folder / "slackwater.toml").open("a") as file:
        file.write(f'"spark.hadoop.fs.s3a.session.token" = {token}\n')
        file.write(f'"spark.test.odd" = {json.dumps(SECRETS["spark.test.odd"])}\n')
    temporary = project.folder / "tmp"
    temporary.mkdir()
    configured = project.folder / "conf"
    configured.mkdir()
    (configured / "spark-defaults.conf").write_text(
        "spark.test.default theirs\nspark.test.overridden theirs\nspark.driver.memory 640m\n"
    )
    environment = {"SPARK_CONF_DIR": str(configured), "TMPDIR": str(temporary)}
    conf = "spark.hadoop.fs.s3a.secret.key=" + SECRETS["spark.hadoop.fs.s3a.secret.key"]
    command = project.start(
        *("run", "pipeline.py", "--conf", conf, "--conf", "spark.test.overridden=ours"), environment=environment
    )
    shown: dict[int, str] = {}

    def session_started() -> bool:
        shown.update({pid: _readable_of(pid) for pid in command.refresh() if pid != command.pid})
        return (project.folder / "found.json").exists()

    command.wait_for(session_started, "the session")
    shown.update({pid: _readable_of(pid) for pid in command.refresh()})

    assert any("org.apache.spark.deploy.SparkSubmit" in text for text in shown.values())
    assert [text for text in shown.values() if "hunter2" in text] == []
    assert not list(temporary.rglob("spark.properties"))
    found = json.loads((project.folder / "found.json").read_text())
    wanted = {**SECRETS, "spark.test.default": "theirs", "spark.test.overridden": "ours"}
    # The JVM's option in the user's spark-defaults.conf: it is read before there is a JVM.
    assert 600 <= found.pop("heap") <= 640
    assert found == {f"{where} {key}": value for where in ("spark.conf", "context") for key, value in wanted.items()}


def _readable_of(pid: int) -> str:
    """What other users can read of a process, and what a crash report or a child process gets: its environment."""
    try:
        return "".join((Path("/proc") / str(pid) / name).read_text(errors="replace") for name in ("cmdline", "environ"))
    except (FileNotFoundError, ProcessLookupError):
        return ""


class _Launched:
    """Takes the place of ``spark-submit``: notes its arguments and what is in the properties file."""

    def __init__(self) -> None:
        self.arguments = ""
        self.properties = ""
        self.file = Path()
        self.modes: tuple[int, int] = (0, 0)

    def __call__(self) -> str:
        self.arguments = os.environ["PYSPARK_SUBMIT_ARGS"]
        self.file = Path(self.arguments.split()[1])
        self.properties = self.file.read_text()
        self.modes = (stat.S_IMODE(self.file.stat().st_mode), stat.S_IMODE(self.file.parent.stat().st_mode))
        return "gateway"


@pytest.fixture
def launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Launched:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    return _Launched()


def test_the_file_is_private_and_removed(launched: _Launched) -> None:
    assert launch(launched, {"spark.a": "1"}) == "gateway"
    assert launched.modes == (0o600, 0o700)
    assert launched.properties == "spark.a=1\n"
    assert not launched.file.parent.exists()
    assert "PYSPARK_SUBMIT_ARGS" not in os.environ


def test_the_users_own_arguments_and_properties_file_stay_in_force(
    launched: _Launched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.conf").write_text("spark.own 1\nspark.last line \\")
    arguments = f"--properties-file {tmp_path}/own.conf --conf 'spark.b=two words' pyspark-shell"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    launch(launched, {"spark.a": "1"})
    assert launched.properties == "spark.own 1\nspark.last line \\\n\nspark.a=1\n"
    assert launched.arguments == f"--properties-file {launched.file} --conf 'spark.b=two words' pyspark-shell"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == arguments


def test_the_file_is_removed_when_no_gateway_starts(launched: _Launched) -> None:
    def fail() -> None:
        launched()
        raise RuntimeError("no Java")

    with pytest.raises(RuntimeError, match="no Java"):
        launch(fail, {"spark.a": "1"})
    assert not launched.file.parent.exists()


def test_under_spark_submit_nothing_is_written(launched: _Launched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    monkeypatch.setattr("tempfile.mkdtemp", lambda *_, **__: pytest.fail("a folder was created"))
    assert launch(lambda: "gateway", {"spark.a": "1"}) == "gateway"
    assert launched.arguments == ""


_TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]))


@given(st.dictionaries(_TEXT, _TEXT))
def test_what_is_rendered_is_what_is_parsed(settings: Mapping[str, str]) -> None:
    assert parse(render(settings)) == settings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (
            "spark.a one two \n\n# spark.a no\r\n  ! spark.a no\rspark.b:2\n spark.c = 3",
            {"a": "one two ", "b": "2", "c": "3"},
        ),
        ("spark.a x,\\\n   y\nspark.b z\\\\\nspark.c \\", {"a": "x,y", "b": "z\\", "c": ""}),
        ("spark.a 1\nspark.a = \\u00fc\\:\nspark.b", {"a": "ü:", "b": ""}),
    ],
)
def test_the_form_of_java(text: str, found: Mapping[str, str]) -> None:
    assert parse(text) == {f"spark.{key}": value for key, value in found.items()}


def test_a_default_is_that_of_the_users_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    assert default_setting("spark.jars") is None
    (tmp_path / "spark-defaults.conf").write_text("spark.jars  /srv/mine.jar \n")
    assert (default_setting("spark.jars"), default_setting("spark.other")) == ("/srv/mine.jar", None)
    (tmp_path / "own.conf").write_text("spark.other 1\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"--properties-file {tmp_path}/own.conf pyspark-shell")
    assert (default_setting("spark.jars"), default_setting("spark.other")) == (None, "1")


@pytest.mark.parametrize(
    ("arguments", "jars", "packages"),
    [
        ("--jars /a.jar,/b.jar pyspark-shell", "/a.jar,/b.jar", None),
        ("--jars=/a.jar --packages g:a:1 pyspark-shell", "/a.jar", "g:a:1"),
        ("--conf spark.jars=/a.jar --conf=spark.jars.packages=g:a:1 pyspark-shell", "/a.jar", "g:a:1"),
        ("--conf spark.jars=/a.jar -c 'spark.jars= /b.jar' pyspark-shell", "/b.jar", None),
        ("--jars /a.jar --conf spark.jars=/b.jar pyspark-shell", "/a.jar", None),
        ("--verbose --jars /a.jar --jars /b.jar pyspark-shell", "/b.jar", None),
        ("--driver-java-options --jars pyspark-shell --jars /a.jar", "/default.jar", None),
        ("--conf spark.jars", "", None),
        ("--jars", "", None),
    ],
)
def test_a_default_of_the_users_arguments_counts_before_the_file(
    arguments: str, jars: str, packages: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    (tmp_path / "spark-defaults.conf").write_text("spark.jars /default.jar\n")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    assert (default_setting("spark.jars"), default_setting("spark.jars.packages")) == (jars, packages)


def test_jars_of_ours_replace_those_of_the_users_arguments(
    launched: _Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = "--packages g:a:1 --conf spark.a=2"
    arguments = f"--jars /a.jar --conf spark.jars=/b.jar {kept} --jars=/c.jar pyspark-shell --jars x"
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", arguments)
    launch(launched, {"spark.jars": "/a.jar,/kafka.jar", "spark.a": "1"})
    assert launched.properties == "spark.jars=/a.jar,/kafka.jar\nspark.a=1\n"
    assert launched.arguments == f"--properties-file {launched.file} {kept} pyspark-shell --jars x"
    launch(launched, {"spark.a": "1"})
    assert launched.arguments == f"--properties-file {launched.file} {arguments}"


@given(st.dictionaries(_TEXT.filter(bool), _TEXT))
def test_every_setting_is_on_one_line(settings: Mapping[str, str]) -> None:
    lines = render(settings).split("\n")
    assert len(lines) == len(settings) + 1
    assert not any("\r" in line for line in lines)


# The user's own jars and those of connectors in one session: none is dropped, and none is there twice.


SPARK_SUBMIT = Path(sys.prefix) / "bin" / "spark-submit"
PROGRAM = """
import json, sys
from pathlib import Path
from slackwater.runtime.session.session import end_session, start_session
from slackwater.runtime.session import SessionOptions

spark = start_session(SessionOptions("jars", "local[1]", connectors=("postgresql",)), lambda text: None)
jars = spark.sparkContext._jsc.sc().listJars().toList()
Path("found.json").write_text(json.dumps([jars.apply(at) for at in range(jars.size())]))
end_session(spark)
"""


@pytest.mark.parametrize(
    ("connector", "brought"),
    [
        ("kafka", "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.3"),
        ("kafka", "/srv/spark-sql-kafka-0-10_2.13-4.1.3.jar"),
        ("delta", "io.delta:delta-spark_4.1_2.13:4.4.0"),
        ("delta", "hdfs://nn/jars/delta-spark_2.13-4.0.0.jar"),
        ("iceberg", "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.10.0"),
        ("postgresql", "org.postgresql:postgresql:42.7.13"),
        ("postgresql", "postgresql-42.7.13.jar"),
        ("postgresql", "file:/srv/postgresql.jar"),
    ],
)
def test_a_connector_that_the_user_brings(connector: str, brought: str) -> None:
    assert session._brings(["/srv/mine.jar", f" {brought}"], connector)


@pytest.mark.parametrize(
    ("layers", "joined"), [(("b", "a,b"), "b,a"), (("a,b", "c, a"), "a,b,c"), (("", "a, b"), "a, b"), (("a", ""), "a")]
)
def test_an_extension_that_several_sources_set_is_there_once(layers: tuple[str, ...], joined: str) -> None:
    key = "spark.sql.extensions"
    assert session._joined(*({key: layer} for layer in layers)) == {key: joined}


@pytest.mark.parametrize(
    ("connector", "brought"),
    [
        ("postgresql", "/srv/postgresql/udfs.jar"),
        ("postgresql", "/srv/postgresql-udfs.jar"),
        ("postgresql", "org.postgresql:udfs:1"),
        ("delta", "/srv/delta-spark-2/mine.jar"),
        ("avro", "com.example:my-spark-avro_2.13:1"),
        ("kafka", ""),
    ],
)
def test_a_name_elsewhere_brings_no_connector(connector: str, brought: str) -> None:
    assert not session._brings([brought], connector)


def test_what_is_set_here_counts_before_the_defaults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    (tmp_path / "spark-defaults.conf").write_text("spark.jars.packages org.postgresql:postgresql:42.7.13\n")
    assert session.jars_with({}, ["postgresql"], print) is None
    jar = session.jars_with({"spark.jars.packages": "com.example:mine:1"}, ["postgresql"], print)
    assert jar is not None
    assert Path(jar).name.startswith("postgresql-")
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages com.example:mine:1 pyspark-shell")
    assert session.jars_with({}, ["postgresql"], print) == jar
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--packages org.postgresql:postgresql:42.7.12 pyspark-shell")
    assert session.jars_with({}, ["postgresql"], print) is None


@pytest.mark.spark
@pytest.mark.parametrize(
    "way",
    [
        *(pytest.param(one, marks=pytest.mark.thorough) for one in ("spark-defaults.conf", "PYSPARK_SUBMIT_ARGS")),
        "spark-submit",
    ],
)
def test_the_users_jars_are_kept_with_those_of_connectors(tmp_path: Path, way: str) -> None:
    with zipfile.ZipFile(tmp_path / "mine.jar", "w") as jar:
        jar.writestr("mine.txt", "mine")
    (tmp_path / "program.py").write_text(PROGRAM)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_CONF_DIR": str(tmp_path)}
    words = [sys.executable]
    if way == "PYSPARK_SUBMIT_ARGS":
        environment[way] = f"--jars {tmp_path}/mine.jar pyspark-shell"
    elif way == "spark-submit":
        words = [str(SPARK_SUBMIT), "--master", "local[1]", "--jars", str(tmp_path / "mine.jar")]
    else:
        (tmp_path / "spark-defaults.conf").write_text(f"spark.jars {tmp_path}/mine.jar\n")

    done = subprocess.run(
        [*words, "program.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    names = [Path(address).name for address in json.loads((tmp_path / "found.json").read_text())]
    assert (names.count("mine.jar"), sum(name.startswith("postgresql-") for name in names), len(names)) == (1, 1, 2)
