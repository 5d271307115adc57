"""Edits of ``offsets/``, ``commits/`` and ``metadata``."""

from slackwater.core.facts import Facts, HistoryFacts
from slackwater.formats.text_log import parse_offset_entry
from tests.diagnose.cases import AGGREGATION, FILES, Case, both, nothing, output_in_place, remove, write
from tests.diagnose.rewriting import copy, delete_folder, replace
from tests.support.corpus import corpus_folder

BATCHES = range(8)
THREE_COMMITS = remove("checkpoint/commits/5", "checkpoint/commits/6", "checkpoint/commits/7")
LAST_COMMIT = remove("checkpoint/commits/7")

FORMAT_2 = "agg_cpv2_rocksdb_changelog"
REPARTITION = "offline_repartition_rocksdb"
TWO_PARTITIONS = '"spark.sql.shuffle.partitions":"2"'
FOUR_PARTITIONS = '"spark.sql.shuffle.partitions":"4"'
CODEC_7 = '"spark.sql.streaming.stateStore.compression.codec":"lz7"'
EDITED = replace("checkpoint/offsets/7", '{"logOffset":7}', '{"logOffset":6}')


def as_recorded(facts: Facts) -> Facts:
    """A ledger with what Spark wrote into the two newest entries."""
    folder = corpus_folder("4.3.0", FILES) / "checkpoint" / "offsets"
    entries = {batch: parse_offset_entry((folder / str(batch)).read_bytes()) for batch in (6, 7)}
    return facts._replace(recorded=True, history=HistoryFacts(offsets=entries))


CASES = [
    Case("the entry before the newest", "SW-LOG-006", remove("checkpoint/offsets/6"), says=("batch 6", "offsets/6")),
    Case("an older entry", "SW-LOG-006", remove("checkpoint/offsets/4"), fires=False),
    Case("nothing removed", "SW-LOG-006", nothing, fires=False),
    Case("gaps of asynchronous progress tracking", "SW-LOG-006", nothing, corpus="async_progress_gaps", fires=False),
    Case(
        "the newest plan is missing",
        "SW-LOG-007",
        remove("checkpoint/offsets/7"),
        says=("commits/ has batch 7", "runs batch 6 again"),
    ),
    Case(
        "the two newest plans are missing",
        "SW-LOG-007",
        remove("checkpoint/offsets/7", "checkpoint/offsets/6"),
        says=("batches 6..7",),
    ),
    Case(
        "all plans are missing",
        "SW-LOG-007",
        remove(*(f"checkpoint/offsets/{batch}" for batch in BATCHES)),
        says=("runs batch 0 again",),
    ),
    Case(
        "the newest plan is missing, and the output is not known",
        "SW-LOG-007",
        remove("checkpoint/offsets/7"),
        says=("once more at each start, unless the sink skips",),
    ),
    Case("an older plan is missing", "SW-LOG-007", remove("checkpoint/offsets/4"), fires=False),
    Case(
        "plan and commit of the newest batch are missing",
        "SW-LOG-007",
        both(remove("checkpoint/offsets/7"), LAST_COMMIT),
        fires=False,
    ),
    Case("a stray commit", "SW-LOG-007", write("checkpoint/commits/99", "v1\n{}"), fires=False),
    Case("three commits are missing", "SW-LOG-009", THREE_COMMITS, says=("batches 5..6", "only batch 7")),
    Case("all commits are missing", "SW-LOG-009", remove(*(f"checkpoint/commits/{one}" for one in BATCHES))),
    Case("one commit is missing: an interrupted batch", "SW-LOG-009", LAST_COMMIT, fires=False),
    Case(
        "three commits are missing, and the output has the batches",
        "SW-LOG-009",
        both(THREE_COMMITS, output_in_place),
        with_sink=True,
        fires=False,
    ),
    Case(
        "three commits are missing, and the output lacks the last two batches",
        "SW-LOG-009",
        both(THREE_COMMITS, output_in_place, remove("sink/_spark_metadata/6", "sink/_spark_metadata/7")),
        with_sink=True,
        says=("batch 6",),
    ),
    Case("gaps of asynchronous progress tracking", "SW-LOG-009", nothing, corpus="async_progress_gaps", fires=False),
    Case(
        "commits of a continuous query",
        "SW-LOG-009",
        remove("checkpoint/commits/7", "checkpoint/commits/8"),
        corpus="continuous_rate",
        fires=False,
    ),
    Case("no metadata", "SW-LOG-012", remove("checkpoint/metadata"), says=("progress events",)),
    Case("empty metadata", "SW-LOG-012", write("checkpoint/metadata", ""), fires=False),
    Case("nothing removed", "SW-LOG-012", nothing, fires=False),
    Case("empty metadata", "SW-LOG-013", write("checkpoint/metadata", "")),
    Case("an id that is no UUID", "SW-LOG-013", write("checkpoint/metadata", '{"id":"orders"}'), says=("orders",)),
    Case("metadata without an id", "SW-LOG-013", write("checkpoint/metadata", "{}")),
    Case("no metadata", "SW-LOG-013", remove("checkpoint/metadata"), fires=False),
    Case("nothing removed", "SW-LOG-013", nothing, fires=False),
    Case("an empty plan", "SW-LOG-001", write("checkpoint/offsets/7", ""), says=("batch 7",)),
    Case("a plan with only its version", "SW-LOG-001", write("checkpoint/offsets/7", "v1")),
    Case("a plan that is cut", "SW-LOG-001", write("checkpoint/offsets/6", 'v1\n{"batchWater'), says=("batch 6",)),
    Case(
        "an empty plan of a batch that the output lacks",
        "SW-LOG-001",
        both(write("checkpoint/offsets/7", ""), LAST_COMMIT, output_in_place, remove("sink/_spark_metadata/7")),
        with_sink=True,
        says=("mv -n",),
    ),
    Case("an older plan that is empty", "SW-LOG-001", write("checkpoint/offsets/4", ""), fires=False),
    Case("a plan that is too new", "SW-LOG-001", write("checkpoint/offsets/7", "v9\n{}\n-"), fires=False),
    Case("an empty commit", "SW-LOG-005", write("checkpoint/commits/7", ""), says=("batch 7",)),
    Case("a malformed commit", "SW-LOG-005", write("checkpoint/commits/8", "hello"), corpus=AGGREGATION),
    Case(
        "an empty commit of a batch that the output has",
        "SW-LOG-005",
        both(write("checkpoint/commits/7", ""), output_in_place),
        with_sink=True,
        says=("mv -n",),
    ),
    Case("a commit with only its version", "SW-LOG-005", write("checkpoint/commits/7", "v1"), fires=False),
    Case("an older commit that is empty", "SW-LOG-005", write("checkpoint/commits/4", ""), fires=False),
    Case("a lower offset", "SW-LOG-011", EDITED, ledger=as_recorded, says=("offset of source 0",)),
    Case(
        "a setting of the entry before the newest",
        "SW-LOG-011",
        replace("checkpoint/offsets/6", TWO_PARTITIONS, FOUR_PARTITIONS),
        ledger=as_recorded,
        says=("shuffle.partitions",),
    ),
    Case("nothing edited", "SW-LOG-011", nothing, ledger=as_recorded, fires=False),
    Case(
        "a batch that was planned again",
        "SW-LOG-011",
        both(EDITED, replace("checkpoint/offsets/7", '"batchTimestampMs":1', '"batchTimestampMs":2')),
        ledger=as_recorded,
        fires=False,
    ),
    Case(
        "a planned batch that is not committed",
        "SW-LOG-011",
        both(EDITED, LAST_COMMIT),
        ledger=as_recorded,
        fires=False,
    ),
    Case(
        "only metadata, and an output with batches",
        "SW-LOG-015",
        both(*(delete_folder(f"checkpoint/{log}") for log in ("offsets", "commits", "sources")), output_in_place),
        with_sink=True,
        says=("batches 0..7",),
    ),
    Case(
        "only metadata, and an empty output",
        "SW-LOG-015",
        both(*(delete_folder(f"checkpoint/{log}") for log in ("offsets", "commits")), delete_folder("sink")),
        with_sink=True,
        fires=False,
    ),
    Case("a checkpoint in order", "SW-LOG-015", output_in_place, with_sink=True, fires=False),
    Case("an older plan", "SW-LOG-010", remove("checkpoint/offsets/4"), says=("offsets/4",)),
    Case("an older commit", "SW-LOG-010", remove("checkpoint/commits/4"), says=("commits/4",)),
    Case("the plan before the newest", "SW-LOG-010", remove("checkpoint/offsets/6"), fires=False),
    Case("the newest commit", "SW-LOG-010", LAST_COMMIT, fires=False),
    Case(
        "the oldest entries, as Spark removes them",
        "SW-LOG-010",
        remove("checkpoint/offsets/0", "checkpoint/commits/0"),
        fires=False,
    ),
    Case(
        "the plan of the batch before",
        "SW-LOG-018",
        copy("checkpoint/offsets/4", "checkpoint/offsets/5"),
        says=("offsets/5 has the time of planning of batch 4",),
    ),
    Case(
        "the plan of the batch before the newest",
        "SW-LOG-018",
        copy("checkpoint/offsets/6", "checkpoint/offsets/7"),
        says=("offsets/7", "batches 6 and 7"),
    ),
    Case(
        "a copy of a commit that names state",
        "SW-LOG-018",
        copy("checkpoint/commits/3", "checkpoint/commits/5"),
        corpus=FORMAT_2,
        says=("commits/5 has the state of batch 3",),
    ),
    Case(
        "a copy with a time of its own",
        "SW-LOG-018",
        both(
            copy("checkpoint/offsets/6", "checkpoint/offsets/7"),
            replace("checkpoint/offsets/7", '"batchTimestampMs":1', '"batchTimestampMs":2'),
        ),
        fires=False,
    ),
    Case(
        "a commit without state, which is like the others",
        "SW-LOG-018",
        copy("checkpoint/commits/3", "checkpoint/commits/5"),
        fires=False,
    ),
    Case("an offline repartition", "SW-LOG-018", nothing, corpus=REPARTITION, fires=False),
    Case("entries without times", "SW-LOG-018", nothing, corpus="continuous_rate", fires=False),
    Case(
        "a copy that a plan of Slackwater made",
        "SW-LOG-018",
        copy("checkpoint/offsets/4", "checkpoint/offsets/5"),
        ledger=as_recorded,
        fires=False,
    ),
    Case(
        "another number of partitions",
        "SW-LOG-019",
        replace("checkpoint/offsets/7", TWO_PARTITIONS, FOUR_PARTITIONS),
        says=("spark.sql.shuffle.partitions", "from batch 6 to batch 7"),
    ),
    Case(
        "another codec in an older entry",
        "SW-LOG-019",
        replace("checkpoint/offsets/3", '"spark.sql.streaming.stateStore.compression.codec":"lz4"', CODEC_7),
        corpus=AGGREGATION,
        says=("compression.codec", "lz7"),
    ),
    Case("an offline repartition", "SW-LOG-019", nothing, corpus=REPARTITION, fires=False),
    Case(
        "settings that the older entry does not have",
        "SW-LOG-019",
        replace("checkpoint/offsets/3", "stateStore.encodingFormat", "stateStore.encodingFormatOfNoRelease"),
        corpus=AGGREGATION,
        fires=False,
    ),
    Case(
        "another number of partitions, recorded",
        "SW-LOG-019",
        replace("checkpoint/offsets/7", TWO_PARTITIONS, FOUR_PARTITIONS),
        ledger=as_recorded,
        fires=False,
    ),
]
