"""What a batch function is given: an id that is an int, and a transaction that cannot be used twice for one batch."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.pool import NullPool

import slackwater as sw
from slackwater.core.errors import PipelineError, Refused
from slackwater.core.sink import Owner, WriteContext
from slackwater.sinks import Batch
from slackwater.sinks.common.batch_function import BatchFailed
from slackwater.sinks.common.registry import open_output
from tests.support.errors import raises_code

CONTEXT = WriteContext("5f0e", "clicks/orders", 3, "append", planned=4)


FRAME: Any = MagicMock(name="the batch's DataFrame")


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    made = create_engine(f"sqlite:///{tmp_path}/out.db", poolclass=NullPool)
    with made.begin() as connection:
        connection.execute(text("CREATE TABLE orders (batch INTEGER)"))
    return made


def run(sink: sw.sinks.ForeachBatchSink, batch: int, context: WriteContext = CONTEXT) -> None:
    """Call the batch function as Spark does."""
    writer: Any = SimpleNamespace(foreachBatch=lambda function: function)
    attached: Any = sink.attach(writer, context)
    attached(FRAME, batch)


def insert(connection: Any, batch: int) -> None:
    connection.execute(text("INSERT INTO orders VALUES (:batch)"), {"batch": int(batch)})


def rows(engine: Engine) -> list[int]:
    with engine.connect() as connection:
        return list(connection.execute(text("SELECT batch FROM orders ORDER BY batch")).scalars())


def test_a_batch_is_the_int_that_pyspark_gives() -> None:
    batch = Batch.of(4, CONTEXT, "save")
    assert (batch, f"{batch}", json.dumps(batch), repr(batch)) == (4, "4", "4", "4")
    assert isinstance(batch, int)
    assert type(copy.copy(batch)) is int  # As pickled: in a UDF it is a plain number.
    assert (batch.stream, batch.stream_id, batch.epoch) == ("clicks/orders", "5f0e", 3)
    assert batch.is_rerun
    assert not Batch.of(5, CONTEXT, "save").is_rerun
    options = batch.delta_options()
    assert "5f0e" in options["txnAppId"]
    assert options["txnVersion"] == "4"


def test_a_declared_database_makes_it_exactly_once(engine: Engine, tmp_path: Path) -> None:
    calls: list[int] = []

    def save(_frame: object, batch: Batch) -> None:
        calls.append(int(batch))
        with batch.transaction() as connection:
            insert(connection, batch)
            if len(calls) == 2:
                raise ZeroDivisionError

    sink = sw.sinks.foreach_batch(save, writes_to=f"sqlite:///{tmp_path}/out.db")
    output = open_output(sink.identity())
    assert output.last_written() == -1
    output.claim(Owner(CONTEXT.stream_id, CONTEXT.stream, "/srv/home"))
    run(sink, 0)
    with pytest.raises(ZeroDivisionError):
        run(sink, 1)
    assert (rows(engine), output.last_written()) == ([0], 0)
    for batch in (1, 1, 0, 2):
        run(sink, batch)
    assert calls == [0, 1, 1, 2]
    assert (rows(engine), output.last_written()) == ([0, 1, 2], 2)
    assert sink.traits.delivery.guarantee == "exactly-once"


def test_an_engine_of_the_functions_own_for_the_declared_database(engine: Engine, tmp_path: Path) -> None:
    def save(_frame: object, batch: Batch) -> None:
        with batch.transaction(engine) as connection:
            insert(connection, batch)

    sink = sw.sinks.foreach_batch(save, writes_to=f"sqlite:///{tmp_path}/out.db")
    _claim(sink)
    run(sink, 0)
    run(sink, 0)
    assert rows(engine) == [0]
    assert open_output(sink.identity()).last_written() == 0


def test_a_function_that_does_not_mark_its_batch_fails_at_once(engine: Engine, tmp_path: Path) -> None:
    def save(_frame: object, batch: Batch) -> None:
        with engine.begin() as connection:
            insert(connection, batch)

    sink = sw.sinks.foreach_batch(save, writes_to=f"sqlite:///{tmp_path}/out.db")
    _claim(sink)
    with pytest.raises(BatchFailed, match=r"\[batch-unmarked\]"):
        run(sink, 0)


def test_without_asking_there_is_no_transaction(engine: Engine) -> None:
    batch = Batch.of(0, CONTEXT, "save")
    with raises_code(PipelineError, "batch-transaction"), batch.transaction(engine):
        pass
    with pytest.raises(PipelineError), batch.transaction():
        pass


def test_several_databases_and_parts(engine: Engine, tmp_path: Path) -> None:
    other = create_engine(f"sqlite:///{tmp_path}/other.db", poolclass=NullPool)

    def save(batch: Batch, *, fail: bool = False) -> None:
        for part in ("a", "b"):
            if not batch.already_written(engine, part):
                with batch.transaction(engine, part) as connection:
                    insert(connection, batch)
            if fail:
                raise ZeroDivisionError
        if not batch.already_written(other):
            with batch.transaction(other) as connection:
                connection.execute(text("CREATE TABLE orders (batch INTEGER)"))

    with pytest.raises(ZeroDivisionError):
        save(Batch.of(0, CONTEXT, "save"), fail=True)
    save(Batch.of(0, CONTEXT, "save"))
    save(Batch.of(0, CONTEXT, "save"))
    assert rows(engine) == [0, 0]


def test_a_second_transaction_of_a_batch_is_an_error(engine: Engine) -> None:
    batch = Batch.of(0, CONTEXT, "save")
    assert not batch.already_written(engine)
    with batch.transaction(engine) as connection:
        insert(connection, batch)
    with pytest.raises(PipelineError), batch.transaction(engine):
        pass
    assert batch.already_written(engine)
    assert rows(engine) == [0]


def test_nothing_is_written_after_the_transaction_that_marks(tmp_path: Path) -> None:
    other = create_engine(f"sqlite:///{tmp_path}/other.db", poolclass=NullPool)

    def save(_frame: object, batch: Batch) -> None:
        with batch.transaction():
            pass
        if not batch.already_written(other):
            with batch.transaction(other):
                pass

    sink = sw.sinks.foreach_batch(save, writes_to=f"sqlite:///{tmp_path}/out.db")
    _claim(sink)
    with pytest.raises(BatchFailed, match=r"\[batch-transaction\]"):
        run(sink, 0)


def test_a_replaced_run_may_not_write(engine: Engine) -> None:
    old, new = CONTEXT, WriteContext("5f0e", "clicks/orders", 4, "append")
    late = Batch.of(0, old, "save")
    assert not late.already_written(engine)
    batch = Batch.of(0, new, "save")
    assert not batch.already_written(engine)
    with batch.transaction(engine) as connection:
        insert(connection, batch)
    with raises_code(Refused, "sink-fenced"), late.transaction(engine) as connection:
        insert(connection, late)
    assert rows(engine) == [0]


def test_a_batch_that_another_call_wrote_meanwhile_is_not_written_again(engine: Engine) -> None:
    first, second = (Batch.of(0, CONTEXT, "save") for _ in range(2))
    assert not second.already_written(engine)
    assert not first.already_written(engine)
    with first.transaction(engine) as connection:
        insert(connection, first)
    with raises_code(Refused, "batch-written"), second.transaction(engine) as connection:
        insert(connection, second)
    assert rows(engine) == [0]


def test_a_plain_function_of_pyspark_is_at_least_once() -> None:
    seen: list[int] = []
    sink = sw.sinks.foreach_batch(lambda _df, batch_id: seen.append(batch_id), name="plain")
    run(sink, 3)
    assert seen == [3]
    assert sink.traits.delivery.guarantee == "at-least-once"
    output = open_output(sink.identity())
    assert output.last_written() is None
    output.claim(Owner("a", "b", "c"))
    assert output.owner() is None


@pytest.mark.parametrize(
    ("function", "code"),
    [
        (None, "foreach-batch-function"),
        (lambda _df: None, "foreach-batch-function"),
        (lambda _df, _batch: None, "foreach-batch-name"),
    ],
)
def test_a_function_that_cannot_be_used(function: Any, code: str) -> None:
    with raises_code(PipelineError, code):
        sw.sinks.foreach_batch(function)


def _claim(sink: sw.sinks.ForeachBatchSink) -> None:
    open_output(sink.identity()).claim(Owner(CONTEXT.stream_id, CONTEXT.stream, "/srv/home"))
