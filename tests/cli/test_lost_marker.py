"""The marker of a database's table is lost or set back: what is refused, and what is printed leads on."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from slackwater.core.errors import Refused
from slackwater.core.sink import OutputTreatment, Owner
from slackwater.ledger.home import Home
from slackwater.ledger.ledger import Ledger
from slackwater.operations.plan.document import render
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.foreach_batch.sink import MarkedOutput
from slackwater.sinks.jdbc.sink import JdbcOutput
from slackwater.sinks.postgres.sink import PostgresOutput
from tests.cli.conftest import Slackwater
from tests.support.errors import raises_code
from tests.support.homes import STATELESS, STREAM, HomeSpec, make_home
from tests.support.postgres_server import PostgresServer
from tests.support.rebuilds import BEGINNING, Project

NEWEST = 5
REFUSED = 5
LOST = {
    "table": "DROP TABLE slackwater_marker",
    "row": "DELETE FROM slackwater_marker",
    "older": "UPDATE slackwater_marker SET batch_id = 1",
}
PLANS = ("rebuild", "rebuild --at earliest", "replay --from batch:0", "resume")


@pytest.mark.parametrize("how", list(LOST))
def test_a_table_without_batch_ids(slackwater: Slackwater, tmp_path: Path, how: str) -> None:
    file = tmp_path / "lite.db"
    sink = {"kind": "jdbc", "url": f"sqlite:///{file}", "table": "out"}
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE out (id INTEGER)")
        connection.execute("INSERT INTO out VALUES (1)")
        connection.commit()
    project = _written(tmp_path, sink)
    assert slackwater("status").code == 0
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(LOST[how])
        connection.commit()

    verdict = slackwater("status", "--format", "json").document["streams"][0]["verdict"]
    assert verdict["code"] == "sink-marker-lost"
    _check_refused(slackwater, project, ("clear", "keep", "swap"))
    (tmp_path / "plan.json").write_text(render(project.plan_reset("keep", BEGINNING, target="latest")))
    _check_name_is_needed(slackwater)
    refused = slackwater("plan", "rebuild", "per_page")
    assert "empty the table out" in refused.err

    with closing(sqlite3.connect(file)) as connection:
        connection.execute("DELETE FROM out")
        if how == "older":
            assert "delete the row of out in slackwater_marker" in refused.err
            connection.execute("DELETE FROM slackwater_marker WHERE target = 'out'")
        connection.commit()
    command = refused.err.rpartition("then: slackwater ")[2].split()
    assert slackwater(*command).code == 0


@pytest.mark.parametrize("how", list(LOST))
def test_a_table_of_postgres(slackwater: Slackwater, tmp_path: Path, postgres: PostgresServer, how: str) -> None:
    """All rows can be replaced, by a swap that the user says may take them away."""
    url = postgres.url(postgres.new_database())
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE out AS SELECT 1 AS id UNION ALL SELECT 2")
    project = _written(tmp_path, {"kind": "postgres", "url": url, "table": "out"})
    with psycopg.connect(url) as connection:
        connection.execute(LOST[how].encode())

    finding = slackwater("status", "--format", "json").document["streams"][0]["findings"][0]
    assert finding["code"] == "sink-marker-lost"
    assert finding["next"] == "slackwater plan reset clicks/per_page --from earliest --output swap"
    _check_refused(slackwater, project, ("clear", "keep"))
    plan = project.plan_reset("swap", BEGINNING)
    assert any("2 rows, perhaps written by others, would go with the old output" in risk for risk in plan.risks)
    (tmp_path / "plan.json").write_text(render(plan))
    refused = slackwater("apply", "plan.json", "--yes")
    assert refused.code == REFUSED
    assert "slackwater apply plan.json --yes --discard-others per_page" in refused.err


def test_an_emptied_table_of_postgres(slackwater: Slackwater, tmp_path: Path, postgres: PostgresServer) -> None:
    url = postgres.url(postgres.new_database())
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE out AS SELECT 1 AS id")
    _written(tmp_path, {"kind": "postgres", "url": url, "table": "out"})
    for statement, code in ((LOST["row"], "sink-marker-lost"), ("DELETE FROM out", "sink-behind")):
        with psycopg.connect(url) as connection:
            connection.execute(statement.encode())
        assert _code(slackwater) == code


def test_kept_rows_need_the_name(slackwater: Slackwater, tmp_path: Path) -> None:
    """What a batch function has written is known to nobody, so that only a person can say that it was removed."""
    file = tmp_path / "lite.db"
    sink = {"kind": "foreach_batch", "name": "write", "writes_to": f"sqlite:///{file}"}
    project = _written(tmp_path, sink)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(LOST["row"])
        connection.commit()

    advised = slackwater("plan", "rebuild", "per_page").err.rpartition("then: ")[2].strip()
    assert advised == "slackwater plan reset clicks/per_page --from earliest --output keep"
    plan = project.plan_reset("keep", BEGINNING)
    assert "apply refuses it without --confirm per_page" in plan.risks[-1]
    (tmp_path / "plan.json").write_text(render(plan))
    _check_name_is_needed(slackwater)


def test_a_batch_that_may_have_been_written(slackwater: Slackwater, tmp_path: Path) -> None:
    """Killed in its first batch; without a marker nobody knows whether that was published."""
    file = tmp_path / "lite.db"
    sink = {"kind": "jdbc", "url": f"sqlite:///{file}", "table": "out"}
    make_home(tmp_path, HomeSpec(planned=0, committed=-1, state=None, sink=sink, layout=STATELESS, run="failed"))
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE out (id INTEGER)")
        connection.commit()
        assert _code(slackwater) != "sink-marker-lost"
        connection.execute("INSERT INTO out VALUES (1)")
        connection.commit()
    assert _code(slackwater) == "sink-marker-lost"


def _code(slackwater: Slackwater) -> object:
    return slackwater("status", "--format", "json").document["streams"][0]["verdict"]["code"]


def _check_refused(slackwater: Slackwater, project: Project, outputs: Sequence[OutputTreatment]) -> None:
    for goal, *options in (one.split() for one in PLANS):
        assert slackwater("plan", goal, "per_page", *options).code == REFUSED, goal
    for output in outputs:
        with raises_code(Refused, "sink-marker-lost"):
            project.plan_reset(output, BEGINNING)


def _check_name_is_needed(slackwater: Slackwater) -> None:
    refused = slackwater("apply", "plan.json", "--yes")
    assert "error unconfirmed" in refused.err
    assert "give --confirm clicks/per_page" in refused.err


def _written(folder: Path, sink: dict[str, str]) -> Project:
    """Make a home whose output has all batches, and shows it."""
    home = Home(make_home(folder, HomeSpec(sink=sink, layout=STATELESS, state=None)))
    with Ledger.open(home.ledger_url, create=False) as ledger:
        stream = ledger.find_stream(STREAM)
    owner = Owner(stream.id or "", STREAM, str(home.location))
    output = open_output(sink)
    assert isinstance(output, JdbcOutput | PostgresOutput | MarkedOutput)
    output.target.claim(owner)
    with output.target.engine.begin() as connection:
        output.target.marker.move(connection, NEWEST)
    return Project(folder, Path(home.location))
