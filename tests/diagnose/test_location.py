"""What is examined of a checkpoint that Slackwater has not recorded, with its output."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from slackwater.core.checkpoint import Depth
from slackwater.diagnose.doctor import diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.open import open_read_store
from tests.diagnose.cases import FILES
from tests.diagnose.rewriting import reread
from tests.sinks import iceberg_tables
from tests.support.corpus import corpus_case

OTHER = "66666666-7777-8888-9999-000000000000"


@pytest.mark.parametrize("depth", ["all", "start"])
def test_files_that_no_batch_wrote_are_looked_for_on_request(tmp_path: Path, depth: Depth) -> None:
    case = corpus_case("4.3.0", FILES, tmp_path)
    reread("sink/_spark_metadata", folder="sink")(case)
    shutil.copy(next((case / "sink").glob("*.parquet")), case / "sink" / "extra.parquet")

    facts = facts_of_location(open_read_store(str(case / "checkpoint")), identity_at(str(case / "sink")), depth)

    found = {one.finding.code: one for one in diagnose(facts).found}
    assert ("orphan-files" in found) is (depth == "all")
    if depth == "all":
        assert "extra.parquet" in found["orphan-files"].finding.text
        assert found["orphan-files"].covers == ("FSINK-07",)


@pytest.mark.parametrize("of_query", [True, False])
def test_a_table_that_the_sink_of_iceberg_wrote_shows_the_batch_of_the_query(*, tmp_path: Path, of_query: bool) -> None:
    case = corpus_case("4.3.0", FILES, tmp_path)
    table = tmp_path / "table"
    iceberg_tables.create(table)
    query_id = json.loads((case / "checkpoint/metadata").read_text())["id"] if of_query else OTHER
    for batch in range(8):
        file = iceberg_tables.data_file(table, f"part-{batch}.parquet", [batch])
        summary = {"spark.sql.streaming.queryId": query_id, "spark.sql.streaming.epochId": str(batch)}
        iceberg_tables.commit(table, [file], summary)

    facts = facts_of_location(open_read_store(str(case / "checkpoint")), identity_at(str(table)))

    assert facts.marks.written == (7 if of_query else None), "it has no marker of Slackwater's, and none was lost"
    codes = {one.finding.code for one in diagnose(facts).problems}
    assert codes == (set() if of_query else {"SW-LOG-014"})
