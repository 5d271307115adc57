"""Delta tables as sources and as outputs of a query that Slackwater does not run."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from deltalake import DeltaTable

from slackwater.core.facts import Facts
from slackwater.core.program import SourceShape
from slackwater.sources import kind_named
from slackwater.sources.common.contract import Asked
from tests.diagnose.cases import Case, both, nothing, output_in_place, remove
from tests.diagnose.recorded import with_query_id
from tests.diagnose.rewriting import replace as rewrite

_ID, _OTHER_ID = "11111111-2222-3333-4444-555555555555", "66666666-7777-8888-9999-000000000000"
_POSITION = f'{{"sourceVersion":1,"reservoirId":"{_ID}","reservoirVersion":%d,"index":-1,"isStartingVersion":false}}'


def _table(
    folder: str, *versions: int, identity: str = _ID, application: tuple[str, int] | None = None
) -> Callable[[Path], None]:
    """An empty table of which the log has these versions."""

    def edit(case: Path) -> None:
        shutil.rmtree(case / folder, ignore_errors=True)
        log = case / folder / "_delta_log"
        log.mkdir(parents=True)
        for version in versions:
            actions: list[dict[str, object]] = [{"commitInfo": {"timestamp": version}}]
            if version == versions[0]:
                actions += [
                    {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
                    {"metaData": _metadata(identity)},
                ]
            if application is not None and version == versions[-1]:
                actions.append({"txn": {"appId": application[0], "version": application[1]}})
            (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))

    return edit


def _metadata(identity: str) -> dict[str, object]:
    return {
        "id": identity, "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "configuration": {},
        "schemaString": '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}',
    }  # fmt: skip


def _cleaned(case: Path) -> None:
    """A table whose log starts with version 2, after a checkpoint of deltalake's was written."""
    _table("table", 0, 1, 2, 3)(case)
    DeltaTable(str(case / "table")).create_checkpoint()
    for version in (0, 1):
        (case / f"table/_delta_log/{version:020}.json").unlink()


def _at(version: int) -> Callable[[Path], None]:
    return both(
        *(rewrite(f"checkpoint/offsets/{batch}", f'{{"logOffset":{batch}}}', _POSITION % version) for batch in (6, 7))
    )


def _reading_table(facts: Facts) -> Facts:
    """The facts of a recorded stream that reads the table next to its checkpoint."""
    shape = SourceShape("delta", str(Path(facts.checkpoint.location).parent / "table"))
    live = kind_named("delta").live()
    sources = tuple(
        one._replace(shape=shape, unserved=tuple(live.unserved(shape, Asked(one.start)))) for one in facts.sources
    )
    return facts._replace(sources=sources)


def _own_transaction(batch: int) -> Callable[[Path], None]:
    """A table that Delta's own sink wrote for the query."""

    def edit(case: Path) -> None:
        query_id = json.loads((case / "checkpoint/metadata").read_text())["id"]
        _table("sink", 0, 1, application=(query_id, batch))(case)

    return edit


def _compacted(case: Path) -> None:
    """The log of the output without its entries, which a checkpoint of the log replaces."""
    DeltaTable(str(case / "sink")).create_checkpoint()
    shutil.copy(case / f"sink/_delta_log/{0:020}.json", case / f"sink/_delta_log/{2:020}.json")
    for version in (0, 1):
        (case / f"sink/_delta_log/{version:020}.json").unlink()
    (case / f"sink/_delta_log/{2:020}.json").write_text(json.dumps({"commitInfo": {"timestamp": 2}}))


_PLANNED = remove("checkpoint/commits/7")

CASES = [
    Case(
        "another id", "SW-DELTA-005", both(_at(1), _table("table", 0, 1, identity=_OTHER_ID)),
        says=(_ID, _OTHER_ID), ledger=_reading_table,
    ),
    Case("no table", "SW-DELTA-005", _at(1), says=("no Delta table",), ledger=_reading_table),
    Case("its own id", "SW-DELTA-005", both(_at(1), _table("table", 0, 1)), ledger=_reading_table, fires=False),
    Case("cleaned", "SW-DELTA-006", both(_at(1), _cleaned), says=("version 2 as the oldest",), ledger=_reading_table),
    Case("cleaned before it", "SW-DELTA-006", both(_at(2), _cleaned), ledger=_reading_table, fires=False),
    Case(
        "another application", "SW-DELTA-001", _table("sink", 0, 1, application=("job", 8)), with_sink=True,
        says=("job", "8 to 8"),
    ),
    Case("a batch older", "SW-DELTA-001", _table("sink", 0, 1, application=("job", 7)), with_sink=True, fires=False),
    Case("no transaction", "SW-DELTA-001", _table("sink", 0, 1), with_sink=True, fires=False),
    Case(
        "another query", "SW-DELTA-001", _table("sink", 0, 1, application=(_OTHER_ID, 8)), with_sink=True, fires=False
    ),
    Case(
        "another query", "SW-LOG-014", _table("sink", 0, 1, application=(_OTHER_ID, 7)), with_sink=True,
        says=(_OTHER_ID, "the output", "printf"),
    ),
    Case("another recorded id", "SW-LOG-014", nothing, ledger=with_query_id(_OTHER_ID), says=(_OTHER_ID, "ledger")),
    Case("its own id", "SW-LOG-014", _own_transaction(7), with_sink=True, fires=False),
    Case("a job", "SW-LOG-014", _table("sink", 0, 1, application=("job", 7)), with_sink=True, fires=False),
    Case(
        "its transaction expired", "SW-DELTA-004", both(_PLANNED, _table("sink", 0, 1)), with_sink=True,
        says=("batch 7 will run again",),
    ),
    Case("its transaction is there", "SW-DELTA-004", both(_PLANNED, _own_transaction(6)), with_sink=True, fires=False),
    Case(
        "only a checkpoint of the log has it", "SW-DELTA-004", both(_PLANNED, _own_transaction(6), _compacted),
        with_sink=True, fires=False,
    ),
    Case("no batch runs again", "SW-DELTA-004", _table("sink", 0, 1), with_sink=True, fires=False),
    Case("an output of files", "SW-DELTA-004", both(_PLANNED, output_in_place), with_sink=True, fires=False),
]  # fmt: skip
