"""Tables of a JDBC catalog as outputs, without Spark: mark, owner, cut, swap, other writers, kills, settings."""

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import cast

import pytest
from sqlalchemy import inspect, text

from slackwater.core.errors import Refused, SinkUnreadable, SlackwaterError, StreamFailed
from slackwater.core.sink import Owner
from slackwater.sinks import iceberg
from slackwater.sinks.common.problem import secret_of
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.iceberg.changes import replaced_branch, staged_branch
from slackwater.sinks.iceberg.commits import properties_of
from slackwater.sinks.iceberg.metadata import IcebergTable, Metadata, MetadataChange
from slackwater.sinks.iceberg.names import parts_of, settings_of
from slackwater.sinks.iceberg.output import CATALOG_TRAITS, ICEBERG_TRAITS, OWNER, CatalogOutput, IcebergOutput
from slackwater.storage.local import LocalStore
from tests.sinks.iceberg_catalogs import NAME, Lake, in_postgres, in_sqlite
from tests.sinks.iceberg_changes import change
from tests.support.errors import raises_code
from tests.support.postgres_server import postgres_server

STREAM = Owner("5f0e", "clicks/per_page", "/srv/home")
OPERATION = "20260105T093000-1a2b3c"
STAGED_BRANCH, REPLACED_BRANCH = staged_branch(OPERATION), replaced_branch(OPERATION)
LAST, STAGED, AFTER = 5, 1, 2


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of a database server for JDBC catalogs; the name of the database is to be added."""
    with postgres_server(tcp=True) as running:
        yield running.url(running.new_database())


@pytest.fixture(params=["sqlite", "postgres"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    """A table with batches 0 to LAST in a catalog that the settings of the working directory name."""
    if request.param == "sqlite":
        found = in_sqlite(tmp_path)
    else:
        found = in_postgres(tmp_path, request.getfixturevalue("server"))
        with found.catalog() as catalog:
            catalog.destroy_tables()
            catalog.create_tables()
    return _prepared(found, monkeypatch)


@pytest.fixture
def lite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    return _prepared(in_sqlite(tmp_path), monkeypatch)


def _prepared(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.chdir(lake.folder)
    lake.write_settings()
    lake.create()
    for batch in range(LAST + 1):
        lake.write_batch(STREAM.stream_id, batch)
    _output().claim(STREAM)
    return lake


def _output() -> CatalogOutput:
    output = open_output({"kind": "iceberg", "table": NAME})
    assert isinstance(output, CatalogOutput)
    return output


def _refused(lake: Lake, code: str, act: Callable[[], object]) -> None:
    before = lake.table()
    with raises_code(SlackwaterError, code):
        act()
    assert lake.table().metadata_location == before.metadata_location


def _mark(lake: Lake) -> tuple[int, int]:
    mark = json.loads(lake.table().properties["slackwater.written"])
    return mark["epoch"], mark["batch"]


def _staged(lake: Lake) -> CatalogOutput:
    """The table with batches 0 to STAGED on the branch of the operation, one more row in each."""
    output = _output()
    output.stage(OPERATION, -1, {})
    assert (lake.rows(STAGED_BRANCH), output.staged(OPERATION).last_written()) == ([], -1)
    for batch in range(STAGED + 1):
        lake.write_batch(STREAM.stream_id, batch, epoch=4, branch=STAGED_BRANCH)
    return output


def test_what_it_shows(lake: Lake) -> None:
    output = _output()
    assert (output.last_written(), output.owner(), output.traits) == (LAST, STREAM, ICEBERG_TRAITS)
    assert (output.location, output.reader_path()) == (f"iceberg table {NAME}", NAME)
    assert (output.damage("all"), output.log(), output.lost_marker(-1) is not None) == ((), None, True)
    assert iceberg(NAME).traits == ICEBERG_TRAITS
    assert iceberg(NAME).identity() == {"kind": "iceberg", "table": NAME}
    with lake.catalog() as catalog:
        file = Path(next(iter(catalog.load_table("gold.hourly").scan().plan_files())).file.file_path)
    file.write_bytes(b"torn")
    assert [one.kind for one in output.damage("all")] == ["torn"]


def test_cut_and_undone(lake: Lake, tmp_path: Path) -> None:
    output, backup = _output(), LocalStore(tmp_path / "backup")
    cut = output.cut_after(AFTER, {})
    assert (cut.batches, cut.rows, len(cut.files)) == ((3, 4, 5), 3, 3)
    for _ in range(2):
        output.cut(cut, {}, backup)
        assert (lake.rows(), output.last_written(), _mark(lake)) == ([0, 1, 2], AFTER, (2, AFTER))
    for _ in range(2):
        output.check_restore(cut, backup)
        output.restore(cut, backup)
        assert (lake.rows(), output.last_written(), _mark(lake)) == (list(range(LAST + 1)), LAST, (3, LAST))
    whole = output.cut_after(-1, {})
    output.cut(whole, {}, LocalStore(tmp_path / "all"))
    assert (lake.rows(), output.last_written()) == ([], -1)
    lake.write_batch(STREAM.stream_id, 0, epoch=5)
    _refused(lake, "restore-conflict", lambda: output.restore(whole, LocalStore(tmp_path / "all")))


@pytest.mark.parametrize("after", [-1, AFTER])
def test_built_on_a_branch_swapped_and_undone(lake: Lake, after: int, tmp_path: Path) -> None:
    output, backup, old = _output(), LocalStore(tmp_path / "backup"), lake.rows()
    for _ in range(2):
        output.stage(OPERATION, after, {})
    output.staged(OPERATION).claim(STREAM)
    lake.write_batch(STREAM.stream_id, after + 1, epoch=4, branch=STAGED_BRANCH)
    new = [*range(after + 1), after + 1]
    assert (lake.rows(), lake.rows(STAGED_BRANCH)) == (old, new)
    swap = output.swap_of(OPERATION, STREAM.stream_id)
    assert output.whole({}).batches == tuple(range(LAST + 1))
    for _ in range(2):
        output.check_swap(swap, backup)
        output.swap(swap, backup)
        assert (lake.rows(), output.last_written()) == (new, after + 1)
    assert set(lake.table().refs()) == {"main", REPLACED_BRANCH}
    lake.write_batch(STREAM.stream_id, after + 2, epoch=5)
    for _ in range(2):
        output.check_swap_back(swap, backup)
        output.swap_back(swap, backup)
        assert (lake.rows(), output.last_written()) == (old, LAST)
    assert output.staged(OPERATION).last_written() == after + 2
    for _ in range(2):
        output.discard(OPERATION, "staged")
        assert set(lake.table().refs()) == {"main"}
    assert {key for key in lake.table().properties if key.startswith("slackwater.")} == {"slackwater.written", OWNER}


class Overtaken:
    """The table of an output, of which another writer changes something just before a commit of ours."""

    def __init__(self, table: IcebergTable, change: Callable[[], object]) -> None:
        self._table, self._change = table, change

    def __getattr__(self, name: str) -> object:
        return getattr(self._table, name)

    def commit(self, base: Metadata, change: MetadataChange) -> None:
        """As the table does, but too late."""
        self._change()
        self._table.commit(base, change)


def _overtaken(change: Callable[[], object]) -> CatalogOutput:
    class Late(CatalogOutput):
        @cached_property
        def _table(self) -> IcebergTable:
            return cast("IcebergTable", Overtaken(super()._table, change))

    settings = settings_of("lake")
    assert settings is not None
    return Late(NAME, settings)


@pytest.mark.parametrize("what", ["rows", "mark", "branch"])
def test_another_writer_between_the_check_and_the_commit(lake: Lake, what: str, tmp_path: Path) -> None:
    """Nothing of ours is committed: not after new rows, not after a new run, not after a change of the branch alone."""
    _staged(lake)
    mark = {"stream": STREAM.stream_id, "epoch": 7, "batch": LAST, "snapshot": None}
    change = {
        "rows": lambda: lake.append(99),
        "mark": lambda: lake.set_properties({"slackwater.written": json.dumps(mark)}),
        "branch": lambda: lake.append(99, branch=STAGED_BRANCH),
    }[what]
    swap, rows = _output().swap_of(OPERATION, STREAM.stream_id), lake.rows()
    with raises_code(Refused, "swap-moved"):
        _overtaken(change).swap(swap, LocalStore(tmp_path / "swap"))
    assert set(lake.table().refs()) == {"main", STAGED_BRANCH}
    assert lake.rows() == ([*rows, 99] if what == "rows" else rows)
    if what == "branch":
        return
    lake.append(100)
    lake.write_batch(STREAM.stream_id, LAST + 1)
    cut, rows = _output().cut_after(LAST, {}), lake.rows()
    with raises_code(Refused, "output-changed"):
        _overtaken(change).cut(cut, {}, LocalStore(tmp_path / "cut"))
    assert set(rows) <= set(lake.rows())


def test_rows_of_others(lake: Lake, tmp_path: Path) -> None:
    lake.append(99)
    _refused(lake, "sink-uncuttable", lambda: _output().cut_after(AFTER, {}))
    output, backup = _staged(lake), LocalStore(tmp_path / "backup")
    swap = output.swap_of(OPERATION, STREAM.stream_id)
    assert (swap.others.rows, swap.others.files, swap.others.commits) == (1, 1, 1)
    lake.append(100)
    _refused(lake, "swap-moved", lambda: output.swap(swap, backup))
    swap = output.swap_of(OPERATION, STREAM.stream_id)
    output.swap(swap, backup)
    lake.append(101)
    _refused(lake, "restore-conflict", lambda: output.swap_back(swap, backup))


def test_owners(lake: Lake) -> None:
    output = _output()
    _refused(lake, "sink-owned", lambda: output.claim(replace(STREAM, stream_id="other")))
    moved = replace(STREAM, home="/srv/moved")
    output.claim(moved)
    assert (output.owner(), output.last_written()) == (moved, LAST)
    output.release("other")
    assert output.owner() == moved
    output.release(STREAM.stream_id)
    assert (output.owner(), output.last_written()) == (None, LAST)
    output.release(STREAM.stream_id)
    output.claim(replace(STREAM, stream_id="other"))
    lake.set_properties({OWNER: "{"})
    with raises_code(SinkUnreadable, "sink-owner-unreadable"):
        output.owner()


THOROUGH = ("restore", "stage", "swap_back")
ACTIONS = ["cut", "swap", *(pytest.param(one, marks=pytest.mark.thorough) for one in THOROUGH)]
POINTS = ("record", "update", "commit", "end")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("action", ACTIONS)
def test_killed_at_each_point_of_a_commit(lite: Lake, action: str, tmp_path: Path) -> None:
    """The table is as before or as after; repeated, the action is finished; undone, it is as it was."""
    backup = LocalStore(tmp_path / "backup")
    Path(backup.location).mkdir()
    output = _output()
    if action in {"swap", "swap_back"}:
        _staged(lite)
    cut, swap = output.cut_after(AFTER, {}), output.swap_of(OPERATION, STREAM.stream_id)
    (tmp_path / "cut.json").write_text(json.dumps(asdict(cut)))
    (tmp_path / "swap.json").write_text(json.dumps(asdict(swap)))
    if action == "restore":
        output.cut(cut, {}, backup)
    if action == "swap_back":
        output.swap(swap, backup)
    whole, cut_rows, new = list(range(LAST + 1)), list(range(AFTER + 1)), list(range(STAGED + 1))
    before = {"restore": cut_rows, "swap_back": new}.get(action, whole)
    after = {"cut": cut_rows, "swap": new}.get(action, whole)
    kept = shutil.copytree(tmp_path, tmp_path.with_name(f"{tmp_path.name}-kept"))
    points = POINTS if action in {"cut", "swap"} else POINTS[1:]
    for point in points:
        assert change(tmp_path, action, point) == -signal.SIGKILL, point
        assert lite.rows() == (after if point == "end" else before), point
        assert change(tmp_path, action, "never") == 0, point
        assert lite.rows() == after, point
        assert _output().last_written() == len(after) - 1
        if action == "stage":
            assert lite.rows(STAGED_BRANCH) == []
        undo = {"cut": "restore", "swap": "swap_back"}.get(action)
        assert undo is None or change(tmp_path, undo, "never") == 0
        assert lite.rows() == whole, point
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(kept, tmp_path, dirs_exist_ok=True)


def test_a_catalog_without_tables_and_one_without_this_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = in_sqlite(tmp_path)
    monkeypatch.chdir(tmp_path)
    lake.write_settings()
    for make in (lambda: None, (tmp_path / "catalog.db").touch, lake.catalog().__enter__):
        make()
        output = _output()
        assert (output.last_written(), output.owner(), output.damage()) == (-1, None, ())
        output.claim(STREAM)
        assert output.cut_after(-1, {}).batches == ()
        with raises_code(Refused, "swap-unsupported"):
            output.stage(OPERATION, -1, {})
    assert not (tmp_path / "warehouse").exists(), "nothing is created"


def test_the_tables_of_an_older_catalog(lite: Lake, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Iceberg's library makes no column for views unless ``jdbc.schema-version`` is V1."""
    with lite.catalog() as catalog, catalog.engine.begin() as connection:
        connection.execute(text("ALTER TABLE iceberg_tables DROP COLUMN iceberg_type"))
    caplog.clear()
    output = _output()
    assert output.last_written() == LAST
    output.cut(output.cut_after(AFTER, {}), {}, LocalStore(tmp_path / "backup"))
    assert (output.last_written(), caplog.records) == (AFTER, [])
    with lite.catalog() as catalog, catalog.engine.connect() as connection:
        assert "iceberg_type" not in {column["name"] for column in inspect(connection).get_columns("iceberg_tables")}


def test_a_version_of_the_format_that_pyiceberg_cannot_write(lite: Lake, tmp_path: Path) -> None:
    output = _output()
    cut = output.cut_after(AFTER, {})
    file = Path(lite.table().metadata_location)
    fields = {**json.loads(file.read_text()), "format-version": 3, "next-row-id": 6}
    file.write_text(json.dumps(fields))
    assert output.last_written() == LAST
    for code, act in (
        ("sink-uncuttable", lambda: output.cut(cut, {}, LocalStore(tmp_path / "backup"))),
        ("swap-unsupported", lambda: output.stage(OPERATION, -1, {})),
    ):
        _refused(lite, code, act)


def test_a_catalog_or_metadata_that_cannot_be_read(lite: Lake) -> None:
    file = Path(lite.table().metadata_location)
    data = file.read_bytes()
    for damaged in (b"{", b"[]", None):
        file.unlink()
        if damaged is not None:
            file.write_bytes(damaged)
        with raises_code(SinkUnreadable, "iceberg-catalog-unreadable"):
            _output().last_written()
        file.write_bytes(data)
    lite.write_settings(**{".uri": "jdbc:postgresql://127.0.0.1:1/none?connect_timeout=1"})
    with raises_code(SinkUnreadable, "iceberg-catalog-unreadable", says="lake"):
        _output().last_written()


def test_secrets_of_a_catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read from where the settings refer to, and are in no identity and no message."""
    monkeypatch.chdir(tmp_path)
    lake = in_postgres(tmp_path, "postgresql://ann@127.0.0.1:1/none")
    (tmp_path / "key").write_text("hidden\n")
    monkeypatch.setenv("LAKE_USER", "bob")
    for reference in ("env:LAKE_PASSWORD", f"file:{tmp_path}/key", "hidden"):
        monkeypatch.setenv("LAKE_PASSWORD", "hidden")
        lake.write_settings(**{".jdbc.user": "env:LAKE_USER", ".jdbc.password": reference, ".warehouse": "file:/lake"})
        assert secret_of("spark.sql.catalog.tokens.warehouse", "file:/lake") == "file:/lake"
        assert secret_of("spark.ssl.keyPassword", "env:LAKE_USER") == "env:LAKE_USER", "only of catalogs"
        settings = settings_of("lake")
        assert settings is not None
        found = properties_of(settings)
        assert found["uri"].startswith("postgresql+psycopg://bob:hidden@")
        assert "hidden" not in json.dumps(iceberg(NAME).identity())
        with pytest.raises(SinkUnreadable) as unreadable:
            _output().last_written()
        assert "hidden" not in repr(unreadable.value) + str(unreadable.value)
        monkeypatch.delenv("LAKE_PASSWORD")
        if reference.startswith("env"):
            with raises_code(StreamFailed, "sink-password-missing"):
                _output().last_written()


def test_which_catalogs_are_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_output({"kind": "iceberg", "table": NAME}).traits == CATALOG_TRAITS, "no settings"
    lake = in_sqlite(tmp_path)
    for opaque in (
        {".type": "rest", ".uri": "http://127.0.0.1:1"},
        {".type": "jdbc", ".uri": "jdbc:oracle:thin:@h:1/x"},
        {".type": "hive"},
        {".type": "", ".catalog-impl": "com.example.Catalog"},
    ):
        lake.write_settings(**opaque)
        output = open_output({"kind": "iceberg", "table": NAME})
        assert (output.traits, output.last_written(), output.owner()) == (CATALOG_TRAITS, None, None)
        with raises_code(Refused, "swap-unsupported"):
            iceberg(NAME).staged(OPERATION)
    lake.write_settings(**{".type": "hadoop"})
    assert open_output({"kind": "iceberg", "table": "lake.hourly"}).traits == CATALOG_TRAITS, "no namespace"
    output = open_output({"kind": "iceberg", "table": NAME})
    assert isinstance(output, IcebergOutput)
    assert output.location == str(tmp_path / "warehouse" / "gold" / "hourly")
    staged = iceberg(NAME).staged(OPERATION)
    assert staged.name.target == f"{NAME}.`branch_{STAGED_BRANCH}`"
    assert open_output(staged.identity()).location == output.staged(OPERATION).location


def test_names_and_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parts_of("lake.gold.hourly") == ("lake", "gold", "hourly")
    assert parts_of("`my lake`.a.`b.c``d`") == ("my lake", "a", "b.c`d")
    monkeypatch.chdir(tmp_path)
    for uri, expected in (
        ("jdbc:postgresql://db/lake", "postgresql+psycopg:///lake?connect_timeout=10&host=db%3A5432"),
        (
            "jdbc:postgresql://a:1,b/lake?user=u&password=p%2F",
            "postgresql+psycopg://u:p%2F@/lake?connect_timeout=10&host=a%3A1&host=b%3A5432",
        ),
        (
            "jdbc:postgresql://db/lake?sslmode=require&currentSchema=ice&ApplicationName=x",
            "postgresql+psycopg:///lake?connect_timeout=10&host=db%3A5432&options=-csearch_path%3Dice&sslmode=require",
        ),
        ("jdbc:sqlite:/tmp/a b.db", "sqlite:////tmp/a b.db"),
    ):
        lake = in_sqlite(tmp_path)
        lake.write_settings(**{".uri": uri, ".s3.endpoint": "http://s3", ".client.region": "eu"})
        settings = settings_of("lake")
        assert settings is not None
        found = properties_of(settings)
        assert found["uri"] == expected
        assert (found["s3.endpoint"], found["s3.region"], found["type"]) == ("http://s3", "eu", "sql")
