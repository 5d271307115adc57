"""A table of PostgreSQL staged and swapped, without Spark: rows are written by SQL, and read the same way."""

import os
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from slackwater.core.errors import Refused, StreamFailed
from slackwater.core.sink import NO_OTHERS, Others, Owner, WriteContext
from slackwater.sinks import postgres as postgres_sink
from slackwater.sinks.common.registry import open_output
from slackwater.sinks.postgres.sink import PostgresOutput
from slackwater.sinks.postgres.table import PostgresName
from slackwater.storage.local import LocalStore
from tests.sinks.swap_scene import SwapScene
from tests.support.errors import raises_code
from tests.support.kill_points import kill_points
from tests.support.postgres_server import PostgresServer

OPERATION = "20260105T093000-1a2b3c"
EVERY = int(os.environ.get("SLACKWATER_TEST_EVERY", "3"))
"""Of the statements of a transaction, all of which a kill takes back."""
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
LAST, STAGED = 4, 6
Rows = list[tuple[Any, ...]]
TABLE = (
    "CREATE TABLE out (id int PRIMARY KEY, number bigserial, always bigint GENERATED ALWAYS AS IDENTITY, "
    "doubled bigint GENERATED ALWAYS AS (id * 2) STORED, word text DEFAULT 'none', _slackwater_batch bigint NOT NULL, "
    "CHECK (id >= 0)) WITH (fillfactor=70)"
)


class Scene(SwapScene):
    """A table with batches 0 to LAST, and a staged one with batches 0 to STAGED."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self.folder = folder
        self.output = PostgresOutput(
            postgres_sink(url, "out").address, PostgresName("public", "out"), keep_batch_id=True
        )
        self.staging = PostgresName("public", "out").staging(OPERATION).table
        if not self.rows("SELECT 1 FROM pg_roles WHERE rolname = 'slackwater_reader'"):
            self.execute("CREATE ROLE slackwater_reader")
        self.write()
        self.swap = self.output.swap_of(OPERATION, OWNER.stream_id)

    def write(self) -> None:
        self.execute("DROP SCHEMA public CASCADE")
        self.execute("CREATE SCHEMA public")
        self.execute(TABLE)
        self.fill("out", LAST, 0)
        self.output.claim(OWNER)
        self.execute(f"UPDATE slackwater_marker SET batch_id = {LAST}, epoch = 3")

    def stage(self, last: int = STAGED) -> None:
        self.output.stage(OPERATION, -1, {})
        self.output.staged(OPERATION).claim(OWNER)
        self.fill(self.staging, last, 100)
        self.execute(f"UPDATE slackwater_marker SET batch_id = {last}, epoch = 4 WHERE target <> 'public.out'")

    def check_undo(self) -> None:
        self.output.check_swap_back(self.swap, self.backup)

    def fill(self, table: str, last: int, first: int) -> None:
        for batch in range(last + 1):
            self.execute(f"INSERT INTO {table} (id, _slackwater_batch) VALUES ({first + batch}, {batch})")

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement.encode())

    def rows(self, statement: str) -> Rows:
        with psycopg.connect(self.url) as connection:
            return connection.execute(statement.encode()).fetchall()

    def ids(self, source: str = "out") -> list[int]:
        return [row[0] for row in self.rows(f"SELECT id FROM {source} ORDER BY 1")]

    def marks(self) -> Mapping[str, tuple[int, int]]:
        found = self.rows("SELECT target, batch_id, epoch FROM slackwater_marker")
        return {"real" if target == "public.out" else "aside": (batch, epoch) for target, batch, epoch in found}

    def tables(self) -> set[str]:
        return {row[0] for row in self.rows("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")}


@pytest.fixture
def scene(postgres: PostgresServer, tmp_path: Path) -> Scene:
    return Scene(postgres.url(postgres.new_database()), tmp_path)


OLD, NEW = list(range(LAST + 1)), list(range(100, 100 + STAGED + 1))


def test_swapped_and_swapped_back(scene: Scene) -> None:
    before = scene.rows("SELECT ctid, xmin, * FROM out")
    scene.stage()
    assert scene.ids() == OLD
    for _ in range(2):
        scene.make()
        assert scene.ids() == NEW
        assert scene.ids(scene.staging) == OLD
        assert (scene.output.last_written(), scene.output.owner()) == (STAGED, OWNER)
        assert scene.output.damage("all") == ()
        assert scene.marks() == {"real": (STAGED, 5), "aside": (LAST, 5)}
    for _ in range(2):
        scene.undo()
        assert scene.rows("SELECT ctid, xmin, * FROM out") == before
        assert scene.output.last_written() == LAST
        assert scene.output.staged(OPERATION).last_written() == STAGED
    scene.make()
    assert scene.ids() == NEW


def test_what_belongs_to_the_table_is_kept(scene: Scene) -> None:
    scene.execute("COMMENT ON TABLE out IS 'it''s ours'")
    scene.execute("COMMENT ON COLUMN out.word IS 'words'")
    scene.execute("GRANT SELECT ON out TO slackwater_reader WITH GRANT OPTION")
    scene.execute("GRANT UPDATE (word) ON out TO PUBLIC")
    scene.execute("CREATE INDEX ON out (word) WHERE id > 3")
    scene.execute("CREATE VIEW words WITH (security_barrier=true) AS SELECT word, id FROM out WHERE id <> 3")
    scene.execute("GRANT SELECT ON words TO slackwater_reader")
    scene.execute("CREATE VIEW longest AS SELECT max(id) AS id FROM words")
    asked = (
        "SELECT obj_description('out'::regclass), col_description('out'::regclass, 5)",
        "SELECT relacl::text, relowner, reloptions FROM pg_class WHERE oid = 'out'::regclass",
        "SELECT attname, attacl::text, attidentity FROM pg_attribute WHERE attrelid = 'out'::regclass AND attnum > 0",
        "SELECT relacl::text, reloptions FROM pg_class WHERE oid = 'words'::regclass",
        "SELECT indisunique, indkey, indpred IS NULL FROM pg_index WHERE indrelid = 'out'::regclass ORDER BY 1",
        "SELECT pg_get_serial_sequence('out', 'number')",
    )
    before = [scene.rows(statement) for statement in asked]
    scene.execute("ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT DELETE ON TABLES TO slackwater_reader")
    scene.stage()
    scene.make()
    assert [scene.rows(statement) for statement in asked] == before
    assert scene.ids("words") == NEW
    assert scene.ids("longest") == NEW[-1:]
    scene.undo()
    assert [scene.rows(statement) for statement in asked] == before
    assert scene.ids("words") == [one for one in OLD if one != 3]
    scene.make()
    scene.output.discard(OPERATION, "replaced")
    assert scene.tables() == {"out", "slackwater_marker"}
    scene.execute("INSERT INTO out (id, _slackwater_batch) VALUES (999, 7)")
    assert scene.marks() == {"real": (STAGED, 7)}


@pytest.mark.parametrize("after", [0, 2, LAST])
def test_a_staged_table_with_older_batches(scene: Scene, after: int) -> None:
    before = scene.rows("SELECT * FROM out ORDER BY id")
    for _ in range(2):
        scene.output.stage(OPERATION, after, {})
        staged = scene.output.staged(OPERATION)
        assert scene.rows(f"SELECT * FROM {scene.staging} ORDER BY id") == before[: after + 1]
        assert (staged.last_written(), staged.owner(), staged.damage("all")) == (after, OWNER, ())
    scene.execute(f"INSERT INTO {scene.staging} (id, _slackwater_batch) VALUES (100, {after + 1})")
    assert scene.rows(f"SELECT always > {LAST + 1} FROM {scene.staging} WHERE id = 100") == [(True,)]
    assert scene.rows("SELECT * FROM out ORDER BY id") == before


def test_a_table_without_batch_ids_has_all_batches_or_none(scene: Scene) -> None:
    scene.execute("ALTER TABLE out DROP COLUMN _slackwater_batch")
    output = PostgresOutput(scene.output.target.address, PostgresName("public", "out"), keep_batch_id=False)
    assert output.traits.swaps
    refused(scene, "sink-uncuttable", lambda: output.stage(OPERATION, LAST - 1, {}))
    output.stage(OPERATION, LAST, {})
    assert scene.ids(scene.staging) == OLD
    refused(scene, "stage-incomplete", lambda: output.stage("20260105T093000-000000", LAST + 1, {}))
    whole = output.whole({})
    assert (whole.batches, whole.files) == (tuple(range(LAST + 1)), ()), "no stream reads a table of PostgreSQL"


class TestOfOthers:
    """Rows that the stream did not write."""

    @staticmethod
    def _again(scene: Scene, after: int = -1) -> None:
        scene.swap = scene.output.swap_of(OPERATION, OWNER.stream_id, after)
        scene.output.stage(OPERATION, after, {})
        scene.output.staged(OPERATION).claim(OWNER)
        scene.execute(f"INSERT INTO {scene.staging} (id, _slackwater_batch) VALUES (100, {after + 1})")
        scene.execute(f"UPDATE slackwater_marker SET batch_id = {after + 1} WHERE target <> 'public.out'")

    @pytest.mark.parametrize("after", [-1, 2])
    def test_rows_without_a_batch_stay(self, scene: Scene, after: int) -> None:
        scene.execute("ALTER TABLE out ALTER _slackwater_batch DROP NOT NULL")
        scene.execute("INSERT INTO out (id) VALUES (50), (51)")
        self._again(scene, after)
        assert scene.swap.others == NO_OTHERS
        scene.make()
        assert scene.ids() == [*OLD[: after + 1], 50, 51, 100]
        scene.undo()
        assert scene.ids() == [*OLD, 50, 51]

    def test_others_are_counted(self, scene: Scene) -> None:
        assert scene.swap.others == NO_OTHERS
        scene.execute(f"INSERT INTO out (id, _slackwater_batch) VALUES (50, {LAST + 9}), (51, 1), (52, 1)")
        scene.execute("INSERT INTO out (id, _slackwater_batch) VALUES (53, 3)")
        scene.execute("UPDATE out SET word = 'changed' WHERE id = 53")
        assert scene.output.swap_of(OPERATION, OWNER.stream_id).others == Others(4)
        assert scene.output.swap_of(OPERATION, OWNER.stream_id, 1).others == Others(2)
        assert scene.output.cut_after(1, {}).others == Others(2)

    def test_a_batch_that_was_updated_as_a_whole(self, scene: Scene) -> None:
        scene.execute("INSERT INTO out (id, _slackwater_batch) VALUES (50, 1)")
        scene.execute("UPDATE out SET word = 'changed' WHERE _slackwater_batch = 1")
        assert scene.output.swap_of(OPERATION, OWNER.stream_id).others == Others(2)
        assert scene.output.cut_after(0, {}).others == Others(2)
        assert scene.output.cut_after(1, {}).others == NO_OTHERS

    def test_without_batch_ids_nobody_knows(self, scene: Scene) -> None:
        scene.execute("ALTER TABLE out DROP COLUMN _slackwater_batch")
        output = PostgresOutput(scene.output.target.address, PostgresName("public", "out"), keep_batch_id=False)
        assert output.swap_of(OPERATION, OWNER.stream_id).others == Others(LAST + 1, sure=False)
        assert output.swap_of(OPERATION, OWNER.stream_id, LAST).others == NO_OTHERS

    @pytest.mark.parametrize("keep", [True, False])
    @pytest.mark.parametrize("lost", ["DROP TABLE slackwater_marker", "UPDATE slackwater_marker SET batch_id = 1"])
    def test_all_rows_are_replaced_where_the_marker_was_lost(self, scene: Scene, lost: str, *, keep: bool) -> None:
        scene.execute("ALTER TABLE out ALTER _slackwater_batch DROP NOT NULL")
        scene.execute("INSERT INTO out (id) VALUES (50)")
        scene.execute(lost)
        known = PostgresOutput(scene.output.target.address, PostgresName("public", "out"), keep_batch_id=keep)
        scene.output = known.without_marker()
        scene.output.claim(OWNER)
        scene.swap = scene.output.swap_of(OPERATION, OWNER.stream_id)
        assert scene.swap.others == Others(LAST + 1 if keep else LAST + 2, sure=False)
        scene.stage()
        scene.output = known
        scene.make()
        assert scene.ids() == ([50, *NEW] if keep else NEW)
        scene.undo()
        assert scene.ids() == [*OLD, 50]
        assert known.last_written() == (-1 if lost.startswith("DROP") else 1)

    @pytest.mark.parametrize(
        "change",
        [
            "INSERT INTO out (id, _slackwater_batch) VALUES (50, 1)",
            "UPDATE out SET word = 'changed'",
            "DELETE FROM out WHERE id = 2",
        ],
    )
    def test_a_change_meanwhile_and_one_after_the_swap(self, scene: Scene, change: str) -> None:
        scene.stage()
        scene.execute("VACUUM FULL FREEZE out")
        scene.make()
        scene.undo()
        scene.execute(change)
        refused(scene, "swap-moved", scene.make)
        scene.swap = scene.output.swap_of(OPERATION, OWNER.stream_id)
        scene.backup.delete("swap.json")
        scene.make()
        scene.execute(change.replace("id = 2", "id = 102"))
        refused(scene, "restore-conflict", scene.check_undo)
        refused(scene, "restore-conflict", scene.undo)

    def test_batches_since_the_swap_do_not_hide_rows_of_others(self, scene: Scene) -> None:
        scene.stage()
        scene.make()
        scene.execute(f"INSERT INTO out (id, _slackwater_batch) VALUES (200, {STAGED + 1})")
        scene.execute(f"UPDATE slackwater_marker SET batch_id = {STAGED + 1} WHERE target = 'public.out'")
        scene.check_undo()
        scene.undo()
        scene.check_undo()
        scene.make()
        scene.execute(f"INSERT INTO out (id, _slackwater_batch) VALUES (201, {STAGED + 1})")
        refused(scene, "restore-conflict", scene.check_undo)
        refused(scene, "restore-conflict", scene.undo)

    def test_a_writer_that_has_not_committed_is_waited_for(self, scene: Scene) -> None:
        """The lock comes before the comparison: what the writer commits is seen."""
        scene.stage()
        with psycopg.connect(scene.url) as other, ThreadPoolExecutor(1) as pool:
            other.execute("INSERT INTO out (id, _slackwater_batch) VALUES (50, 1)")
            swapping = pool.submit(scene.make)
            waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'out'::regclass"
            while not swapping.done() and scene.rows(waiting)[0][0] == 0:
                pass
            assert not swapping.done()
            other.commit()
            with pytest.raises(Refused) as caught:
                swapping.result()
        assert caught.value.code == "swap-moved"
        assert scene.ids() == [*OLD, 50]


def test_swapped_again_cut_and_undone_in_turn(scene: Scene) -> None:
    scene.stage()
    scene.make()
    before, operation = scene.rows("SELECT * FROM out ORDER BY id"), "20260106T000000-000001"
    swap, backup = scene.output.swap_of(operation, OWNER.stream_id, 1), LocalStore(scene.folder / operation)
    scene.output.stage(operation, 1, {})
    staging = PostgresName("public", "out").staging(operation).table
    scene.execute(f"INSERT INTO {staging} (id, _slackwater_batch) VALUES (300, 2)")
    scene.execute(f"UPDATE slackwater_marker SET batch_id = 2 WHERE target = 'public.{staging}'")
    scene.output.swap(swap, backup)
    assert scene.ids() == [100, 101, 300]
    cut, kept = scene.output.cut_after(0, {}), LocalStore(scene.folder / "cut")
    assert (cut.batches, cut.rows, cut.others) == ((1, 2), 2, NO_OTHERS)
    scene.output.cut(cut, {}, kept)
    scene.output.restore(cut, kept)
    assert (scene.ids(), scene.output.cut_after(0, {}).others) == ([100, 101, 300], NO_OTHERS)
    scene.output.swap_back(swap, backup)
    assert scene.rows("SELECT * FROM out ORDER BY id") == before
    scene.undo()
    assert scene.ids() == OLD


def test_a_run_that_started_before_may_not_write(scene: Scene) -> None:
    scene.stage()
    scene.make()
    with raises_code(Refused, "sink-fenced"):
        scene.output.target.is_written(WriteContext(OWNER.stream_id, OWNER.stream, 4, "append"), 0)


def test_the_sink_and_the_output_name_one_place(scene: Scene) -> None:
    sink = postgres_sink(scene.url, "out", keep_batch_id=True)
    staged = sink.staged(OPERATION)
    assert open_output(staged.identity()).location == scene.output.staged(OPERATION).location
    assert replace(staged, table=sink.table) == sink


def refused(scene: Scene, code: str, act: Callable[[], object]) -> None:
    before = scene.tables(), scene.marks(), scene.ids(), scene.output.last_written()
    with raises_code(Refused, code):
        act()
    assert (scene.tables(), scene.marks(), scene.ids(), scene.output.last_written()) == before


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE child (id int REFERENCES out)",
        "CREATE TABLE other (id int PRIMARY KEY); ALTER TABLE out ADD FOREIGN KEY (id) REFERENCES other NOT VALID",
        "CREATE TRIGGER t BEFORE UPDATE ON out FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        "ALTER TABLE out ENABLE ROW LEVEL SECURITY",
        "CREATE RULE r AS ON DELETE TO out DO INSTEAD NOTHING",
        "CREATE PUBLICATION p FOR TABLE out",
        "CREATE MATERIALIZED VIEW m AS SELECT * FROM out",
        "CREATE TABLE child () INHERITS (out)",
        "CREATE FUNCTION f() RETURNS SETOF public.out AS 'SELECT * FROM out' LANGUAGE sql",
        "CREATE TABLE rows_of_it (one public.out)",
    ],
)
def test_a_table_with_what_would_stay_behind_is_refused(scene: Scene, statement: str) -> None:
    scene.stage()
    scene.execute(statement)
    refused(scene, "swap-unsupported", scene.make)
    scene.output.discard(OPERATION, "staged")
    refused(scene, "swap-unsupported", lambda: scene.output.stage(OPERATION, -1, {}))


def test_a_view_or_no_table_is_refused(scene: Scene) -> None:
    scene.execute("ALTER TABLE out RENAME TO renamed")
    for statement in ("SELECT 1", "CREATE VIEW out AS SELECT * FROM renamed"):
        scene.execute(statement)
        with raises_code(Refused, "swap-unsupported"):
            scene.output.stage(OPERATION, -1, {})


class TestRefused:
    """Before anything is changed."""

    def test_no_staged_table(self, scene: Scene) -> None:
        refused(scene, "staged-absent", scene.make)
        refused(scene, "staged-absent", lambda: scene.output.check_swap(scene.swap, scene.backup))

    def test_another_table_in_its_place(self, scene: Scene) -> None:
        scene.execute(f"CREATE TABLE {scene.staging} (id int)")
        for act in (
            lambda: scene.output.stage(OPERATION, -1, {}),
            lambda: scene.output.discard(OPERATION, "staged"),
            lambda: scene.output.discard(OPERATION, "replaced"),
            scene.make,
        ):
            refused(scene, "staged-foreign", act)

    def test_rows_of_no_batch(self, scene: Scene) -> None:
        scene.stage()
        scene.execute(f"INSERT INTO {scene.staging} (id, _slackwater_batch) VALUES (999, {STAGED + 1})")
        refused(scene, "staged-damaged", scene.make)

    def test_another_stream(self, scene: Scene) -> None:
        scene.stage()
        other = replace(scene.swap, stream_id="other")
        refused(scene, "swap-foreign", lambda: scene.output.swap(other, scene.backup))

    def test_a_table_that_has_moved_on(self, scene: Scene) -> None:
        scene.stage()
        other = replace(scene.swap, replaced=LAST - 1)
        refused(scene, "swap-moved", lambda: scene.output.swap(other, scene.backup))

    def test_a_replaced_table_that_was_dropped(self, scene: Scene) -> None:
        scene.stage()
        scene.make()
        scene.output.discard(OPERATION, "replaced")
        with raises_code(Refused, "backup-damaged"):
            scene.undo()
        assert scene.ids() == NEW


def test_only_what_is_marked_is_discarded(scene: Scene) -> None:
    scene.stage()
    orphan = PostgresName("public", scene.staging).staged_prefix(OWNER.stream_id) + "0" * 32
    scene.execute(f"CREATE TABLE {orphan} ()")
    scene.output.discard(OPERATION, "replaced")
    assert scene.staging in scene.tables()
    for _ in range(2):
        scene.output.discard(OPERATION, "staged")
        assert scene.tables() == {"out", "slackwater_marker"}
        assert scene.marks() == {"real": (LAST, 3)}
    scene.undo()
    assert scene.ids() == OLD


def test_a_reader_that_holds_the_table_stops_the_swap_for_a_while_only(scene: Scene) -> None:
    scene.stage()
    connection = psycopg.connect(scene.url)
    connection.execute("SET idle_in_transaction_session_timeout = '1s'")
    connection.execute("SELECT * FROM out")
    scene.make()
    connection.close()
    assert scene.ids() == NEW


@pytest.mark.parametrize("step", ["make", "stage", "undo"])
def test_a_driver_that_holds_the_marker_is_not_waited_for_without_end(
    scene: Scene, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if step != "stage":
        scene.stage()
    if step == "undo":
        scene.make()
    monkeypatch.setattr("slackwater.sinks.common.marker.LOCK_WAIT_S", 1)
    with psycopg.connect(scene.url) as connection:
        connection.execute("SET idle_in_transaction_session_timeout = '60s'")
        connection.execute("SELECT * FROM slackwater_marker FOR UPDATE")
        with pytest.raises(StreamFailed) as caught:
            getattr(scene, step)()
    assert caught.value.code == "sink-busy"


def test_a_view_that_cannot_be_rebuilt_changes_nothing(scene: Scene) -> None:
    scene.stage()
    scene.execute("CREATE VIEW words AS SELECT word FROM out")
    scene.execute(f"ALTER TABLE {scene.staging} DROP COLUMN word")
    with raises_code(StreamFailed, "sink-table-changed"):
        scene.make()
    assert (scene.ids(), scene.ids(scene.staging), scene.output.last_written()) == (OLD, NEW, LAST)


def test_swap_and_undo_can_be_killed_before_each_statement(scene: Scene) -> None:
    """Each is one transaction: killed in it, nothing has changed, and the next attempt does all of it."""
    scene.execute("CREATE VIEW words AS SELECT id, word FROM out")
    scene.stage()
    for act, before, after in ((scene.make, OLD, NEW), (scene.undo, NEW, OLD)):
        points, marks = 0, scene.marks()
        for points in kill_points(act, scene.folder, lambda: None, sql=True, every=range(1, sys.maxsize, EVERY)):
            assert scene.ids() == before, f"killed before statement {points}"
        assert points > 20
        assert scene.ids() == scene.ids("words") == after
        assert {name: batch for name, (batch, _) in scene.marks().items()} == {
            "real": marks["aside"][0],
            "aside": marks["real"][0],
        }


def test_staging_can_be_killed_before_each_statement(scene: Scene) -> None:
    for point in kill_points(
        lambda: scene.output.stage(OPERATION, 2, {}),
        scene.folder,
        lambda: scene.output.discard(OPERATION, "staged"),
        sql=True,
    ):
        scene.output.stage(OPERATION, 2, {})
        assert scene.ids(scene.staging) == [0, 1, 2], f"killed before statement {point}"
        assert scene.output.staged(OPERATION).last_written() == 2
