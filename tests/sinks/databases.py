"""Outputs in databases for the contract suite, written by plain SQL and read the same way."""

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path

import psycopg
from sqlalchemy import Connection, Engine, create_engine, inspect, text
from sqlalchemy.pool import NullPool

from slackwater.core.sink import Cut, Owner
from slackwater.sinks.foreach_batch import MARKED
from slackwater.sinks.jdbc import JDBC_TRAITS
from slackwater.sinks.postgres import traits_of
from tests.support.kill_points import kill_points
from tests.support.postgres_server import PostgresServer

LAST = 12
OWNER = Owner("5f0e", "clicks/per_page", "/srv/home")
ROWS = 3
MARKER = (
    "CREATE TABLE IF NOT EXISTS slackwater_marker (target VARCHAR(255) PRIMARY KEY, stream_id VARCHAR(64) NOT NULL, "
    "stream VARCHAR(255) NOT NULL, home VARCHAR(1024) NOT NULL, epoch BIGINT NOT NULL, batch_id BIGINT NOT NULL, "
    "updated_at TIMESTAMP NOT NULL)"
)
MARK = "INSERT INTO slackwater_marker VALUES (:target, :stream_id, :stream, :home, 3, :batch_id, CURRENT_TIMESTAMP)"


def mark(connection: Connection, target: str, batch: int) -> None:
    connection.execute(text(MARKER))
    fields = {"stream_id": OWNER.stream_id, "stream": OWNER.stream, "home": OWNER.home}
    connection.execute(text(MARK), {"target": target, "batch_id": batch, **fields})


def newest(connection: Connection, target: str) -> int:
    statement = text("SELECT batch_id FROM slackwater_marker WHERE target = :target")
    return int(connection.execute(statement, {"target": target}).scalar_one())


class _DatabaseKind:
    """What is the same for all databases."""

    owner: Owner | None = OWNER
    removes_files = True
    forks = True
    server: PostgresServer | None = None

    def cut_names(self, folder: Path, cut: Cut) -> set[str]:
        return {name for name in self.visible(folder) if int(name.split("/")[0]) in cut.batches}

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        raise NotImplementedError

    def write(self, folder: Path) -> Mapping[int, str]:
        raise NotImplementedError

    def kill_points(self, function: Callable[[], object], below: Path, prepare: Callable[[], object]) -> Iterator[int]:
        return kill_points(function, below, prepare, sql=True)


FUNCTION = ("foreach_batch", {"name": "save"}, "writes_to", "foreach_batch/save")
JDBC = ("jdbc", {"table": "out"}, "url", "out")


class PostgresKind(_DatabaseKind):
    """A table with batch ids, in a database for each folder."""

    name = "postgres"
    traits = traits_of(keep_batch_id=True)

    def __init__(self) -> None:
        self._databases: dict[Path, str] = {}

    def identity(self, folder: Path) -> Mapping[str, str]:
        return {"kind": "postgres", "url": self._url(folder), "table": self._table(folder), "keep_batch_id": "true"}

    def write(self, folder: Path) -> Mapping[int, str]:
        table = self._table(folder)
        with self._engine(folder).begin() as connection:
            connection.execute(text(f"CREATE TABLE {table} (id bigserial, body jsonb, _slackwater_batch bigint)"))
            rows = [(batch, row) for batch in range(LAST + 1) for row in range(ROWS if batch % 3 else 0)]
            values = ", ".join(f"(jsonb_build_object('row', {row}), {batch})" for batch, row in rows)
            connection.execute(text(f"INSERT INTO {table} (body, _slackwater_batch) VALUES {values}"))
            mark(connection, f"public.{table}", LAST)
        return {}

    def reset(self, folder: Path) -> None:
        with self._engine(folder).begin() as connection:
            connection.execute(text("DROP SCHEMA public CASCADE"))
            connection.execute(text("CREATE SCHEMA public"))
        self.write(folder)

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        with self._engine(folder).connect() as connection:
            rows = connection.execute(text(f"SELECT _slackwater_batch, id, body::text FROM {self._table(folder)}"))
            return {f"{batch}/{number}": body.encode() for batch, number, body in rows}

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        with self._engine(folder).connect() as connection:
            tables = inspect(connection).get_table_names()
            held = {f"table {name[:14]}": b"" for name in tables}  # A backup has a random end.
            newest_batch = newest(connection, f"public.{self._table(folder)}")
        return {**self.visible(folder), **held, "newest": str(newest_batch).encode()}

    def _engine(self, folder: Path) -> Engine:
        url = self._url(folder)
        return create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(url), poolclass=NullPool)

    def _url(self, folder: Path) -> str:
        if self.server is None:
            return "postgresql://slackwater@localhost/none"
        # The suite's outputs of one test are in folders next to each other.
        if folder.parent not in self._databases:
            self._databases[folder.parent] = self.server.url(self.server.new_database())
        return self._databases[folder.parent]

    def _table(self, folder: Path) -> str:
        return f"t_{sha256(str(folder).encode()).hexdigest()[:10]}"


class SqliteKind(_DatabaseKind):
    """A sink that cannot cut, with its marker in a SQLite file: a batch function, or a table."""

    def __init__(self, name: str, identity: Mapping[str, str], url: str, target: str) -> None:
        self.name = name
        self.traits = JDBC_TRAITS if name == "jdbc" else MARKED
        self.target = target
        self._identity = identity
        self._url = url

    def identity(self, folder: Path) -> Mapping[str, str]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return {"kind": self.name, **self._identity, self._url: f"sqlite:///{folder}.db"}

    def write(self, folder: Path) -> Mapping[int, str]:
        with self._engine(folder).begin() as connection:
            mark(connection, self.target, LAST)
        return {}

    def reset(self, folder: Path) -> None:
        Path(f"{folder}.db").unlink()
        self.write(folder)

    def visible(self, folder: Path) -> Mapping[str, bytes]:
        with self._engine(folder).connect() as connection:
            return {f"{batch}/": b"" for batch in range(newest(connection, self.target) + 1)}

    def everything(self, folder: Path) -> Mapping[str, bytes]:
        return self.visible(folder)

    def _engine(self, folder: Path) -> Engine:
        return create_engine(f"sqlite:///{folder}.db", poolclass=NullPool)
