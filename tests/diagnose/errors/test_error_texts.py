"""How error texts are found: in what is printed around them, in long logs, and which of several is first."""

import random
import re
import tomllib
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.commands import command
from slackwater.diagnose.catalogue import known_failures
from slackwater.diagnose.error_texts import (
    PART_CHARACTERS,
    SIGNS,
    ErrorText,
    Level,
    compile_template,
    error_texts,
    explained,
    recognise,
    signs_of,
)
from tests.diagnose.errors.facts import FACTS, codes_given

MISSING = "java.lang.IllegalStateException: batch 3 doesn't exist"
DELTA = (
    "java.lang.IllegalStateException: Error reading delta file file:/ck/state/0/1/5.delta of "
    "HDFSStateStoreProvider[id = (op=0,part=1),dir = file:/ck/state/0/1]: file:/ck/state/0/1/5.delta does not exist"
)
QUERY = "Query [id = 1c4d, runId = 2e5f]"
INFO = "24/10/18 03:43:38 INFO MicroBatchExecution: Committed offsets for batch 7. Metadata OffsetSeqMetadata(0,1)\n"
ALL = error_texts()
LITERAL_MIN = 7
"""Characters that the longest literal part has at least, so that few places of a log are compared."""
SECOND = "java.lang.IllegalStateException: Race while writing batch 9"


def _first(text: str) -> str:
    return recognise(text)[0].symptom


@pytest.mark.parametrize(
    "wrapped",
    [
        f"[STREAM_FAILED] {QUERY} terminated with exception: batch 3 doesn't exist SQLSTATE: X\nCaused by: {MISSING}",
        f"Execution of the stream s failed. Please, fill a bug report in, and provide the full stack trace.\n{MISSING}",
        f"[INTERNAL_ERROR] Execution of the stream s failed.\nCaused by: {MISSING}\n\tat a.b(A.scala:1)",
        f"pyspark.errors.exceptions.captured.StreamingQueryException: {QUERY}\nJVM stacktrace:\n{MISSING}",
        f"pyspark.errors.exceptions.connect.SparkConnectGrpcException: (org.apache.spark.SparkException) {MISSING}",
        f"py4j.protocol.Py4JJavaError: An error occurred while calling o55.awaitTermination.\n: {MISSING}",
        f"24/10/18 03:43:38 ERROR Micro: {QUERY} terminated with error\r\n{MISSING}\r\n\tat a.b(C.scala:1)\r\n",
        "\x1b[31m24/10/18 ERROR\x1b[0m \x1b[1mjava.lang.IllegalStateException\x1b[0m: batch 3 doesn't exist\x1b[0m",
        f"2024-10-18T03:43:38.123456789Z stderr F Caused by: {MISSING}",
        "> Caused by: java.lang.IllegalStateException: batch \n> 3 doesn't exist\n> \tat a.b(C.scala:1)",
        "Caused by: java.lang.IllegalStateException: batch 3 \ndoesn't exist\n",
        f'{{"exception":"org.apache.spark.SparkException: x\\n\\tat a.b(C)\\nCaused by: {MISSING}\\n\\tat a"}}',
    ],
)
def test_a_text_is_found_in_what_is_around_it(wrapped: str) -> None:
    found = recognise(wrapped)[0]

    assert found.symptom == "batch-missing-in-log"
    assert found.params["batch"] == "3"


def test_a_state_file_is_found_in_the_message_of_a_failed_stage() -> None:
    text = f"{QUERY} terminated with exception: Job aborted due to stage failure: Task 1 in stage 8.0 failed: {DELTA}"

    found = recognise(text)[0]

    assert found.codes[0] == "STATE-01"
    assert dict(found.params) == {"path": "file:/ck", "operator": "0", "partition": "1", "version": "5"}


def test_a_cut_message_is_found_by_its_error_class() -> None:
    assert _first("...ception: [CANNOT_LOAD_STATE_STORE.CANNOT_READ_DELTA_FILE_NOT_EXISTS] An err") == "delta-missing"


def test_the_inner_cause_is_before_the_outer_one() -> None:
    outer = "[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred in the user provided function. Reason: x"
    loading = "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state."
    text = f"{outer}\nCaused by: {loading}\nCaused by: java.io.EOFException\n"

    assert [found.symptom for found in recognise(text)] == ["state-file-cut", "state-not-loaded"]


def test_of_two_specific_causes_the_inner_one_is_first() -> None:
    assert _first(f"{SECOND}\n\tat a.b(C.scala:1)\nCaused by: {MISSING}") == "batch-missing-in-log"
    assert _first(f"{MISSING}\n\tat a.b(C.scala:1)\nCaused by: {SECOND}") == "sink-batch-race"


def test_the_class_of_an_exception_counts_where_nothing_else_is_recognised() -> None:
    trace = "java.lang.NoSuchMethodError: com.example.Client.call()V\n"

    assert [one.symptom for one in recognise(f"{trace}{MISSING}\n")] == ["batch-missing-in-log"]
    assert [one.symptom for one in recognise(trace)] == ["class-of-other-library"]


def test_a_note_of_a_running_query_is_after_what_failed() -> None:
    note = "INFO FileStreamSink: Skipping already committed batch 9"

    assert [one.symptom for one in recognise(f"{MISSING}\n{note}\n")] == [
        "batch-missing-in-log",
        "batch-already-in-sink",
    ]


def test_the_newest_failure_of_a_log_gives_the_values_and_the_line() -> None:
    text = f"{INFO}{MISSING}\n{INFO * 3}{MISSING.replace('3', '7')}\n{INFO}"

    found = recognise(text)[0]

    assert (found.params["batch"], found.where) == ("7", 6)


@pytest.mark.parametrize("text", ["", "\n", "all is well", INFO * 50, "Caused by: java.lang.RuntimeException: boom"])
def test_nothing_is_found_where_nothing_is(text: str) -> None:
    assert recognise(text) == ()


def test_binary_garbage_is_no_symptom() -> None:
    noise = random.Random(7).randbytes(400_000)

    assert recognise(noise.decode("latin-1")) == ()
    assert recognise(noise.decode("utf-8", "surrogateescape")) == ()
    assert _first(noise[:9999].decode("latin-1") + f"\n{MISSING}\n\x00\x01") == "batch-missing-in-log"


def test_secrets_and_control_characters_are_not_shown() -> None:
    url = "s3a://user:hunter22@bucket/ck"
    found = recognise(
        f"Failed to read log file {url}/offsets/4. Incomplete log file \x1b]52;c;x\x07 password=hunter22"
    )[0]

    shown = f"{found.line} {found.params}"
    assert "hunter22" not in shown
    assert shown.isprintable()
    assert found.params["path"].endswith("bucket/ck")


@pytest.mark.parametrize("size", [1, 7, 1000, PART_CHARACTERS - 1, PART_CHARACTERS])
def test_pieces_of_any_size_give_what_the_whole_text_gives(size: int) -> None:
    text = f"{INFO * 20}{MISSING}\n\tat a.verifyBatchIds(C.scala:1)\n{INFO * 9}"

    assert recognise(text[start : start + size] for start in range(0, len(text), size)) == recognise(text)


@pytest.mark.parametrize("before", range(PART_CHARACTERS - 80, PART_CHARACTERS + 20, 9))
def test_a_text_across_two_parts_is_found_on_its_line(before: int) -> None:
    text = f"{'x' * (before - 1)}\n{DELTA}\n"

    found = recognise(text)

    assert [(one.symptom, one.where) for one in found] == [("delta-missing", 2)]


def test_a_text_is_found_in_a_line_longer_than_a_part() -> None:
    text = f"{'x ' * PART_CHARACTERS}{MISSING}"

    assert [(one.symptom, one.where) for one in recognise(text)] == [("batch-missing-in-log", 1)]


def test_the_memory_for_a_long_log_does_not_grow_with_it() -> None:
    def pieces(parts: int) -> Iterator[str]:
        for _ in range(parts):
            yield INFO * (PART_CHARACTERS // len(INFO)) + f"{MISSING}\n"

    def peak(parts: int) -> int:
        tracemalloc.start()
        assert recognise(pieces(parts))[0].symptom == "batch-missing-in-log"
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(8) < 1.2 * peak(5)


@pytest.mark.parametrize("error", ALL, ids=lambda error: error.symptom)
def test_an_entry_of_a_table_is_complete(error: ErrorText) -> None:
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)+", error.symptom)
    assert len(set(error.codes)) == len(error.codes) > 0
    assert known_failures().keys() >= {*error.codes, *(code for _, codes, _ in error.near for code in codes)}
    for text in error.texts:
        assert len(compile_template(text)[0]) >= LITERAL_MIN


def test_a_symptom_has_one_entry_and_a_fact_belongs_to_a_code() -> None:
    codes = {code for error in ALL for code in (*error.codes, *(code for _, codes, _ in error.near for code in codes))}

    assert len({error.symptom for error in ALL}) == len(ALL)
    assert codes >= set(FACTS)
    assert len(set(FACTS.values())) == len(FACTS)


def test_facts_put_the_cause_first() -> None:
    found = recognise(MISSING)[0]

    assert found.codes[0] == codes_given(found, ())[0] == "LOG-06"
    assert codes_given(found, {FACTS["MODE-03"]})[0] == "MODE-03"
    assert set(codes_given(found, {FACTS["MODE-03"]})) == set(found.codes)


@pytest.mark.parametrize(("requested", "code"), [(2367, "SRC-01"), (2372, "SRC-06")])
def test_the_values_of_a_message_decide(requested: int, code: str) -> None:
    text = f"request seqNo {requested} is less than the received seqNo 2373. The earliest seqNo is 2371 and the last"

    assert recognise(text)[0].codes[0] == code


def test_a_message_of_several_causes_says_how_to_tell_them_apart() -> None:
    [renamed] = explained(recognise("org.apache.hadoop.fs.FileAlreadyExistsException: /ck/x"), None)

    assert list(signs_of(renamed)) == ["STORE-03", "SHARE-01"]


def test_a_message_of_one_cause_needs_no_signs() -> None:
    [refused] = explained(recognise("Failed to find data source: kafka"), None)

    assert signs_of(refused) == {}


def test_signs_are_of_failures_that_no_file_shows() -> None:
    assert SIGNS.keys() <= known_failures().keys()
    assert all(known_failures()[code].how is not None for code in SIGNS)


def test_a_command_of_this_package_in_a_sign_exists() -> None:
    named = {sign[sign.index("slackwater ") :] for sign in SIGNS.values() if "slackwater " in sign}

    assert named == {command("inspect", "CHECKPOINT")}


# Each text that Spark has for a failure of the catalogue is recognised, with the values in it.


TABLE = Path(__file__).with_name("messages.toml")
MESSAGES: list[dict[str, Any]] = tomllib.loads(TABLE.read_text())["message"]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda one: f"{one['codes'][0]} in {one['versions']}")
def test_a_text_of_the_catalogue_is_recognised(message: dict[str, Any]) -> None:
    best = recognise(message["text"])[0]

    assert best.codes[0] == message["codes"][0]
    assert set(message["codes"]) <= set(best.codes)
    assert message.get("params", {}).items() <= best.params.items()


# Measures the recognition with error texts of public threads: the first code is the cause of the case.
#
# A case may have ``facts`` that the stream's files would show, if its text has several causes. ``basis`` is the
# source of the cause: cases whose cause is inferred from the text are weaker evidence, and the others are measured by
# themselves, too.


CASES_TABLE = tomllib.loads(Path(__file__).with_name("cases.toml").read_text())
CASES: list[dict[str, Any]] = CASES_TABLE["case"]
OTHERS: list[dict[str, Any]] = CASES_TABLE["other"]
STATED = ("thread", "change")
BASES = (*STATED, "inferred")


def _cause(case: dict[str, Any]) -> str:
    """The first cause as ``doctor --error`` prints it, or as the files of the case decide."""
    found = recognise(case["text"])
    if not found:
        return "none"
    return codes_given(found[0], case["facts"])[0] if "facts" in case else explained(found, None)[0].cause.code


@pytest.mark.parametrize(("bases", "right", "of"), [(BASES, 228, 246), (STATED, 204, 219)])
def test_the_first_code_is_the_cause(bases: tuple[str, ...], right: int, of: int) -> None:
    cases = [case for case in CASES if case["basis"] in bases]
    wrong = [f"{case['name']}: {_cause(case)}, not {case['cause']}" for case in cases if _cause(case) != case["cause"]]

    assert len(cases) == of
    assert len(cases) - len(wrong) >= right, "\n".join(wrong)


def test_few_failures_of_another_kind_are_taken_for_failures_of_a_stream() -> None:
    notes = {error.symptom for error in error_texts() if error.level is Level.NOTE}
    taken = [case["name"] for case in OTHERS if any(found.symptom not in notes for found in recognise(case["text"]))]

    assert (len(taken), len(OTHERS)) == (2, 29), "\n".join(taken)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["link"])
def test_a_case_has_a_link_and_facts_that_decide(case: dict[str, Any]) -> None:
    assert case["link"].startswith("https://")
    assert case["basis"] in BASES
    assert {FACTS[case["cause"]]} == set(case["facts"]) if "facts" in case else True


def test_no_thread_is_counted_twice() -> None:
    assert len({case["link"] for case in (*CASES, *OTHERS)}) == len(CASES) + len(OTHERS)
