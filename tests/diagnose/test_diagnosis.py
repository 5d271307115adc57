"""What checks and the number line find together."""

import json
import random
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from slackwater.cli.main import main
from slackwater.cli.verbs.doctor import doctor_page
from slackwater.core.checkpoint import Depth
from slackwater.core.facts import Facts, Unknown
from slackwater.core.sink import Delivery
from slackwater.core.snapshot import OutputSeen
from slackwater.core.verdict import Change, Effect, StreamVerdict, Verdict
from slackwater.diagnose.checks.common.check import write_query_id
from slackwater.diagnose.doctor import diagnose
from slackwater.diagnose.error_texts import explained, recognise
from slackwater.facts.collect import facts_of_location
from slackwater.sinks.common.registry import identity_at
from slackwater.storage.open import open_read_store
from tests.diagnose.cases import AGGREGATION, FILES, Case, both, nothing, output_in_place, remove, write
from tests.diagnose.random_damage import damage
from tests.diagnose.recorded import with_query_id
from tests.diagnose.rewriting import reread
from tests.sinks import iceberg_tables
from tests.support.corpus import VERSIONS, corpus_case, corpus_cases

NO_PLAN = remove("checkpoint/offsets/7")
ENTRIES = ("0", "1", "2.compact", "3", "4", "5.compact", "6", "7")
THREE_COMMITS = remove("checkpoint/commits/5", "checkpoint/commits/6", "checkpoint/commits/7")


def codes(facts: Facts) -> list[str]:
    return [one.finding.code for one in diagnose(facts).found]


def test_damage_that_a_check_names_is_not_reported_twice(tmp_path: Path) -> None:
    assert codes(Case("", "", NO_PLAN).facts(tmp_path)) == ["SW-LOG-007"]


def test_other_damage_is_reported_beside_a_check(tmp_path: Path) -> None:
    edit = both(NO_PLAN, write("checkpoint/sources/0/7", ""))

    found = codes(Case("", "", edit).facts(tmp_path))

    assert set(found) == {"SW-LOG-007", "checkpoint-damaged"}


def test_nothing_is_called_clean_beside_a_stop(tmp_path: Path) -> None:
    edit = both(THREE_COMMITS, output_in_place, remove("sink/_spark_metadata/6", "sink/_spark_metadata/7"))

    assert codes(Case("", "", edit, with_sink=True).facts(tmp_path)) == ["SW-LOG-009"]


@pytest.mark.parametrize(
    "case",
    [
        Case("a number among the plans", "SW-STORE-007", write("checkpoint/offsets/99", "hello")),
        Case("a number among the commits", "SW-STORE-007", write("checkpoint/commits/99", "v1\n{}")),
        Case(
            "an empty plan of a batch that the output lacks",
            "SW-LOG-001",
            both(
                write("checkpoint/offsets/7", ""),
                remove("checkpoint/commits/7"),
                output_in_place,
                remove("sink/_spark_metadata/7"),
            ),
            with_sink=True,
        ),
    ],
    ids=lambda case: case.name,
)
def test_the_words_of_the_advice_remove_the_cause(case: Case, tmp_path: Path) -> None:
    facts = case.facts(tmp_path)
    advice = next(one.finding.advice for one in diagnose(facts).found if one.finding.code == case.code)
    assert advice is not None

    subprocess.run(["bash", "-c", advice[advice.index("mkdir") :]], check=True)

    checkpoint = Path(facts.checkpoint.location)
    sink = identity_at(str(checkpoint.parent / "sink")) if case.with_sink else None
    assert diagnose(facts_of_location(open_read_store(str(checkpoint)), sink)).problems == ()


OTHER_ID = "11111111-1111-1111-1111-111111111111"


def test_the_words_that_write_a_query_id_leave_no_checksum_of_another_id(tmp_path: Path) -> None:
    facts = Case("", "", nothing, ledger=with_query_id(OTHER_ID)).facts(tmp_path)
    checkpoint = Path(facts.checkpoint.location)
    assert (checkpoint / ".metadata.crc").exists(), "as Hadoop's local file system writes it"
    advice = next(one.finding.advice for one in diagnose(facts).found if one.finding.code == "SW-LOG-014")
    assert advice is not None

    subprocess.run(["bash", "-c", advice[advice.index("rm ") :]], check=True)

    after = facts_of_location(open_read_store(str(checkpoint)), None).checkpoint
    assert (after.report.query_id, after.damage) == (OTHER_ID, ())


@pytest.mark.parametrize(
    ("location", "query_id"), [("s3://bucket/state", OTHER_ID), ("s3://bucket/state", None), ("/state", None)]
)
def test_a_checksum_is_named_where_the_words_are_no_command(
    location: str, query_id: str | None, tmp_path: Path
) -> None:
    seen = Case("", "", nothing).facts(tmp_path).checkpoint
    moved = replace(seen, report=seen.report._replace(location=location))

    assert f"delete {location}/.metadata.crc, " in write_query_id(moved, query_id)
    without = replace(moved, folders={**seen.folders, "": ["metadata"]})
    assert ".metadata.crc" not in write_query_id(without, query_id)


@pytest.mark.parametrize(("kind", "certainty"), [("foreach_batch", "possible"), ("kafka", "certain")])
def test_rows_of_a_function_are_possibly_written_twice(tmp_path: Path, kind: str, certainty: str) -> None:
    facts = Case("", "", nothing).facts(tmp_path)
    stream = facts.snapshot.stream._replace(sink={"kind": kind})
    output = OutputSeen(delivery=Delivery("at-least-once", "it is a function"))
    facts = facts._replace(recorded=True, snapshot=facts.snapshot._replace(stream=stream, output=output))

    found = {one.finding.code: one for one in diagnose(facts).found}

    assert found["at-least-once"].certainty == certainty


def test_a_change_of_the_code_is_a_finding_and_nothing_is_called_clean_beside_it(tmp_path: Path) -> None:
    change = Change("window-changed", Effect.NEEDS_REBUILD, "the window has another length", goal="rebuild")
    judged = StreamVerdict("web/out", 7, "recorded", Verdict((change,)), ways=("slackwater plan rebuild web/out",))
    facts = Case("", "", output_in_place, with_sink=True).facts(tmp_path)._replace(recorded=True)
    assert codes(facts) == ["clean"]

    diagnosis = diagnose(facts._replace(code=judged, name="web/out"))
    [found] = diagnosis.found

    assert (found.finding.code, found.finding.goal, found.certainty) == ("window-changed", "rebuild", "certain")
    page = "\n".join(str(line) for line in doctor_page([diagnosis]).renderables)
    assert "slackwater plan rebuild web/out" in page
    assert "slackwater explain window-changed" in page


def test_code_that_cannot_be_compared_is_not_healthy(tmp_path: Path) -> None:
    facts = Case("", "", output_in_place, with_sink=True).facts(tmp_path)._replace(code=Unknown("no such stream"))

    assert "code" in [one.code for one in diagnose(facts).not_checked]


def test_code_that_cannot_be_read_is_not_healthy(tmp_path: Path) -> None:
    judged = StreamVerdict("web/out", 7, "unreadable")
    facts = Case("", "", output_in_place, with_sink=True).facts(tmp_path)._replace(code=judged)

    assert "code" in [one.code for one in diagnose(facts).not_checked]


def test_a_cause_that_files_show_only_in_part_is_not_excluded(tmp_path: Path) -> None:
    diagnosis = diagnose(Case("", "", output_in_place, with_sink=True).facts(tmp_path))
    text = "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator name does not match"

    [error] = explained(recognise(text), diagnosis)

    states = {cause.code: (cause.state, cause.by) for cause in error.causes}
    assert states["CHG-07"] == ("not-visible", "`check` and `run` compare the code: `operators-changed`")


def test_no_rows_are_at_stake_where_the_output_skips_the_batch(tmp_path: Path) -> None:
    facts = Case("", "", both(NO_PLAN, output_in_place), with_sink=True).facts(tmp_path)

    stakes = {one.finding.code: one.at_stake for one in diagnose(facts).found}

    assert stakes["SW-LOG-007"] is None


def test_rows_are_at_stake_where_the_output_has_no_batch(tmp_path: Path) -> None:
    no_entries = remove(*(f"sink/_spark_metadata/{entry}" for entry in ENTRIES))
    facts = Case("", "", both(NO_PLAN, no_entries), with_sink=True).facts(tmp_path)

    stakes = {one.finding.code: one.at_stake for one in diagnose(facts).found}

    assert stakes["SW-LOG-007"] == "the rows of batch 6, once more at each start"


@pytest.mark.parametrize(
    ("corpus", "missing", "shown"),
    [(AGGREGATION, "window-changed", "keys-changed"), (FILES, "source-format-changed", "")],
)
def test_what_a_checkpoint_does_not_show_of_a_change_is_not_checked(
    corpus: str, missing: str, shown: str, tmp_path: Path
) -> None:
    judged = StreamVerdict("web/out", 7, "checkpoint")
    facts = Case("", "", nothing, corpus).facts(tmp_path)._replace(code=judged)

    codes = {one.code for one in diagnose(facts).not_checked}

    assert missing in codes
    assert not codes & {shown, "output-changed", "sources-changed"}
    assert ("window-changed" in codes) is (corpus == AGGREGATION)
    assert "join-type-changed" not in codes, "neither has a join"


def test_with_the_recorded_program_every_change_is_checked(tmp_path: Path) -> None:
    judged = StreamVerdict("web/out", 7, "recorded")
    facts = Case("", "", nothing, AGGREGATION).facts(tmp_path)._replace(code=judged)

    assert "window-changed" not in {one.code for one in diagnose(facts).not_checked}


def test_of_a_checkpoint_that_is_not_recorded_no_command_is_named_for_a_change(tmp_path: Path) -> None:
    change = Change("keys-changed", Effect.NEEDS_REBUILD, "the state has 2 keys, the query has 1", goal="rebuild")
    judged = StreamVerdict("web/out", 7, "checkpoint", Verdict((change,)), ways=("slackwater plan rebuild web/out",))
    facts = Case("", "", nothing, AGGREGATION).facts(tmp_path)._replace(code=judged)

    advice = {one.finding.code: str(one.finding.advice) for one in diagnose(facts).found}["keys-changed"]

    assert advice.startswith("restore the old code")
    assert "slackwater" not in advice


# What is examined of a checkpoint that Slackwater has not recorded, with its output.


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


# Checkpoints of every Spark version with one damaged file: doctor and inspect report, whatever the file has.


SEEDS = 20
ENDS = {"doctor": (0, 1, 5), "inspect": (0, 3)}


def reported(
    version: str, seed: int, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[str, dict[str, int], str]:
    """What was damaged, the exit code of each command, and what was printed as errors."""
    dice = random.Random(f"{version} {seed}")
    case = corpus_case(version, dice.choice(corpus_cases(version)), folder)
    done = f"seed {seed}: {case.name}: {damage(case / 'checkpoint', dice)}"
    codes, errors = {}, ""
    for verb in ENDS:
        codes[verb] = main([verb, str(case / "checkpoint"), "--format", "json"])
        printed = capsys.readouterr()
        json.loads(printed.out)
        errors += printed.err
    return done, codes, errors


@pytest.mark.parametrize(
    "version", [*(pytest.param(one, marks=pytest.mark.thorough) for one in VERSIONS[:-1]), VERSIONS[-1]]
)
@pytest.mark.parametrize("part", [0, *(pytest.param(one, marks=pytest.mark.thorough) for one in range(1, 5))])
def test_a_damaged_file_is_reported(
    version: str, part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(part * SEEDS, (part + 1) * SEEDS):
        done, codes, errors = reported(version, seed, tmp_path / str(seed), capsys)

        assert all(code in ENDS[verb] for verb, code in codes.items()), (done, codes, errors)
        assert "Traceback" not in errors, (done, errors)
