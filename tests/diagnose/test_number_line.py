"""The table of the number line, line by line: what is seen, what it means, and which command comes next.

w is the newest batch the sink shows, r the batch that Spark would run next, o, c and v the newest planned batch,
committed batch and batch whose state can be loaded.
"""

import re
import shlex
from dataclasses import replace

import pytest

from slackwater.cli.main import make_parser
from slackwater.core.checkpoint import Damage, Marks, written_by_all
from slackwater.core.errors import SinkUnreadable
from slackwater.core.program import QueryProfile
from slackwater.core.records import WATCHED, GenerationRecord, OperationRecord, RunRecord, StreamRecord
from slackwater.core.sink import Delivery
from slackwater.core.snapshot import OutputSeen, Recorded, Snapshot, Unmarked
from slackwater.diagnose.checks.common.snapshot import FAILURES
from slackwater.diagnose.number_line import RULES, findings, stops
from slackwater.formats.text_log import parse_offset_entry

STREAM = StreamRecord("clicks", "per_page", {"kind": "files"}, "append", "/project/clicks.py", id="mine")
WINDOWED = QueryProfile(("Aggregate",), (600_000,), (60_000,), 60_000, ("files",))
STATELESS = QueryProfile((), (), (), 0, ("files",))
ONE, OTHER = (parse_offset_entry(b'v1\n{}\n{"logOffset":%d}' % end) for end in (6, 9))
RUN = RunRecord(1, STREAM.full_name, 1, "4.1.3", 0, ended_ms=1, end="finished")
OPERATION = OperationRecord(
    "20260105T093000-1a2b3c", STREAM.full_name, "rebuild", "applying", 0, summary="/o/plan.json"
)

ONCE = Delivery("exactly-once", "it has a manifest")
TWICE = Delivery("at-least-once", "it keeps both copies")
UNMARKED = Unmarked("host/db out", -1, 5, "empty the table out", shows_rows=True)
SILENT = OutputSeen(location="Kafka topic clicks", delivery=TWICE)
"""The output of a sink that does not show what it holds."""
MEMORY = OutputSeen(delivery=Delivery("none", "it is a table in memory"))

CLEAN = Snapshot(
    stream=STREAM,
    generation=GenerationRecord(STREAM.full_name, 1, "/home/0001"),
    marks=Marks(planned=5, committed=5, state=5, written=5),
    recorded=Recorded(planned=5, committed=5, shown=5),
    output=OutputSeen(
        location="/out", owner="mine", owner_name="clicks/per_page", batches_skipped=True, can_cut=True, delivery=ONCE
    ),
    profile=WINDOWED,
    last_run=RUN,
)


def at(o: int, c: int, v: int | None, w: int | None, **fields: object) -> Snapshot:
    """A stream with these marks, of which the ledger has recorded the same."""
    recorded = Recorded(planned=o, committed=c, shown=-1 if w is None else w)
    return CLEAN._replace(**{"marks": Marks(o, c, v, w), "recorded": recorded, **fields})  # type: ignore[arg-type]  # by field name


def each(o: int, c: int, *written: int | None, **fields: object) -> Snapshot:
    """A stream that writes each batch into several outputs, which show these batches as their newest."""
    members = tuple(
        OutputSeen(
            f"/out/{number}",
            batches_skipped=mark is not None,
            can_cut=mark is not None,
            delivery=ONCE if mark is not None else TWICE,
            kind="delta",
            written=mark,
        )
        for number, mark in enumerate(written, 1)
    )
    output = OutputSeen(location="/out/1; /out/2", batches_skipped=True, skipped_are_read=True, members=members)
    return at(o, c, c, written_by_all(written), output=output, **fields)


INTERRUPTED = {"planned_entry": ONE, "recorded": Recorded(6, 5, 6, next_entry=ONE)}
CASES: dict[str, tuple[Snapshot, tuple[str, str, str, str | None, int]]] = {
    "w = r-1": (CLEAN, ("clean", "info", "none", "resume", 0)),
    "w = r-1, r is planned": (at(6, 5, 5, 5, planned_entry=ONE), ("clean", "info", "none", "resume", 0)),
    "nothing has run": (at(-1, -1, None, -1), ("new", "info", "none", None, 0)),
    "w = r, r is planned with the recorded range": (
        at(6, 5, 5, 6, **INTERRUPTED),
        ("commit-missing", "info", "none", "resume", 0),
    ),
    "w = r, r is not planned": (at(5, 5, 5, 6), ("sink-ahead", "stop", "skip", "rebuild", 5)),
    "w = r, r is planned with another range": (
        at(6, 5, 5, 6, planned_entry=OTHER, recorded=Recorded(6, 5, 6, next_entry=ONE)),
        ("range-changed", "stop", "skip", "rebuild", 5),
    ),
    "w > r": (at(5, 5, 5, 9), ("sink-ahead", "stop", "skip", "rebuild", 5)),
    "w > r, r is planned": (at(6, 5, 5, 7, planned_entry=ONE), ("sink-ahead", "stop", "skip", "rebuild", 5)),
    "w >= r of a stream that never ran": (at(-1, -1, None, 0), ("sink-foreign", "stop", "skip", None, 5)),
    "w < r-1": (at(5, 5, 5, 3), ("sink-behind", "stop", "loss", "rebuild", 5)),
    "an emptied sink": (at(5, 5, 5, -1), ("sink-behind", "stop", "loss", "rebuild", 5)),
    "a marker that was lost": (
        at(5, 5, 5, -1, output=OutputSeen(unmarked=UNMARKED)),
        ("sink-marker-lost", "stop", "duplicate", "rebuild", 5),
    ),
    "a marker that was set back, of an output that nobody can look at": (
        at(6, 5, 5, 1, planned_entry=ONE, output=OutputSeen(unmarked=UNMARKED._replace(marked=1, shows_rows=False))),
        ("sink-marker-lost", "stop", "duplicate", "reset", 5),
    ),
    "v < r-1": (at(5, 5, 3, 5), ("state-lost", "stop", "stuck", "rebuild", 5)),
    "no state": (at(5, 5, None, 5), ("state-lost", "stop", "stuck", "rebuild", 5)),
    "no state is needed": (at(5, 5, None, 5, profile=STATELESS), ("clean", "info", "none", "resume", 0)),
    "source files of the planned batch are missing": (
        at(6, 5, 5, 5, planned_entry=ONE, missing_files=("/in/6.json",)),
        ("source-files-missing", "stop", "loss", None, 5),
    ),
    "o and c are lost": (
        at(-1, -1, None, 5)._replace(recorded=Recorded(5, 5, 5)),
        ("checkpoint-lost", "stop", "skip", "rebuild", 5),
    ),
    "c is behind what was recorded, and w is unknown": (
        at(3, 3, 3, None)._replace(recorded=Recorded(5, 5, -1)),
        ("checkpoint-behind", "stop", "duplicate", "rebuild", 5),
    ),
    "w is unknown": (at(5, 5, 5, None), ("sink-silent", "info", "none", "resume", 0)),
    "w is unknown, r is planned": (
        at(6, 5, 5, None, output=SILENT, planned_entry=ONE),
        ("sink-silent", "info", "none", "resume", 0),
    ),
    "o and c are lost, w is unknown": (
        at(-1, -1, None, None, output=SILENT)._replace(recorded=Recorded(5, 5, -1)),
        ("checkpoint-lost", "stop", "duplicate", "rebuild", 5),
    ),
    "o and c are lost, w is unknown, the sink skips": (
        at(-1, -1, None, None, output=SILENT._replace(batches_skipped=True))._replace(recorded=Recorded(5, 5, -1)),
        ("checkpoint-lost", "stop", "skip", "rebuild", 5),
    ),
    "a sink that keeps nothing": (at(5, 5, 5, None, output=MEMORY), ("sink-silent", "info", "none", "resume", 0)),
    "files of interrupted batches": (
        CLEAN._replace(output=CLEAN.output._replace(orphans=("part-9",))),
        ("clean", "info", "none", "resume", 0),
    ),
    "w cannot be read": (
        at(5, 5, 5, None, output=OutputSeen(unreadable=SinkUnreadable("sink-unreadable", "torn"))),
        ("sink-unreadable", "stop", "loss", None, 3),
    ),
    "a start that was refused": (
        CLEAN._replace(last_refusal=RunRecord(2, CLEAN.stream.full_name, 1, "", 0, 0, "refused", "sink-changed: why")),
        ("start-refused", "warning", "stuck", None, 7),
    ),
    "a start that was refused, before another generation": (
        CLEAN._replace(last_refusal=RunRecord(2, CLEAN.stream.full_name, 0, "", 0, 0, "refused", "sink-changed: why")),
        ("clean", "info", "none", "resume", 0),
    ),
    "a damaged log": (
        CLEAN._replace(damage=(Damage("offsets/5", "torn", "JSON", "half"),)),
        ("checkpoint-damaged", "stop", "stuck", "resume", 3),
    ),
    "a damaged log and damaged state": (
        CLEAN._replace(
            damage=(Damage("offsets/5", "torn", "JSON", "half"), Damage("state/0/0/1.delta", "checksum", "1", "2"))
        ),
        ("checkpoint-damaged", "stop", "stuck", "rebuild", 3),
    ),
    "a damaged output": (
        CLEAN._replace(output=CLEAN.output._replace(damage=(Damage("part-5", "missing", "", ""),))),
        ("output-damaged", "stop", "loss", "rebuild", 3),
    ),
    "both outputs have r-1": (each(5, 5, 5, 5), ("clean", "info", "none", "resume", 0)),
    "one output has r, the other has not": (
        each(6, 5, 6, 5, **INTERRUPTED),
        ("written-in-part", "info", "none", "resume", 0),
    ),
    "one output has r, the other shows nothing": (
        each(6, 5, None, 6, **INTERRUPTED),
        ("written-in-part", "info", "none", "resume", 0),
    ),
    "both outputs have r": (each(6, 5, 6, 6, **INTERRUPTED), ("commit-missing", "info", "none", "resume", 0)),
    "one output has r, which is not planned": (each(5, 5, 6, 5), ("sink-ahead", "stop", "skip", "rebuild", 5)),
    "one output has r, which is planned with another range": (
        each(6, 5, 5, 6, planned_entry=OTHER, recorded=Recorded(6, 5, 6, next_entry=ONE)),
        ("range-changed", "stop", "skip", "rebuild", 5),
    ),
    "one output is more than one batch ahead": (
        each(6, 5, 7, 5, planned_entry=ONE),
        ("sink-ahead", "stop", "skip", "rebuild", 5),
    ),
    "one output is behind": (each(5, 5, 5, 4), ("sink-behind", "stop", "loss", "rebuild", 5)),
    "one output is behind, the other shows nothing": (
        each(5, 5, None, 4),
        ("sink-behind", "stop", "loss", "rebuild", 5),
    ),
    "one of the outputs is ahead, the other shows nothing": (
        each(5, 5, 6, None),
        ("sink-ahead", "stop", "skip", "rebuild", 5),
    ),
    "a moved home": (CLEAN._replace(home="moved", home_was="/old"), ("home-moved", "stop", "wrong", None, 5)),
    "a copied home": (CLEAN._replace(home="copied", home_was="/old"), ("home-copied", "stop", "wrong", None, 5)),
    "an output of another stream": (
        CLEAN._replace(output=CLEAN.output._replace(owner="theirs", owner_name="a/b of the home /h")),
        ("sink-owned", "stop", "skip", None, 5),
    ),
    "an unfinished operation": (
        CLEAN._replace(operation=OPERATION),
        ("operation-unfinished", "stop", "stuck", None, 5),
    ),
    "an operation in progress": (
        CLEAN._replace(operation=OPERATION, holder="apply rebuild"),
        ("operation-running", "stop", "none", None, 0),
    ),
    "a running stream": (at(5, 5, 3, 9)._replace(holder="run"), ("running", "info", "none", None, 0)),
    "a failed run": (
        CLEAN._replace(last_run=RUN._replace(end="failed", failure="transient", reason="disk full")),
        ("failed", "warning", "stuck", "resume", 7),
    ),
    "a run that would fail again": (
        CLEAN._replace(last_run=RUN._replace(end="failed", failure="permanent", failure_code="user-function")),
        ("failed-permanently", "warning", "stuck", None, 7),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_table(name: str) -> None:
    snapshot, (code, severity, risk, goal, exit_code) = CASES[name]

    found = findings(snapshot)[0]

    assert (found.code, str(found.severity), found.risk, found.goal, found.exit_code) == (
        code,
        severity,
        risk,
        goal,
        exit_code,
    )
    assert ([one.code for one in stops(snapshot)] != []) == (severity == "stop")


@pytest.mark.parametrize("name", CASES)
def test_whatever_must_not_be_started_or_has_failed_says_what_to_do(name: str) -> None:
    for finding in findings(CASES[name][0]):
        if str(finding.severity) == "stop" and finding.code != "operation-running":
            assert finding.next or finding.advice, finding
        if finding.code.startswith("failed"):
            assert finding.next or finding.advice, finding


@pytest.mark.parametrize("session", [(), ("--master", "local[2]", "--conf", "spark.sql.shuffle.partitions=2")], ids=len)
@pytest.mark.parametrize("name", CASES)
def test_every_printed_command_can_be_parsed(name: str, session: tuple[str, ...]) -> None:
    snapshot = CASES[name][0]
    for finding in findings(snapshot._replace(stream=snapshot.stream._replace(session=session))):
        advised = re.findall(r"slackwater [a-z]+ .*?(?:$|(?=,| then))", finding.advice or "")
        for command in [*([finding.next] if finding.next else []), *advised]:
            words = shlex.split(command)
            assert words[0] == "slackwater"
            make_parser(words[1:]).parse_args(words[1:])


@pytest.mark.parametrize("code", FAILURES)
def test_a_permanent_failure_names_its_goal_or_what_to_correct(code: str) -> None:
    failed = CLEAN._replace(last_run=RUN._replace(end="failed", failure="permanent", failure_code=code))

    found = findings(failed)

    assert [one.code for one in found] == ["failed-permanently"]
    assert found[0].goal == FAILURES[code][1]
    assert (found[0].next is not None) == (FAILURES[code][1] == "rebuild")
    assert found[0].advice is None or "correct /project/clicks.py" in found[0].advice


def test_a_source_that_is_not_fault_tolerant_is_reported_before_the_first_start_too() -> None:
    socket = replace(WINDOWED, sources=("FileStreamSource[file:/in]", "textSocket"))

    assert _codes(CLEAN._replace(profile=socket)) == ["clean", "source-not-fault-tolerant"]
    assert _codes(at(-1, -1, None, -1, profile=socket)) == ["new", "source-not-fault-tolerant"]


def test_a_chain_that_drops_rows_as_late_is_reported() -> None:
    assert _codes(CLEAN._replace(profile=replace(WINDOWED, late_in_chain=True))) == ["clean", "global-watermark"]
    assert _codes(CLEAN) == ["clean"]


def test_several_watermarks_are_reported_where_those_after_the_newest_batch_are_not_recorded() -> None:
    several = replace(WINDOWED, watermark_delays_ms=(1, 2))

    assert _codes(CLEAN._replace(profile=several)) == ["clean", "several-watermarks"]
    assert _codes(CLEAN._replace(profile=several, inputs_recorded=frozenset({CLEAN.marks.committed}))) == ["clean"]
    assert _codes(at(-1, -1, None, -1, profile=several)) == ["new"]


def test_a_batch_that_the_sink_skips_advances_no_watermark_of_a_query_that_slackwater_does_not_run() -> None:
    watched = CLEAN.stream._replace(pipeline=WATCHED, pipeline_file="")
    assert _codes(at(6, 5, 5, 6, stream=watched, **INTERRUPTED)) == ["commit-missing", "watermark-misses-batch"]
    stateless = at(6, 5, 5, 6, stream=watched, profile=STATELESS, **INTERRUPTED)
    assert _codes(stateless) == ["commit-missing"]
    read = OutputSeen(batches_skipped=True, skipped_are_read=True)
    assert _codes(at(6, 5, 5, 6, stream=watched, output=read, **INTERRUPTED)) == ["commit-missing"]


def test_a_batch_that_the_sink_would_skip_is_completed_by_a_run() -> None:
    interrupted = at(6, 5, 5, 6, **INTERRUPTED)
    assert _codes(interrupted) == ["commit-missing"]
    assert (interrupted.completed_batch, CLEAN.completed_batch) == (6, None)
    assert "completes it without writing it again" in findings(interrupted)[0].text
    stateless = at(6, 5, 5, 6, profile=STATELESS, **INTERRUPTED)
    assert "be skipped" in findings(at(6, 5, None, 6, profile=STATELESS, **INTERRUPTED))[0].text
    assert _codes(stateless) == ["commit-missing"]


def test_the_output_that_is_ahead_or_behind_is_named() -> None:
    assert findings(each(5, 5, 5, 8))[0].where == "/out/2"
    assert findings(each(5, 5, 3, 5))[0].where == "/out/1"
    assert "skipped by delta /out/1" in findings(each(6, 5, 6, 5, **INTERRUPTED))[0].text


def test_a_pending_no_data_batch_is_reported() -> None:
    assert _codes(CLEAN._replace(marks=replace(CLEAN.marks, pending_no_data=6))) == ["clean", "no-data-batch-pending"]


def test_a_guarantee_below_exactly_once_is_reported_and_changes_nothing_else() -> None:
    silent = at(6, 5, 5, None, output=SILENT, planned_entry=ONE)

    assert _codes(silent) == ["sink-silent", "at-least-once"]
    first, second = findings(silent)
    assert "batch 6 was interrupted and will run again" in first.text
    assert (str(second.severity), second.risk, second.exit_code) == ("warning", "duplicate", 0)
    assert TWICE.reason in second.text
    assert _codes(at(-1, -1, None, None, output=SILENT)) == ["new", "at-least-once"]
    assert _codes(silent._replace(holder="run")) == ["running", "at-least-once"]
    assert _codes(at(5, 5, 5, None, output=MEMORY)) == ["sink-silent", "rows-not-kept"]
    assert [one.code for one in stops(silent)] == []


def test_files_that_belong_to_no_batch_are_no_damage() -> None:
    orphans = CLEAN._replace(output=CLEAN.output._replace(orphans=tuple("abcd")))

    assert _codes(orphans) == ["clean", "orphan-files"]
    assert "a, b, c and 1 more" in findings(orphans)[1].text


def test_missing_state_is_reported_once() -> None:
    hole = Damage("state/0/0", "missing", "version 6", "version 4")
    torn = Damage("state/0/0/6.delta", "torn", "a block", "half")

    assert _codes(at(5, 5, 3, 5)._replace(damage=(hole,))) == ["state-lost"]
    assert _codes(at(5, 5, 3, 5)._replace(damage=(hole, torn))) == ["checkpoint-damaged", "state-lost"]
    assert _codes(CLEAN._replace(damage=(hole,))) == ["checkpoint-damaged"]


def test_identity_comes_before_everything_and_is_checked_while_the_stream_runs() -> None:
    copied = at(5, 5, 3, 9)._replace(home="copied", home_was="/old")

    assert _codes(copied)[0] == "home-copied"
    assert _codes(copied._replace(holder="run")) == ["home-copied", "running"]


def test_every_code_has_a_case() -> None:
    cases = {one.code for snapshot, _ in CASES.values() for one in findings(snapshot)}
    assert {rule.code for rule in RULES} - cases == {
        "no-data-batch-pending",
        "global-watermark",
        "several-watermarks",
        "source-not-fault-tolerant",
        "watermark-misses-batch",
    }


def _codes(snapshot: Snapshot) -> list[str]:
    return [one.code for one in findings(snapshot)]
