"""Edits of versions of logs."""

from tests.diagnose.cases import AGGREGATION, Case, last_run, nothing, write
from tests.diagnose.recorded import with_runs

CASES = [
    Case("a plan that is too new", "SW-VER-001", write("checkpoint/offsets/7", "v9\n{}\n-"), says=("v9",)),
    Case("a commit that is too new", "SW-VER-001", write("checkpoint/commits/7", "v9\n{}")),
    Case("an entry of a source that is too new", "SW-VER-001", write("checkpoint/sources/0/7", "v9\n{}")),
    Case("a malformed plan", "SW-VER-001", write("checkpoint/offsets/7", "hello"), fires=False),
    Case("a plan of version 2", "SW-VER-001", nothing, corpus="offsetlog_v2_file", fires=False),
    Case(
        "a plan of version 2, and a run by an older Spark",
        "SW-VER-001",
        nothing,
        corpus="offsetlog_v2_file",
        ledger=last_run("4.1.4"),
        says=("4.2 or newer", "Spark 4.1.4"),
    ),
    Case(
        "a plan of version 2, and a run by the Spark that reads it",
        "SW-VER-001",
        nothing,
        corpus="offsetlog_v2_file",
        ledger=last_run("4.2.1"),
        fires=False,
    ),
    Case(
        "a commit of version 3, and a run by an older Spark",
        "SW-VER-001",
        nothing,
        corpus="sink_evolution_commit_v3",
        ledger=last_run("3.5.9"),
        says=("commits",),
    ),
    Case(
        "a newer release", "SW-VER-002", nothing, ledger=with_runs("4.3.0", "4.0.5"), says=("4.3.0 continues", "4.0.5")
    ),
    Case("the same release", "SW-VER-002", nothing, ledger=with_runs("4.3.0", "4.3.1"), fires=False),
    Case("an older release", "SW-VER-002", nothing, ledger=with_runs("4.0.5", "4.3.0"), fires=False),
    Case("the first run", "SW-VER-002", nothing, ledger=with_runs("4.3.0"), fires=False),
    Case(
        "an older release than one before",
        "SW-VER-003",
        nothing,
        ledger=with_runs("4.0.5", "3.5.9", "4.3.0"),
        says=("4.0.5 continues", "with Spark 4.3.0 again"),
    ),
    Case("a newer release", "SW-VER-003", nothing, ledger=with_runs("4.3.0", "4.0.5"), fires=False),
    Case("the same release", "SW-VER-003", nothing, ledger=with_runs("4.3.0", "4.3.1"), fires=False),
    Case(
        "a release with a defect of the stores",
        "SW-VER-006",
        nothing,
        corpus=AGGREGATION,
        version="3.5.9",
        ledger=last_run("3.5.1"),
        says=("Spark 3.5.1 has the defect SPARK-48105", "use Spark 3.4.4 or 3.5.2 or 4.0.0, or newer"),
    ),
    Case(
        "a release with its correction",
        "SW-VER-006",
        nothing,
        corpus=AGGREGATION,
        version="3.5.9",
        ledger=last_run("3.5.2"),
        fires=False,
    ),
    Case("a release with the defect, and no state", "SW-VER-006", nothing, ledger=last_run("3.5.1"), fires=False),
    Case(
        "a release with a defect of joins",
        "SW-VER-006",
        nothing,
        corpus="join_inner_hdfs",
        ledger=last_run("3.5.3"),
        says=("SPARK-49829",),
    ),
    Case(
        "the release with a defect of joins, and an aggregation",
        "SW-VER-006",
        nothing,
        corpus=AGGREGATION,
        version="3.5.9",
        ledger=last_run("3.5.3"),
        fires=False,
    ),
]
