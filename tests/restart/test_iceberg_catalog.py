"""A stream into a table of a JDBC catalog on PostgreSQL: killed around each commit of a batch, cut, swapped, undone.

``status``, the cut and its undo need no Spark; ``apply`` is killed at each step of a cut.
"""

import shlex
from collections.abc import Iterator

import pytest

from tests.restart.delta_tables import (
    APPEND,
    BATCHES,
    UPDATE,
    check_append_finished,
    check_replaced_rows,
    closed_sums,
    status_written,
)
from tests.restart.iceberg_tables import CatalogWorkspace, SavedInCatalog, check_swapped_and_undone
from tests.restart.scenario import CONF
from tests.support.killing import kill_at_call
from tests.support.postgres_server import PostgresServer, postgres_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1200)]
HIDDEN = "of-the-catalog"
KILLED = 2
STEPS = (
    ("call", "sinks/common/changes.py:write"),
    ("call", "iceberg/table_output.py:_delete_batches"),
    ("return", "iceberg/commits.py:commit"),
)


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with postgres_server(tcp=True) as running:
        yield running


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKE_PASSWORD", HIDDEN)


def _killed(workspace: CatalogWorkspace, event: str, function: str, *command: str) -> None:
    kill_at_call(event, function, (*command, *CONF), workspace.folder)


def _run_killed(workspace: CatalogWorkspace, event: str, function: str) -> None:
    _killed(workspace, event, function, "run", "clicks.py", "--until-caught-up")


def test_killed_at_each_point_cut_swapped_and_undone(
    server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> None:
    workspace = CatalogWorkspace(tmp_path_factory.mktemp("w"), APPEND, server.url(server.new_database()))
    _run_killed(workspace, "call", f"iceberg/writer.py:publish:{KILLED + 1}")
    assert workspace.marks() == (KILLED, KILLED, KILLED - 1, KILLED - 1), "staged, and not visible"
    assert status_written(workspace) == KILLED - 1

    _run_killed(workspace, "return", "iceberg/writer.py:publish")
    assert workspace.marks() == (KILLED, KILLED, KILLED, KILLED - 1), "visible, and not committed"
    assert status_written(workspace) == KILLED

    check_append_finished(workspace, KILLED)
    check_swapped_and_undone(workspace)
    kept = [path for path in workspace.folder.rglob("*") if path.is_file() and HIDDEN.encode() in path.read_bytes()]
    assert kept == [], "the password of the catalog is stored nowhere"


@pytest.mark.thorough
def test_merged_rows_killed_and_rebuilt(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    workspace = CatalogWorkspace(tmp_path_factory.mktemp("w"), UPDATE, server.url(server.new_database()))
    _run_killed(workspace, "return", f"iceberg/writer.py:publish:{BATCHES - 1}")
    check_replaced_rows(workspace, UPDATE)


@pytest.mark.thorough
def test_apply_killed_at_each_step_of_a_cut(server: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    workspace = CatalogWorkspace(tmp_path_factory.mktemp("w"), APPEND, server.url(server.new_database()))
    workspace.caught_up()
    whole = workspace.rows()
    workspace.slackwater("plan", "rebuild", "per_page", "--at", f"batch:{KILLED}", "--out", "plan.json")
    apply = ("apply", "plan.json", "--yes")
    _killed(workspace, *STEPS[0], *apply)
    saved = SavedInCatalog(workspace, tmp_path_factory.mktemp("saved") / "copy")
    for step in STEPS[1:]:
        saved.restore()
        _killed(workspace, *step, *apply)
        was_cut = step == STEPS[-1]
        assert workspace.written() == (KILLED if was_cut else BATCHES)
        assert (workspace.rows() == whole) is not was_cut
        status = workspace.status(code=5)
        assert status["verdict"]["code"] == "operation-unfinished"
        workspace.slackwater(*shlex.split(status["next"])[1:], *CONF)
        assert (workspace.written(), workspace.status()["generation"]) == (KILLED, 2)
    workspace.caught_up()
    assert workspace.window_sums() == closed_sums()

    saved.restore()
    _killed(workspace, *STEPS[-1], *apply)
    operation = next((workspace.stream_folder / "operations").iterdir()).name
    workspace.slackwater("undo", operation, "--yes", java=False)
    assert (workspace.rows(), workspace.written(), workspace.status()["generation"]) == (whole, BATCHES, 1)
