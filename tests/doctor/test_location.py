"""What is examined of a checkpoint that Slackwater has not recorded, with its output."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from slackwater.diagnose.doctor import diagnose
from slackwater.facts.collect import facts_of_location
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.open import open_read_store
from tests.doctor.cases import FILES
from tests.doctor.rewriting import reread
from tests.support.corpus import corpus_case


@pytest.mark.parametrize("thorough", [True, False])
def test_files_that_no_batch_wrote_are_looked_for_on_request(*, tmp_path: Path, thorough: bool) -> None:
    case = corpus_case("4.3.0", FILES, tmp_path)
    reread("sink/_spark_metadata", folder="sink")(case)
    shutil.copy(next((case / "sink").glob("*.parquet")), case / "sink" / "extra.parquet")

    facts = facts_of_location(
        open_read_store(str(case / "checkpoint")), identity_at(str(case / "sink")), thorough=thorough
    )

    found = {one.finding.code: one for one in diagnose(facts).found}
    assert ("orphan-files" in found) is thorough
    if thorough:
        assert "extra.parquet" in found["orphan-files"].finding.text
        assert found["orphan-files"].covers == ("FSINK-07",)
