"""Every contract test runs on each database that a ledger may be kept in."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slackwater.core.records import GenerationRecord, StreamRecord
from slackwater.ledger.ledger import Ledger
from tests.support.postgres_server import PostgresServer, postgres_server

STREAM = "weather/hourly"


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def empty_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with nothing in it, to copy: quicker than the migrations."""
    path = tmp_path_factory.mktemp("ledger") / "ledger.db"
    Ledger.open(path, create=True).close()
    return path


@pytest.fixture(scope="session")
def empty_postgres(postgres: PostgresServer) -> str:
    name = postgres.new_database()
    Ledger.open(postgres.url(name), create=True).close()
    return name


@pytest.fixture
def sqlite_url(empty_sqlite: Path, tmp_path: Path) -> str:
    return str(shutil.copy(empty_sqlite, tmp_path / "ledger.db"))


@pytest.fixture(params=["sqlite", "postgresql"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    if request.param == "sqlite":
        return str(request.getfixturevalue("sqlite_url"))
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(server.new_database(request.getfixturevalue("empty_postgres")))


@pytest.fixture(params=["sqlite", "postgresql"])
def blank_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "new" / "ledger.db")
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url(server.new_database())


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now_ms

    def forward(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ledger(ledger_url: str, clock: Clock) -> Iterator[Ledger]:
    """An open ledger with one stream and its first generation."""
    with Ledger.open(ledger_url, create=False, now_ms=clock) as opened:
        opened.register_stream(stream_record())
        opened.add_generation(GenerationRecord(STREAM, 1, "/home/checkpoints/0001"))
        yield opened


@pytest.fixture
def new_stream(ledger: Ledger) -> Callable[[str], str]:
    """Registers another stream of the pipeline ``weather`` with a first generation; its full name."""

    def register(name: str) -> str:
        record = stream_record(name)
        ledger.register_stream(record)
        ledger.add_generation(GenerationRecord(record.full_name, 1, f"/home/{name}/0001"))
        return record.full_name

    return register


def stream_record(name: str = "hourly", pipeline: str = "weather") -> StreamRecord:
    sink = {"kind": "files", "path": f"file:///gold/{name}", "format": "parquet"}
    return StreamRecord(pipeline, name, sink, "append", "pipeline.py")
